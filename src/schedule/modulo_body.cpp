#include "schedule/modulo_body.hpp"

#include <fmt/format.h>

#include "schedule/conditional_rescale.hpp"
#include "schedule/fragment_registers.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

class BodyBuilder {
public:
    BodyBuilder(const ScheduledKernel& kernel, const ScheduledLoop& loop, const IterationClocks& clocks)
        : k_(kernel), loop_(loop), clocks_(clocks) {}

    std::variant<LoopBody, std::string> run() {
        if (std::string why = find_steps(); !why.empty()) return why;
        for (const StepId s : out_.steps) add(s);
        bind_to_weights();
        for (std::size_t a = 0; a < out_.steps.size(); ++a)
            for (std::size_t b = a; b < out_.steps.size(); ++b) relate(a, b);
        for (const VariableId v : k_.layouts.ids()) add_value(v);
        out_.body.registers = k_.unit.registers;
        out_.body.least_measured = clocks_.least_ahead;
        return std::move(out_);
    }

private:
    [[nodiscard]] const std::string& name(VariableId v) const { return k_.variable(v).name; }
    [[nodiscard]] VariableId written(StepId step) const { return variable_of(k_.step(step)); }
    [[nodiscard]] bool touches(StepId step, VariableId v) const {
        return written(step) == v || reads(k_.step(step), v);
    }

    std::string find_steps() {
        if (!k_.producer_role()) return "no role copies for those that compute";
        if (!is_repeated(k_, loop_)) return "it has one turn";
        for (const Node& node : loop_.body) {
            if (std::holds_alternative<WaitGroup>(node)) continue;
            const StepId* s = std::get_if<StepId>(&node);
            if (!s) return "there are loops in it";
            const Step& step = k_.step(*s);
            if (k_.is_written(variable_of(step)))
                return fmt::format("all warps write {} together", name(variable_of(step)));
            if (step.atom >= 0 && k_.atom(step).kind != AtomKind::block)
                out_.steps.push_back(*s);
            else if (step.atom >= 0 || (!k_.loads_operand(step) && !k_.is_read_by_threads(variable_of(step))))
                return fmt::format("all warps run {} together", name(variable_of(step)));
        }
        if (out_.steps.empty()) return "it computes nothing";
        sort(out_.steps);
        return "";
    }

    void add(StepId s) {
        const Step& step = k_.step(s);
        const StatementClocks& c = clocks_.of_step[at(s)];
        ModuloOperation o{
            .name = name(written(s)), .own = c.own, .unit = c.unit, .latency = c.latency, .latency_beside = c.latency_beside};
        o.is_product = runs_beside(k_, step);
        o.gives_registers = k_.atom(step).kind == AtomKind::fragment;
        if (!o.is_product) o.own += o.unit, o.unit = 0;
        if (o.is_product) {
            const auto is_staged = [&](const Read* r) {
                return !k_.is_operand(r->variable()) || k_.place(r->variable()).stages >= stages_to_outlast ||
                       k_.layout(r->variable()).scope == 0;
            };
            o.outlasts_iteration = !accesses_itself(s) && all_of(step.reads, is_staged);
        }
        out_.body.operations.push_back(std::move(o));
    }
    /// The product waits for its own previous iteration, as ProductWaits has it (wait_groups.cpp).
    [[nodiscard]] bool accesses_itself(StepId s) const {
        return mma_product(k_, k_.step(s))->a_in_registers || !adds_in_place(std::get<Compute>(*k_.step(s).statement));
    }

    /// With conditional rescaling, some operations run in the iteration of the weights. These move the maximum, or are
    /// computed again as it moves.
    void bind_to_weights() {
        if (!k_.rescale) return;
        const auto weights = find(out_.steps, k_.rescale->weights);
        if (weights == out_.steps.end()) return;
        std::vector<StepId> bound = k_.rescale->moving;
        append(bound, k_.rescale->again);
        bound.push_back(k_.rescale->sum), bound.push_back(k_.rescale->weights);
        int first = -1;
        for (std::size_t o = 0; o < out_.steps.size(); ++o)
            if (contains(bound, out_.steps[o])) {
                out_.body.operations[o].bound_to = first;
                if (first < 0) first = static_cast<int>(o);
            }
    }

    /// Stages keep an operand's tile apart from the next one. No statement copies what threads read in global memory.
    /// So neither makes a dependence.
    [[nodiscard]] bool is_of_iteration(VariableId v) const { return !k_.is_operand(v) && !k_.is_read_by_threads(v); }
    [[nodiscard]] bool writes_what_accesses(StepId writer, StepId other) const {
        return is_of_iteration(written(writer)) && touches(other, written(writer));
    }
    /// Relates two statements of which one writes what the other accesses. They run in the order of the program, and
    /// the first one's next iteration runs after the other one.
    void relate(std::size_t a, std::size_t b) {
        const StepId first = out_.steps[a], then = out_.steps[b];
        if (a == b) {
            if (out_.body.operations[a].is_product && accesses_itself(first))
                depend(a, a, 1, false, fmt::format("{} is one product after the other", name(written(first))));
            return;
        }
        if (!writes_what_accesses(first, then) && !writes_what_accesses(then, first)) return;
        const bool is_read = is_of_iteration(written(first)) && reads(k_.step(then), written(first)),
                   is_carried = is_of_iteration(written(then)) && reads(k_.step(first), written(then));
        const std::string& place = name(writes_what_accesses(first, then) ? written(first) : written(then));
        depend(a, b, 0, is_read,
               is_read ? fmt::format("it reads {}", name(written(first))) : fmt::format("{} has one place", place));
        depend(b, a, 1, is_carried,
               is_carried ? fmt::format("it reads {} of the turn before", name(written(then)))
                          : fmt::format("{} has one place", place));
    }
    /// Threads are done as they go on. A product is waited for by what reads or writes its result, as ProductWaits has
    /// it.
    void depend(std::size_t from, std::size_t to, int distance, bool is_read, std::string why) {
        const bool waits = out_.body.operations[from].is_product &&
                           (from == to || touches(out_.steps[to], written(out_.steps[from])));
        out_.body.dependences.push_back(
            {static_cast<int>(from), static_cast<int>(to), distance, waits, is_read, std::move(why)});
    }

    void add_value(VariableId v) {
        if (!k_.is_in_registers(v)) return;
        ModuloValue value{.name = name(v), .registers = fragment_registers(k_, v)};
        bool is_outside = k_.variable(v).is_state;
        for (std::size_t s = 0; s < k_.steps.size(); ++s) {
            const auto number = StepId::of(s);
            const auto o = find(out_.steps, number);
            if (!touches(number, v)) continue;
            if (o == out_.steps.end()) {
                is_outside = true;
                continue;
            }
            const int operation = static_cast<int>(o - out_.steps.begin());
            if (written(number) == v) value.writers.push_back(operation);
            if (reads(k_.step(number), v)) value.readers.push_back(operation);
        }
        if (value.writers.empty() && value.readers.empty()) return;
        value.is_carried = is_outside || value.writers.empty();
        value.is_halved_to_come = may_be_rounded_ahead(v, value);
        if (!value.is_halved_to_come)
            for (const int r : value.readers) round_into_own(v, r, value);
        out_.body.values.push_back(std::move(value));
    }
    /// Whether is_rounded_ahead may hold: in an order where the product runs for the iteration before, and no other
    /// reader of the value does.
    [[nodiscard]] bool may_be_rounded_ahead(VariableId v, const ModuloValue& value) const {
        if (value.is_carried || value.writers.size() != 1) return false;
        int products = 0;
        for (const int r : value.readers) {
            const Step& step = k_.step(out_.steps[at(r)]);
            if (k_.atom(step).kind != AtomKind::mma) continue;
            const auto product = mma_product(k_, step);
            if (!product || !product->a_in_registers || product->a->variable() != v) return false;
            ++products;
        }
        return products == 1;
    }
    /// Adds registers for a rounded factor that others read after the product.
    void round_into_own(VariableId v, int reader, const ModuloValue& value) {
        const Step& step = k_.step(out_.steps[at(reader)]);
        if (k_.atom(step).kind != AtomKind::mma) return;
        const auto product = mma_product(k_, step);
        const bool lives_on = value.is_carried || any_of(value.readers, [&](int r) { return r > reader; });
        if (product && product->a_in_registers && product->a->variable() == v && lives_on)
            out_.body.operations[at(reader)].rounded += value.registers / 2;
    }

    const ScheduledKernel& k_;
    const ScheduledLoop& loop_;
    const IterationClocks& clocks_;
    LoopBody out_;
};

}  // namespace

std::variant<LoopBody, std::string> modulo_body(const ScheduledKernel& kernel, const ScheduledLoop& loop,
                                                const IterationClocks& clocks) {
    return BodyBuilder(kernel, loop, clocks).run();
}

ModuloOrder order_of(const ScheduledKernel& kernel, const ScheduledLoop& loop, const LoopBody& body) {
    ModuloOrder out;
    out.ahead.resize(body.steps.size());
    for (const Node& node : loop.body)
        if (const StepId* s = std::get_if<StepId>(&node)) {
            const auto o = find(body.steps, *s);
            if (o == body.steps.end()) continue;
            out.sequence.push_back(static_cast<int>(o - body.steps.begin()));
            out.ahead[at(out.sequence.back())] = kernel.step(*s).ahead;
        }
    return out;
}

std::map<StepId, Slot> slots_of(const LoopBody& body, const ModuloOrder& order) {
    std::map<StepId, Slot> out;
    if (!order.runs_ahead() && is_sorted(order.sequence)) return out;
    int position = 0;
    for (std::size_t i = 0; i < order.sequence.size(); ++i) {
        const int o = order.sequence[i];
        const bool goes_on = i > 0 && order.sequence[i - 1] < o &&
                             order.ahead[at(order.sequence[i - 1])] == order.ahead[at(o)] &&
                             body.body.operations[at(order.sequence[i - 1])].is_product ==
                                 body.body.operations[at(o)].is_product;
        if (i > 0 && !goes_on) ++position;
        out[body.steps[at(o)]] = Slot{-1, position, order.ahead[at(o)]};
    }
    return out;
}

IterationClocks clocks_without_machine(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    IterationClocks out;
    out.of_step.resize(kernel.steps.size());
    for (const StepId s : kernel.steps.ids())
        if (const Step& step = kernel.steps[s]; step.scope == loop.scope && step.atom >= 0)
            (runs_beside(kernel, step) ? out.of_step[s].unit : out.of_step[s].own) = 1;
    return out;
}

}  // namespace napkin
