// A backward walk over the consumer's statements. It carries the values that the statements behind still read.
#include "lower/registers_alive.hpp"

#include <compare>
#include <set>
#include <utility>
#include <variant>

#include "algebra/expr.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::lower {
namespace {

/// A variable's fragments, or what they are rounded to as the first factor of a product, in half as many registers.
struct HeldValue {
    VariableId variable = -1;
    bool is_rounded = false;
    friend auto operator<=>(const HeldValue&, const HeldValue&) = default;
};
using HeldValues = std::set<HeldValue>;

void add(HeldValues& to, const HeldValues& values) { to.insert(values.begin(), values.end()); }

struct RegisterUse {
    HeldValues written, read;
    bool is_together = false;  ///< the statement still reads what dies at it while it writes
};

class Liveness {
public:
    explicit Liveness(const KernelProgram& program) : program_(program), kernel_(*program.kernel) {}

    RegistersAlive run() {
        HeldValues alive;
        walk(program_.consumer.end, alive);
        walk(program_.consumer.body, alive);
        if (most_at_) {
            const std::string text = to_string(program_, *most_at_);
            out_.at = text.substr(0, text.find_first_of(";\n"));
        }
        return std::move(out_);
    }

private:
    // Each walk takes the values that are alive behind a statement, and leaves those that are alive before it.
    void walk(const Block& list, HeldValues& alive) {
        for (auto statement = list.rbegin(); statement != list.rend(); ++statement) {
            now_ = &*statement;
            std::visit([&](const auto& kind) { walk(kind, alive); }, statement->kind);
        }
    }
    template <class T>
    void walk(const T& statement, HeldValues& alive) {
        if constexpr (requires { statement.body; }) walk(statement.body, alive);
    }

    // ---- loops and branches

    /// The list runs at least once. What its first statements read of the iteration before is alive at its end.
    void repeat(const Block& body, HeldValues& alive) {
        const HeldValues behind = alive;
        for (HeldValues before;; before = alive) {
            alive = before;
            add(alive, behind);
            walk(body, alive);
            if (alive == before) return;
        }
    }
    [[nodiscard]] bool may_have_no_block(LoopId loop) const {
        return program_.shapes.loops[loop].has_own_k_blocks || iterations_of(kernel_, kernel_.loop(loop)).least == 0;
    }
    void walk(const ForTiles& tiles, HeldValues& alive) { repeat(tiles.body, alive); }
    void walk(const ForBlocks& blocks, HeldValues& alive) {
        const HeldValues behind = alive;
        repeat(blocks.body, alive);
        if (blocks.blocks != KBlocks::all || may_have_no_block(blocks.loop)) add(alive, behind);
    }
    void walk(const If& branch, HeldValues& alive) {
        HeldValues otherwise = alive;
        walk(branch.otherwise, otherwise);
        walk(branch.body, alive);
        if (branch.condition != If::any_k_block || may_have_no_block(branch.loop)) add(alive, otherwise);
    }
    /// A part writes its own columns of a variable, and leaves those that other parts have written. So all columns are
    /// held until the last part. Before the first one, only what a part reads before it writes it is alive.
    void walk(const ForParts& parts, HeldValues& alive) {
        HeldValues of_all = alive;
        is_one_of_parts_ = true;
        repeat(parts.body, of_all);
        is_one_of_parts_ = false;
        walk(parts.body, alive);
    }
    void walk(const ForStaging& tiles, HeldValues& alive) { repeat(tiles.body, alive); }

    // ---- copies

    void walk(const Copy& copy, HeldValues& alive) {
        RegisterUse use;
        if (copy.way == Copy::leave_states)
            for (const StateMerge& merge : kernel_.kernel->merges) read(use, merge.state);
        else if (copy.way == Copy::store || copy.way == Copy::to_staging)
            read(use, variable_of(kernel_.step(copy.step)));
        apply(use, alive);
    }
    void walk(const MergeStates&, HeldValues& alive) {
        RegisterUse use;
        for (const StateMerge& merge : kernel_.kernel->merges) {
            read(use, merge.state), write(use, merge.state);
            for (const VariableId v : read_variables(merge.given)) read(use, is_in_part(v) ? variable_in_part(v) : v);
        }
        apply(use, alive);
    }

    // ---- computation

    void walk(const Init& init, HeldValues& alive) {
        RegisterUse use;
        write(use, variable_of(kernel_.step(init.step)));
        apply(use, alive);
        // A maximum that begins moves, so nothing of an earlier one is read.
        if (kernel_.rescale && kernel_.rescale->maximum == variable_of(kernel_.step(init.step)))
            for (const StepId s : kernel_.rescale->moving) alive.erase(HeldValue{variable_of(kernel_.step(s)), false});
    }
    void walk(const Map& map, HeldValues& alive) {
        if (const StepId follower = kernel_.step(map.step).follower; follower >= 0) compute(follower, alive);
        compute(map.step, alive);
    }
    /// A product of a warpgroup runs on until the warps wait for it. Its first factor is rounded as it begins, or where
    /// the factor's own iteration ends. A product of one warp rounds step by step.
    void walk(const Mma& mma, HeldValues& alive) {
        const MmaProduct& product = *program_.shapes.steps[mma.step].product;
        RegisterUse use = use_of(mma.step);
        use.is_together = product.by_warp();
        if (product.a_in_registers) {
            const VariableId a = product.a->variable();
            if (program_.shapes.variables[a].is_rounded_ahead)
                use.read.erase(HeldValue{a, false}), use.read.insert({a, true});
            else if (!product.by_warp())
                use.written.insert({a, true});
        }
        apply(use, alive);
    }
    /// Products that end here have read their factors until now.
    void walk(const WaitProducts& wait, HeldValues& alive) {
        RegisterUse use;
        for (const StepId s : kernel_.steps.ids()) {
            const auto& product = program_.shapes.steps[s].product;
            if (!product || product->by_warp() || !contains(wait.results, variable_of(kernel_.step(s)))) continue;
            read(use, variable_of(kernel_.step(s)));
            if (product->a_in_registers) use.read.insert({product->a->variable(), true});
        }
        apply(use, alive);
    }
    void walk(const Round& round, HeldValues& alive) {
        RegisterUse use;
        for (const Step& step : kernel_.steps) {
            if (step.atom < 0 || step.scope != round.scope || step.ahead != round.ahead) continue;
            const VariableId v = variable_of(step);
            if (program_.shapes.variables[v].is_rounded_ahead) read(use, v), use.written.insert({v, true});
        }
        apply(use, alive);
    }
    void walk(const SumRows& sums, HeldValues& alive) {
        RegisterUse use;
        for (const Step& step : kernel_.steps)
            if (step.atom >= 0 && step.scope == sums.scope && program_.shapes.variables[variable_of(step)].is_kept_by_threads)
                read(use, variable_of(step)), write(use, variable_of(step));
        apply(use, alive);
    }

    /// With sums of weights within the limit, or after the maximum has moved, the weights are what they are. Else they
    /// are scaled as the maximum moves by them, or computed again with what they are made of.
    void walk(const Rescale& rescale, HeldValues& alive) {
        const ConditionalRescale& r = *kernel_.rescale;
        compute(r.sum, alive);
        if (!rescale.is_first) {
            HeldValues scaled = alive, again = alive;
            RegisterUse scale;
            read(scale, variable_of(kernel_.step(r.weights))), read(scale, r.maximum);
            apply(scale, scaled);
            move(scaled, true);
            apply(scale, scaled);
            compute(r.weights, again);
            move(again);
            for (std::size_t n = r.again.size(); n-- > 0;) compute(r.again[n], again);
            add(alive, scaled), add(alive, again);
        }
        compute(r.weights, alive);
        const HeldValues behind = alive;
        move(alive);
        if (rescale.is_first) return;
        // Where the maximum stays, the correction is 1.
        add(alive, behind);
        RegisterUse one;
        write(one, r.correction);
        apply(one, alive);
    }
    /// The steps that move the maximum. `by_weights`: it moves by the weights alone.
    void move(HeldValues& alive, bool by_weights = false) {
        const std::vector<StepId>& moving = kernel_.rescale->moving;
        for (std::size_t n = moving.size(); n-- > 0;)
            if (!by_weights || variable_of(kernel_.step(moving[n])) != kernel_.rescale->maximum)
                compute(moving[n], alive);
    }

    /// A statement on fragments, or a product by which each warp computes again what it needs.
    void compute(StepId step, HeldValues& alive) {
        RegisterUse use = use_of(step);
        use.is_together = kernel_.atom(kernel_.step(step)).kind == AtomKind::mma;
        apply(use, alive);
    }
    [[nodiscard]] RegisterUse use_of(StepId step) const {
        RegisterUse use;
        write(use, variable_of(kernel_.step(step)));
        for (const Read* r : kernel_.step(step).reads) read(use, r->variable());
        return use;
    }

    // ---- registers

    void read(RegisterUse& use, VariableId v) const {
        if (kernel_.is_in_registers(v)) use.read.insert({v, false});
    }
    void write(RegisterUse& use, VariableId v) const {
        if (kernel_.is_in_registers(v)) use.written.insert({v, false});
    }
    /// What dies at a statement gives its registers to the results, value by value. So they are counted behind it and
    /// before it, and not together.
    void apply(const RegisterUse& use, HeldValues& alive) {
        HeldValues held = alive;
        add(held, use.written);
        if (use.is_together) add(held, use.read);
        count(held);
        for (const HeldValue& value : use.written)
            if (!is_one_of_parts_ || kernel_.column_parts->is_passing(value.variable)) alive.erase(value);
        add(alive, use.read);
        count(alive);
    }
    void count(const HeldValues& held) {
        const auto registers = [&](const HeldValue& value) {
            return program_.shapes.variables[value.variable].registers / (value.is_rounded ? 2 : 1);
        };
        // Backward, the first statement with so many comes last.
        const std::int64_t all = sum<std::int64_t>(held, registers);
        if (all == 0 || all < out_.most) return;
        out_.most = all, most_at_ = now_;
        out_.variables.clear();
        for (const HeldValue& value : held)
            if (!contains(out_.variables, value.variable)) out_.variables.push_back(value.variable);
    }

    const KernelProgram& program_;
    const ScheduledKernel& kernel_;
    const Statement* now_ = nullptr;
    const Statement* most_at_ = nullptr;
    bool is_one_of_parts_ = false;  ///< other parts of the columns have values of their own
    RegistersAlive out_;
};

}  // namespace

RegistersAlive registers_alive(const KernelProgram& program) { return Liveness(program).run(); }

}  // namespace napkin::lower
