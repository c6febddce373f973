#include "plan/misses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "diagram/product.hpp"
#include "schedule/fragments.hpp"
#include "schedule/simulate.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// An access is told where it brings so many times its bytes, and what it brings for nothing is so much of all that
/// the kernel moves.
constexpr double worth_telling = 1.25, worth_a_line = 0.02;
/// Columns of a tile, and values of a K block, with which a kernel is asked for its products.
constexpr std::int64_t tried_size = 64;

class Misses {
public:
    explicit Misses(const KernelPlan& plan)
        : k_(plan.scheduled),
          diagram_(k_.program->diagram),
          moved_bytes_(plan.time.transfers * static_cast<double>(k_.value_bytes())) {}

    std::vector<Miss> run() {
        std::vector<Miss> out;
        if (k_.in_blocks() && !k_.unit.matrix.empty())
            for (const Step& step : k_.steps)
                if (step.atom >= 0)
                    if (auto miss = product(step)) out.push_back(std::move(*miss));
        std::set<std::pair<VariableId, bool>> told;
        for (const Step& step : k_.steps)
            if (auto miss = access(step, told)) out.push_back(std::move(*miss));
        return out;
    }

private:
    [[nodiscard]] const std::string& axis_name(AxisId axis) const { return diagram_.axis(axis).name; }
    [[nodiscard]] const std::string& name(VariableId id) const { return k_.variable(id).name; }
    [[nodiscard]] std::string types_of_instructions() const {
        std::vector<std::string> names;
        for (const Instruction& i : k_.unit.matrix)
            for (const auto& [type, k] : i.k)
                if (!contains(names, napkin::name(type))) names.emplace_back(napkin::name(type));
        return join(names, ", ");
    }
    [[nodiscard]] bool is_taken(DType type) const {
        return any_of(k_.unit.matrix, [&](const Instruction& i) { return i.k.contains(type); });
    }

    // ---- products

    std::optional<Miss> product(const Step& step) const {
        const auto& compute = std::get<Compute>(*step.statement);
        const auto factors = factors_of(compute.body);
        if (!factors || compute.reduce != ReduceOp::sum || k_.atom(step).kind == AtomKind::mma) return std::nullopt;
        Miss out{fmt::format("{} runs off the tensor cores", name(compute.variable)), "", ""};
        (void)(is_of_types(*factors, out) || is_of_sums(compute, *factors, out) || is_of_two_arrays(compute, out) ||
               is_of_tiles(compute, *factors, out) || is_of_rows(loaded(*factors), out) || is_alone(out));
        return out;
    }

    /// The two arrays of the first product in what is summed, with nothing but masks and factors around it.
    using Factors = std::pair<const Read*, const Read*>;
    [[nodiscard]] static std::optional<Factors> factors_of(const Expr& e) {
        if (const auto* s = as<Select>(e)) {
            const auto first = factors_of(s->a);
            return first ? first : factors_of(s->b);
        }
        const auto* b = as_product(e);
        if (!b) return std::nullopt;
        const Read *x = as<Read>(b->a), *y = as<Read>(b->b);
        if (x && y) return Factors(x, y);
        const auto first = factors_of(b->a);
        return first ? first : factors_of(b->b);
    }

    /// Those of the factors that come from memory.
    [[nodiscard]] std::vector<VariableId> loaded(const Factors& factors) const {
        std::vector<VariableId> out;
        for (const Read* r : {factors.first, factors.second})
            if (is_loaded(k_, r->variable())) out.push_back(r->variable());
        return out;
    }

    bool is_of_types(const Factors& both, Miss& out) const {
        const std::vector<VariableId> factors = loaded(both);
        std::vector<std::string> wrong;
        std::set<DType> types;
        for (const VariableId v : factors) {
            const DType type = k_.variable(v).memory_type;
            types.insert(type);
            if (!is_taken(type)) wrong.push_back(fmt::format("{} is {}", name(v), napkin::name(type)));
        }
        if (wrong.size() == factors.size() && !wrong.empty()) {
            out.why = fmt::format("{}, and instructions multiply {}", join(wrong, ", "), types_of_instructions());
            out.change = "one of these types in the text";
            return true;
        }
        if (types.size() > 1 &&
            none_of(k_.unit.matrix, [&](const Instruction& i) { return multiplies(i, *types.begin(), *types.rbegin()); })) {
            const auto type_of = [&](std::size_t i) { return napkin::name(k_.variable(factors[i]).memory_type); };
            out.why = fmt::format("{} is {} and {} is {}, and no instruction multiplies the two", name(factors[0]),
                                  type_of(0), name(factors[1]), type_of(1));
            out.change = fmt::format("one type for both in the text, as {} in {} or {} in {}", name(factors[0]),
                                     type_of(1), name(factors[1]), type_of(0));
            return true;
        }
        return factors.size() == 1 && is_of_results(both, factors[0], out);
    }

    /// Integers whose sums may need more bits than an instruction has for them.
    bool is_of_sums(const Compute& compute, const Factors& factors, Miss& out) const {
        if (!k_.facts(compute.variable).is_long) return false;
        out.why = fmt::format("sums of {} products of {} and {} may pass 32 bits, in which instructions add integers",
                              total_terms(k_, compute), name(factors.first->variable()), name(factors.second->variable()));
        out.change = "an i32 array for them in the text, in which they wrap";
        return true;
    }

    /// One factor is computed and stays in registers, where it has a type that results are rounded to.
    bool is_of_results(const Factors& both, VariableId loaded, Miss& out) const {
        const DType type = k_.variable(loaded).memory_type;
        std::vector<std::string> types;
        for (const Instruction& i : k_.unit.matrix)
            for (const DType result : i.result_types)
                if (!contains(types, napkin::name(result))) types.emplace_back(napkin::name(result));
        if (types.empty() || contains(types, napkin::name(type))) return false;
        const VariableId computed = both.first->variable() == loaded ? both.second->variable() : both.first->variable();
        const std::string any = join(types, " or ");
        out.why = fmt::format("{} is {}, and {}, which the kernel computes, is multiplied in {}: two types",
                              name(loaded), napkin::name(type), name(computed), any);
        out.change = fmt::format("{} in {} in the text", name(loaded), any);
        return true;
    }

    bool is_of_two_arrays(const Compute& compute, Miss& out) const {
        const auto* product = as_product(compute.body);
        const Read *a = product ? as<Read>(product->a) : nullptr, *b = a ? as<Read>(product->b) : nullptr;
        if (!b) {
            out.why = "what is summed is not simply a product of two arrays";
            out.change = as<Select>(compute.body) ? "the condition on one of the factors, as in where(c, A, 0) * B"
                                                  : "an equation of its own for each factor";
            return true;
        }
        if (a->array == b->array) {
            out.why = "both factors are one array";
            return true;
        }
        for (const Read* r : {a, b})
            for (const Index& index : r->indices)
                if (index.is_gathered() || index.axes().size() > 1) {
                    out.why = fmt::format("{} is read at a {} index", name(r->variable()),
                                          index.is_gathered() ? "gathered" : "shifted");
                    out.change = "an array with its values in place, by an equation of its own";
                    return true;
                }
        return false;
    }

    bool is_of_tiles(const Compute& compute, const Factors& factors, Miss& out) const {
        const std::vector<AxisId> a = axes_of(factors.first->indices), b = axes_of(factors.second->indices);
        const auto values_of_one = [&](const std::vector<AxisId>& has, const std::vector<AxisId>& lacks) {
            std::int64_t n = 1;
            for (const AxisId axis : has)
                if (!contains(lacks, axis) && !contains(compute.reduce_axes, axis)) n *= k_.extent(axis);
            return n;
        };
        if (std::min(values_of_one(a, b), values_of_one(b, a)) < 2) {
            out.why = "one factor has no axis that the other one lacks: it is a product with a vector";
            out.change = "several vectors in one array";
            return true;
        }
        std::int64_t summed = 1;
        for (const AxisId axis : compute.reduce_axes)
            if (contains(a, axis) && contains(b, axis)) summed *= k_.extent(axis);
        std::int64_t least = 0;
        for (const Instruction& i : k_.unit.matrix)
            for (const auto& [type, k] : i.k)
                if (least == 0 || k < least) least = k;
        if (summed >= least) return false;
        out.why = fmt::format("it sums {} values, and an instruction takes {} or more", summed, least);
        return true;
    }

    /// Rows that begin where no copy into an operand tile can.
    bool is_of_rows(const std::vector<VariableId>& factors, Miss& out) const {
        for (const VariableId v : factors) {
            const Variable& variable = k_.variable(v);
            const std::int64_t row = k_.extent(variable.limits.back()) * bytes(variable.memory_type);
            if (variable.dims.size() < 2 || row % operand_stride_bytes == 0) continue;
            const AxisId inner = variable.dims.back().single_axis();
            out.why = fmt::format("rows of {} have {} bytes, and are copied where they have a multiple of {}", name(v),
                                  row, operand_stride_bytes);
            if (inner >= 0)
                out.change = fmt::format("{} a multiple of {}", axis_name(inner),
                                         operand_stride_bytes / bytes(variable.memory_type));
            return true;
        }
        return false;
    }

    /// Another statement of the kernel, or nothing but the time.
    bool is_alone(Miss& out) const {
        out.why = why_not_as_a_kernel();
        if (out.why.empty())
            out.why = "the plan is predicted faster without them";
        else
            out.change = "other equations beside it, or it by itself (--no-fuse)";
        return true;
    }

    /// Why the kernel has no products in tiles of the least rows that its warps have; empty: it has.
    [[nodiscard]] std::string why_not_as_a_kernel() const {
        const auto index = static_cast<std::size_t>(k_.kernel - k_.program->kernels.data());
        std::string why;
        for (const AxisId m : k_.kernel->group_axes)
            for (const AxisId n : k_.kernel->group_axes) {
                if (m == n) continue;
                KernelSchedule schedule = k_.schedule;
                schedule.mma_m.value = m;
                for (const AxisId axis : k_.kernel->group_axes)
                    schedule.group[axis].value = axis == m   ? std::min(k_.fragment_rows(), k_.extent(m))
                                                 : axis == n ? std::min(tried_size, k_.extent(n))
                                                             : 1;
                for (auto& [axis, size] : schedule.stream) size.value = std::min(tried_size, k_.extent(axis));
                ScheduledKernel tried = with_sizes(unscheduled(k_.program, index, k_.extents, k_.unit), schedule);
                const std::string refusal = mma_roles(tried).refusal;
                if (refusal.empty()) return "";
                if (why.empty()) why = refusal;
            }
        return why;
    }

    // ---- accesses

    std::optional<Miss> access(const Step& step, std::set<std::pair<VariableId, bool>>& told) const {
        const auto* load = std::get_if<Load>(step.statement);
        const auto* store = std::get_if<Store>(step.statement);
        if ((!load && !store) || step.stays) return std::nullopt;
        const VariableId id = load ? load->variable : store->variable;
        const Variable& variable = k_.variable(id);
        if (variable.dims.empty() || !told.emplace(id, load != nullptr).second) return std::nullopt;
        const double run = contiguous_bytes(k_, step), line = k_.unit.line_bytes, times = line_waste(run, line);
        if (times < worth_telling || (times - 1) * all_bytes(variable) < worth_a_line * moved_bytes_)
            return std::nullopt;
        const AxisId inner = variable.dims.back().single_axis();
        Miss out{fmt::format("{} {} brings {:.3g} times its bytes", load ? "load" : "store", name(id), times),
                 fmt::format("{:.0f} bytes of it are contiguous, and lines have {:.0f}", run, line), ""};
        if (inner >= 0 && k_.span(inner, step.scope).tile < k_.extent(inner))
            out.change = fmt::format("more of {} in a tile, or another axis innermost", axis_name(inner));
        else
            out.change = "an array in which what a tile has lies together";
        return out;
    }

    /// Bytes of the variable's array, as far as tiles have it.
    [[nodiscard]] double all_bytes(const Variable& variable) const {
        double all = bytes(variable.memory_type);
        for (const AxisId axis : variable.limits) all *= static_cast<double>(k_.extent(axis));
        return all;
    }

    const ScheduledKernel& k_;
    const Diagram& diagram_;
    const double moved_bytes_;  ///< by the whole kernel
};

}  // namespace

std::vector<Miss> misses(const KernelPlan& plan) { return Misses(plan).run(); }

std::string to_string(const Miss& miss) {
    return fmt::format("{}: {}{}", miss.what, miss.why, miss.change.empty() ? "" : "; it takes " + miss.change);
}

}  // namespace napkin
