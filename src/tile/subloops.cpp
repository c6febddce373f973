#include "tile/subloops.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

bool reduces(const Compute& compute, AxisId axis) { return contains(compute.reduce_axes, axis); }

class Cutting {
public:
    Cutting(const Diagram& diagram, TileKernel& kernel, VariableId variable, AxisId axis)
        : diagram_(diagram),
          kernel_(kernel),
          variable_(variable),
          axis_(axis),
          was_state_(kernel.variables[variable].is_state) {}

    /// Why it cannot be cut, or "".
    std::string run() {
        if (!cut(kernel_.body)) refuse("no reduction of the kernel computes it");
        return refusal_;
    }

private:
    [[nodiscard]] const std::string& name(VariableId v) const { return kernel_.variables[v].name; }
    [[nodiscard]] const std::string& axis_name() const { return diagram_.axis(axis_).name; }
    [[nodiscard]] Expr self() const { return read(variable_, kernel_.variables[variable_].dims); }

    void refuse(const std::string& why) {
        if (refusal_.empty()) refusal_ = why;
    }

    /// Whether the list computes the variable. Cuts every reduction that does, up to the first refusal.
    bool cut(std::vector<TileStatement>& list) {
        bool found = false;
        for (std::size_t i = 0; i < list.size() && refusal_.empty(); ++i) {
            const auto* compute = std::get_if<Compute>(&list[i]);
            if (compute && compute->variable == variable_ && compute->reduce) {
                found = true;
                if (can_be_cut(*compute)) i = cut_statement(list, i);
                continue;
            }
            const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&list[i]);
            if (!loop) continue;
            TileLoop other = **loop;
            around_.push_back(other.axis);
            if (cut(other.body)) {
                found = true;
                list[i] = std::make_shared<const TileLoop>(std::move(other));
            }
            around_.pop_back();
        }
        return found;
    }

    bool can_be_cut(const Compute& compute) {
        if (contains(around_, axis_)) {
            refuse(fmt::format("a loop cuts {} around it already", axis_name()));
        } else if (!reduces(compute, axis_) && !contains(diagram_.array(kernel_.variables[variable_].array).axes, axis_)) {
            refuse(fmt::format("it neither reduces over {} nor has it", axis_name()));
        } else if (reads_variable(compute.body, variable_)) {
            refuse("its terms read what is accumulated");
        }
        return refusal_.empty();
    }

    /// The loads along the axis that stand before the statement in the list and serve it alone. A variable that is
    /// loaded elsewhere too is left out, as both loads have the same tile.
    [[nodiscard]] std::set<VariableId> own_loads(const std::vector<TileStatement>& list, std::size_t i) const {
        std::set<VariableId> own;
        const std::vector<VariableId> uses = used_variables(kernel_, list[i]);
        for (std::size_t l = 0; l < i; ++l)
            if (const auto* load = std::get_if<Load>(&list[l]);
                load && contains(uses, load->variable) && depends_on(kernel_.variables[load->variable].dims, axis_))
                own.insert(load->variable);
        std::map<VariableId, int> times;
        for_each_statement(kernel_.body, [&](const TileStatement& s) {
            if (const auto* load = std::get_if<Load>(&s)) ++times[load->variable];
        });
        std::erase_if(own, [&](VariableId v) { return times[v] > 1; });
        for (std::size_t s = 0; s < list.size(); ++s) {
            if (s == i || std::holds_alternative<Free>(list[s])) continue;
            const auto* load = std::get_if<Load>(&list[s]);
            for (const VariableId v : used_variables(kernel_, list[s]))
                if (!load || load->variable != v) own.erase(v);
        }
        return own;
    }

    /// Replaces the statement by a loop and returns the loop's position.
    std::size_t cut_statement(std::vector<TileStatement>& list, std::size_t i) {
        const std::set<VariableId> own = own_loads(list, i);
        if (own.empty()) {
            refuse(fmt::format("it alone loads nothing along {} where it stands", axis_name()));
            return i;
        }
        const auto is_own = [&](const TileStatement& s) {
            const auto* load = std::get_if<Load>(&s);
            const auto* free = std::get_if<Free>(&s);
            return own.contains(load ? load->variable : free ? free->variable : VariableId());
        };
        Compute part = std::get<Compute>(list[i]);
        std::vector<TileStatement> inside, after, out;
        for (std::size_t s = 0; s < i; ++s) (is_own(list[s]) ? inside : out).push_back(list[s]);
        begin(part, list, i, out);
        inside.emplace_back(std::move(part));
        for (std::size_t s = i + 1; s < list.size(); ++s) (is_own(list[s]) ? inside : after).push_back(list[s]);
        out.emplace_back(std::make_shared<const TileLoop>(TileLoop{axis_, {}, std::move(inside), true}));
        const std::size_t place = out.size() - 1;
        append(out, after);
        list = std::move(out);
        return place;
    }

    /// Initialises the accumulator, so that each part continues from it.
    void begin(Compute& part, const std::vector<TileStatement>& list, std::size_t i, std::vector<TileStatement>& before) {
        const bool is_alive = was_state_ || begins_earlier(list, i);
        if (!is_alive && (!part.carry || !reduces(part, axis_))) {
            kernel_.variables[variable_].is_state = true;
            before.emplace_back(Init{variable_, identity(*part.reduce)});
        }
        if (!reduces(part, axis_)) return;
        if (part.carry && !equal(part.carry, self()))
            before.emplace_back(Compute{variable_, std::nullopt, {}, part.carry, nullptr});
        part.carry = self();
    }

    /// Whether the variable is alive before the statement in the list, or the statement's carry reads it.
    [[nodiscard]] bool begins_earlier(const std::vector<TileStatement>& list, std::size_t i) const {
        for (std::size_t s = i; s-- > 0;) {
            const auto* free = std::get_if<Free>(&list[s]);
            if (free && free->variable == variable_) return false;
            if (contains(used_variables(kernel_, list[s]), variable_)) return true;
        }
        const auto* compute = std::get_if<Compute>(&list[i]);
        return compute->carry && reads_variable(compute->carry, variable_);
    }

    const Diagram& diagram_;
    TileKernel& kernel_;
    VariableId variable_;
    AxisId axis_;
    bool was_state_;              ///< something begins it before any loop that computes it
    std::vector<AxisId> around_;  ///< of the loops around the list
    std::string refusal_;
};

}  // namespace

Result<TileKernel> with_subloops(const Diagram& diagram, TileKernel kernel,
                                 std::vector<std::pair<VariableId, AxisId>> subloops) {
    const auto& variables = kernel.variables;
    std::stable_partition(subloops.begin(), subloops.end(), [&](const auto& s) {
        return !contains(diagram.array(variables[s.first].array).axes, s.second);
    });
    std::vector<Diagnostic> errors;
    for (const auto& [variable, axis] : subloops) {
        const std::string why = Cutting(diagram, kernel, variable, axis).run();
        if (why.empty()) continue;
        const Array& array = diagram.array(variables[variable].array);
        errors.push_back({.code = "no-subloop",
                          .range = array.range,
                          .message = fmt::format("{} has no subloop over {}: {}", array.name, diagram.axis(axis).name, why),
                          .expected = "a reduction, and an axis along which it alone loads",
                          .hint = ""});
    }
    if (!errors.empty()) return errors;
    return kernel;
}

SubloopsOver with_subloops_over(const Diagram& diagram, TileKernel kernel, AxisId axis) {
    std::vector<VariableId> concerned;
    for_each_statement(kernel.body, [&](const TileStatement& s) {
        const auto* compute = std::get_if<Compute>(&s);
        if (!compute || !compute->reduce || contains(concerned, compute->variable)) return;
        const bool along = contains(diagram.array(kernel.variables[compute->variable].array).axes, axis);
        if (along || reduces(*compute, axis)) concerned.push_back(compute->variable);
    });
    SubloopsOver out;
    for (const VariableId v : concerned) {
        auto cut = with_subloops(diagram, kernel, {{v, axis}});
        if (cut.ok()) {
            kernel = std::move(cut).value();
            ++out.num_cut;
        } else if (out.refusal.empty()) {
            out.refusal = cut.errors().front().message;
        }
    }
    out.kernel = std::move(kernel);
    return out;
}

}  // namespace napkin
