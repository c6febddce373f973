// Circuits of tile programs: the paper's pseudocode expansion, and what its later steps add to it.
#include <fmt/format.h>

#include <map>
#include <set>

#include "draw/readings.hpp"
#include "draw/seen.hpp"
#include "support/ids.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"

namespace napkin::draw {
namespace {

class ProgramReader {
public:
    ProgramReader(const Diagram& diagram, const TileKernel& kernel, const KernelSteps* steps, const ProgramOptions& options)
        : diagram_(diagram),
          kernel_(kernel),
          steps_(steps),
          options_(options),
          current_(kernel.variables.size(), -1),
          cuts_(kernel.variables.size()) {
        names_ = diagram.names();
        names_.array = [this](ArrayId read) { return kernel_.variables[as_variable(read)].name; };
        if (steps_)
            for (const auto& [size, divisor] : steps_->divisors.merged()) divisors_.emplace_back(size, divisor);
    }

    Circuit run() {
        read(kernel_.body);
        std::vector<ValueId> ends;
        for (const auto& [array, value] : memory_)
            if (contains(stored_, array)) out_.outputs.push_back(value);
        return std::move(out_);
    }

private:
    void read(const std::vector<TileStatement>& body) {
        for (const TileStatement& statement : body) {
            if (const auto* load = std::get_if<Load>(&statement)) read(*load);
            if (const auto* store = std::get_if<Store>(&statement)) read(*store);
            if (const auto* init = std::get_if<Init>(&statement)) read(*init);
            if (const auto* compute = std::get_if<Compute>(&statement)) read(*compute);
            if (const auto* ended = std::get_if<Free>(&statement)) read(*ended);
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&statement)) read(**loop);
        }
    }

    void read(const Load& load) {
        const Variable& variable = kernel_.variables[load.variable];
        const ValueId from = in_memory(variable.array), to = add_variable(load.variable);
        std::vector<Operand> inputs{operand(from)};
        // Which rows are loaded may be said by values that are here already.
        for (const Index& index : variable.gathers)
            if (const Expr* value = index.expression())
                for (Operand& o : operands(*value)) inputs.push_back(std::move(o));
        add({Shape::transfer, {}, variable.name, "load " + variable.name, std::move(inputs), to, {}, 0, false});
        current_[at(load.variable)] = to;
    }

    void read(const Store& store) {
        const Variable& variable = kernel_.variables[store.variable];
        const ValueId to = add_array(variable.array);
        add({Shape::transfer,
             {},
             diagram_.array(variable.array).name,
             "store " + variable.name,
             {operand(current_[at(store.variable)])},
             to,
             {},
             0,
             false});
        memory_[variable.array] = to;
        stored_.insert(variable.array);
    }

    void read(const Init& init) {
        const ValueId to = add_variable(init.variable);
        const std::string number = init.value == -std::numeric_limits<double>::infinity() ? "−∞"
                                   : init.value == std::numeric_limits<double>::infinity()
                                       ? "∞"
                                       : fmt::format("{:g}", init.value);
        const std::string& name = kernel_.variables[init.variable].name;
        add({Shape::start, {{number}}, name, "init " + name + " = " + number, {}, to, {}, 0, false});
        current_[at(init.variable)] = to;
    }

    void read(const Compute& c) {
        const Variable& variable = kernel_.variables[c.variable];
        std::vector<Operand> inputs = operands(c.body);
        if (c.carry)
            for (Operand& o : operands(c.carry))
                if (!contains(inputs, o)) inputs.push_back(std::move(o));
        const ValueId to = add_variable(c.variable);
        Sign sign = sign_of(c.reduce, c.body, c.carry, ArrayId::of(c.variable.place()), names_);
        // The same value at another level has been passed there.
        if (sign.shape == Shape::copy && inputs.size() == 1 &&
            out_.values[at(inputs[0].value)].level != out_.values[at(to)].level)
            sign.shape = Shape::transfer;
        add({sign.shape, sign.label, variable.name, described(c), std::move(inputs), to, c.reduce_axes, 0,
             sign.shape == Shape::contraction && options_.detail >= Detail::subloops});
        current_[at(c.variable)] = to;
    }

    void read(const Free& ended) {
        if (current_[at(ended.variable)] < 0 || out_.operations.empty()) return;
        out_.values[at(current_[at(ended.variable)])].held = static_cast<int>(out_.operations.size()) - 1;
    }

    void read(const TileLoop& loop) {
        const bool is_unrolled = options_.turns > 1 && !loop.is_sub;
        const std::vector<ValueId> before = current_;
        loops_.push_back(&loop);
        const std::size_t first = out_.operations.size();
        for (turn_ = 0; turn_ < (is_unrolled ? options_.turns : 1); ++turn_) {
            if (is_unrolled) forget_cuts(loop.axis);
            read(loop.body);
        }
        turn_ = 0;
        loops_.pop_back();
        if (is_unrolled || out_.operations.size() == first) return;
        Bracket bracket{.first = first, .last = out_.operations.size(), .is_sub = loop.is_sub};
        const std::string& axis = diagram_.axis(loop.axis).name;
        bracket.label = size_label("", axis);
        bracket.label.push_back({" by "});
        for (svg::Span& span : size_label(loop.is_sub ? "u" : "s", axis)) bracket.label.push_back(std::move(span));
        for (std::size_t v = 0; v < current_.size(); ++v) {
            if (before[v] < 0 || current_[v] == before[v]) continue;
            bracket.maintained.push_back(current_[v]);
            out_.values[at(before[v])].maintained = out_.values[at(current_[v])].maintained = true;
        }
        out_.brackets.push_back(std::move(bracket));
    }

    /// In the next turn a chunk may be called otherwise.
    void forget_cuts(AxisId axis) {
        for (std::vector<CutSize>& cuts : cuts_)
            if (any_of(cuts, [&](const CutSize& cut) { return cut.axis == axis && cut.letter != 0; })) cuts.clear();
    }

    void add(Operation operation) {
        operation.level = out_.values[at(operation.output)].level;
        if (operation.shape == Shape::transfer)
            operation.level = std::max(operation.level, out_.values[at(operation.inputs[0].value)].level);
        out_.operations.push_back(std::move(operation));
    }

    [[nodiscard]] Operand operand(ValueId value) const {
        Operand out{value, {}};
        for (const Wire& wire : out_.values[at(value)].wires) out.axes.push_back(wire.axis);
        return out;
    }

    [[nodiscard]] std::vector<Operand> operands(const Expr& e) const {
        std::vector<Operand> out;
        for (const Reading& r : readings_of(e)) {
            const ValueId value = current_[at(r.array)];
            if (value >= 0) out.push_back({value, r.axes});
        }
        return out;
    }

    std::string described(const Compute& c) const {
        std::string body = to_string(c.body, names_);
        if (c.reduce) body = fmt::format("{}({}) {}", napkin::name(*c.reduce), axes_text(c.reduce_axes), body);
        if (c.carry) {
            const std::string carry = to_string(c.carry, names_);
            body = c.reduce == ReduceOp::sum ? carry + " + " + body
                                             : fmt::format("{}({}, {})", napkin::name(*c.reduce), carry, body);
        }
        return kernel_.variables[c.variable].name + " = " + body;
    }

    [[nodiscard]] std::string axes_text(const std::vector<AxisId>& axes) const {
        std::string out;
        for (const AxisId axis : axes) out += (out.empty() ? "" : ", ") + diagram_.axis(axis).name;
        return out;
    }

    ValueId in_memory(ArrayId array) {
        if (const auto found = memory_.find(array); found != memory_.end()) return found->second;
        const ValueId value = add_array(array);
        out_.inputs.push_back(value);
        return memory_[array] = value;
    }

    ValueId add_array(ArrayId array) {
        Value value;
        value.name = diagram_.array(array).name;
        for (const AxisId axis : diagram_.array(array).axes) value.wires.push_back(wire(axis, {axis, 0, 0}));
        if (options_.detail >= Detail::precision) value.precision = name_of(diagram_.array(array).type);
        return add(std::move(value));
    }

    ValueId add_variable(VariableId id) {
        const Variable& variable = kernel_.variables[id];
        Value value;
        value.name = variable.name;
        value.level = 1;
        if (steps_ && options_.detail >= Detail::levels) {
            const AssignedVariable& where = steps_->assigned.variables[id];
            value.level = where.at == HeldAt::memory ? 1 : where.at == HeldAt::threads ? 2 : 3;
            if (options_.detail >= Detail::precision) value.precision = name_of(where.type);
        }
        // A variable's size is that of where it was defined first.
        std::vector<CutSize>& cuts = cuts_[at(id)];
        if (cuts.empty())
            cuts = steps_ && options_.detail >= Detail::levels ? steps_->cuts[at(id)] : cuts_here(variable);
        for (std::size_t i = 0; i < variable.dims.size(); ++i) {
            const AxisId axis = variable.dims[i].single_axis();
            Wire made = wire(axis, cuts[i]);
            if (axis < 0) {
                made.name = to_string(variable.dims[i], names_);
                made.label = {{svg::shortened(made.name, 150)}};
            }
            value.wires.push_back(std::move(made));
        }
        return add(std::move(value));
    }

    ValueId add(Value value) {
        out_.values.push_back(std::move(value));
        return static_cast<ValueId>(out_.values.size()) - 1;
    }

    [[nodiscard]] std::vector<CutSize> cuts_here(const Variable& variable) const {
        std::vector<CutSize> out;
        for (const Index& dim : variable.dims) {
            CutSize cut{dim.single_axis(), 0, 0};
            if (contains(kernel_.group_axes, cut.axis) && !contains(kernel_.recompute_axes, cut.axis)) cut.letter = 'g';
            for (const TileLoop* loop : loops_)
                if (loop->axis == cut.axis)
                    cut.letter = loop->is_sub ? 'u' : options_.first_is_rest && turn_ == 0 ? rest : 's';
            out.push_back(cut);
        }
        return out;
    }

    [[nodiscard]] Wire wire(AxisId axis, const CutSize& cut) const {
        if (axis < 0) return {};
        Wire out{axis, {}, diagram_.axis(axis).name};
        const std::string letter = cut.letter == 0 || cut.letter == rest ? "" : std::string(1, cut.letter);
        out.label = size_label(letter, out.name, cut.letter == rest ? "′" : "");
        if (options_.detail >= Detail::divisors)
            for (const auto& [size, divisor] : divisors_)
                if (size.axis == cut.axis && size.letter == cut.letter && divisor > 1)
                    out.label.push_back({fmt::format("({})", divisor), svg::Span::Shift::super});
        return out;
    }

    static std::string name_of(DType type) { return std::string(napkin::name(type)); }

    static constexpr char rest = '-';  ///< in place of a letter: all but the last chunk
    int turn_ = 0;
    const Diagram& diagram_;
    const TileKernel& kernel_;
    const KernelSteps* steps_;
    const ProgramOptions& options_;
    ExprNames names_;
    Circuit out_;
    std::vector<ValueId> current_;
    std::vector<std::vector<CutSize>> cuts_;
    std::map<ArrayId, ValueId> memory_;
    std::set<ArrayId> stored_;
    std::vector<const TileLoop*> loops_;
    std::vector<std::pair<CutSize, std::int64_t>> divisors_;
};

}  // namespace

Circuit program_circuit(const Diagram& diagram, const TileKernel& kernel, const ProgramOptions& options) {
    Circuit out = ProgramReader(diagram, kernel, nullptr, options).run();
    out.levels = {{0, "memory"}, {1, "a core's memory"}};
    return out;
}

Circuit assigned_circuit(const Diagram& diagram, const KernelSteps& steps, const std::string& memory_name, Detail detail) {
    const ProgramOptions options{detail, 1};
    const TileKernel& kernel = detail == Detail::pseudocode ? steps.expanded
                               : detail == Detail::subloops ? steps.in_parts
                                                            : steps.assigned.kernel;
    Circuit out = ProgramReader(diagram, kernel, &steps, options).run();
    if (detail < Detail::levels)
        out.levels = {{0, "memory"}, {1, "a core's memory"}};
    else
        out.levels = {{0, memory_name},
                      {1, steps.budgets.empty() ? "core" : steps.budgets[0].level},
                      {2, "threads"},
                      {3, steps.is_planned ? "registers" : "tensor cores"}};
    return out;
}

}  // namespace napkin::draw
