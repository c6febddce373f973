#include "plan/copied.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "derive/converted_factors.hpp"
#include "derive/padding_in_place.hpp"
#include "diagram/guards.hpp"
#include "diagram/product.hpp"
#include "plan/blocks.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// A factor that a kernel reads from memory, in one of its sums of products.
struct Factor {
    const Read* read = nullptr;
    const Expr* other = nullptr;
    const Statement* sum = nullptr;
};

/// The copies and conversions that some product of the form needs.
class FactorCopies {
public:
    FactorCopies(const Derived& derived, const Extents& extents, const Machine& gpu)
        : d_(derived.diagram), extents_(extents), gpu_(gpu) {
        for (const Kernel& kernel : derived.kernels)
            for_each_statement(kernel, [&](const Statement& s) {
                const auto* product = s.reduce == ReduceOp::sum ? as_product(s.body) : nullptr;
                if (!product) return;
                for (const auto& [factor, other] : {std::pair(&product->a, &product->b), {&product->b, &product->a}})
                    if (const auto* r = as<Read>(*factor))
                        contains(kernel.inputs, r->array) ? add(kernel, {r, other, &s}) : add_map(kernel, {r, other, &s});
            });
    }

    /// Without the arrays that products need in different copies.
    std::vector<FactorCopy> take() {
        std::erase_if(copies_,
                      [&](const FactorCopy& copy) { return contains(refused_, copy.array) || is_as_it_is(copy); });
        return std::move(copies_);
    }
    /// Those of which every product wants one type.
    std::vector<FactorConversion> take_conversions() {
        std::erase_if(conversions_, [&](const FactorConversion& c) {
            return any_of(conversions_,
                          [&](const FactorConversion& other) { return other.array == c.array && other.type != c.type; });
        });
        return std::move(conversions_);
    }

private:
    [[nodiscard]] FactorCopy as_it_is(ArrayId id) const {
        FactorCopy out{id, d_.array(id).type, std::vector<int>(d_.array(id).axes.size()), 1};
        std::iota(out.order.begin(), out.order.end(), 0);
        return out;
    }
    [[nodiscard]] bool is_as_it_is(const FactorCopy& copy) const { return copy == as_it_is(copy.array); }

    void add_conversion(ArrayId id, DType type) {
        if (type != d_.array(id).type && !contains(conversions_, FactorConversion{id, type}))
            conversions_.push_back({id, type});
    }
    /// What the kernel computes of memory alone may have the other factor's type, to which it is rounded anyway. A
    /// masked array keeps its own.
    void add_map(const Kernel& kernel, const Factor& factor) {
        const auto* other = as<Read>(*factor.other);
        const ArrayId id = factor.read->array;
        if (!other) return;
        const Statement* map = nullptr;
        for_each_statement(kernel, [&](const Statement& s) {
            if (s.target == id) map = &s;
        });
        if (!map || map->reduce || map->carry ||
            !all_of(read_arrays(map->body), [&](ArrayId a) { return contains(kernel.inputs, a); }))
            return;
        Expr inner = map->body;
        while (const Select* masked = zero_elsewhere(inner)) inner = masked->a;
        const auto* own = as<Read>(inner);
        const bool is_loaded = contains(kernel.inputs, other->array);
        if (!is_loaded && !own) return;
        const DType type = d_.array(is_loaded ? other->array : own->array).type;
        if (takes_results(type)) add_conversion(id, type);
    }
    void add(const Kernel& kernel, const Factor& factor) {
        const ArrayId id = factor.read->array;
        const FactorCopy copy = needed(kernel, factor);
        add_conversion(id, copy.type);
        const auto known = find_if(copies_, [&](const FactorCopy& c) { return c.array == id; });
        if (known == copies_.end())
            copies_.push_back(copy);
        else if (!(*known == copy))
            refused_.push_back(id);
    }

    [[nodiscard]] FactorCopy needed(const Kernel& kernel, const Factor& factor) const {
        FactorCopy copy = as_it_is(factor.read->array);
        if (copy.order.empty() || !is_multiplied(copy.type)) return copy;
        const auto* other = as<Read>(*factor.other);
        const DType others = is_computed(kernel, *factor.other) ? DType::bf16 : d_.array(other->array).type;
        if (!takes_results(copy.type) && takes_results(others) && bytes(copy.type) == 1 && is_float(copy.type))
            copy.type = others;
        if (!may_be_either_major(copy.type) || is_along_batch(factor)) put_sum_last(factor, copy);
        const std::int64_t row = extents_[d_.array(copy.array).axes[at(copy.order.back())]] * bytes(copy.type);
        // Rows that begin inside a sector share it with their neighbours, and it is read for both. On one H200 a
        // product of 4096×4096×4104 in bf16 takes 289 µs. One of 4096×4096×4112, in whole sectors, takes 179 µs.
        if (copy.order.size() > 1 && row % operand_stride_bytes != 0)
            copy.row_bytes = std::max(operand_stride_bytes, static_cast<std::int64_t>(gpu_.sector_bytes.value));
        return copy;
    }

    /// The dimension along the sum becomes the last, where there is one such.
    static void put_sum_last(const Factor& factor, FactorCopy& copy) {
        const auto is_summed = [&](int d) {
            return any_of(factor.sum->reduce_axes, [&](AxisId a) { return factor.read->indices[at(d)].depends_on(a); });
        };
        if (is_summed(copy.order.back()) || count_if(copy.order, is_summed) != 1) return;
        std::stable_partition(copy.order.begin(), copy.order.end(), [&](int d) { return !is_summed(d); });
    }

    /// Whether neighbours in memory are of different products, as c in sum(k) A[i, k, c] * B[j, k, c] has it.
    static bool is_along_batch(const Factor& factor) {
        const AxisId last = factor.read->indices.back().single_axis();
        return last >= 0 && !contains(factor.sum->reduce_axes, last) && depends_on_axis(*factor.other, last);
    }

    static bool is_computed(const Kernel& kernel, const Expr& factor) {
        const auto* r = as<Read>(factor);
        return !r || !contains(kernel.inputs, r->array);
    }
    [[nodiscard]] bool is_multiplied(DType type) const {
        return any_of(gpu_.instructions, [&](const Instruction& i) { return i.k.contains(type); });
    }
    [[nodiscard]] bool takes_results(DType type) const {
        return any_of(gpu_.instructions, [&](const Instruction& i) { return contains(i.result_types, type); });
    }
    [[nodiscard]] bool may_be_either_major(DType type) const {
        return any_of(gpu_.instructions, [&](const Instruction& i) { return contains(i.either_major, type); });
    }

    const Diagram& d_;
    const Extents& extents_;
    const Machine& gpu_;
    std::vector<FactorCopy> copies_;  ///< of every factor, also those that are left as they are
    std::vector<FactorConversion> conversions_;
    std::vector<ArrayId> refused_;
};

}  // namespace

std::optional<WithCopies> with_factors(const Derived& derived, const Extents& extents, const Machine& gpu,
                                       FactorForm factors) {
    FactorCopies needed(derived, extents, gpu);
    if (factors == FactorForm::copied)
        if (const std::vector<FactorCopy> copies = needed.take(); !copies.empty())
            return with_copies(derived, extents, copies);
    std::optional<Derived> form;
    if (factors == FactorForm::padded) form = with_padding_in_place(derived);
    if (factors == FactorForm::converted)
        if (const std::vector<FactorConversion> conversions = needed.take_conversions(); !conversions.empty())
            form = with_conversions(derived, conversions);
    if (!form) return std::nullopt;
    WithCopies out{std::move(*form), extents, {}};
    for (std::size_t k = 0; k < derived.kernels.size(); ++k) out.whole.push_back(k);
    return out;
}

Result<Plan> choose_copied(const Derived& derived, const Extents& extents, const Machine& gpu,
                           const std::vector<ScheduleItem>& by_user, const PlanOptions& options) {
    auto best = choose_blocks(derived, extents, gpu, by_user, options);
    // In a program of several kernels, an override that this kernel refuses may go unreported (why_no_mma). So another
    // form without tensor cores is not taken, and one with them is where a line asks for them.
    const auto on_tensor_cores = [](const Plan& plan) {
        return any_of(plan.kernels, [](const KernelPlan& kernel) { return kernel.scheduled.on_tensor_cores(); });
    };
    const auto brings_zeros = [](const Plan& plan) {
        return all_of(plan.kernels, [](const KernelPlan& kernel) {
            const ScheduledKernel& k = kernel.scheduled;
            return all_of(k.layouts.ids(),
                          [&](VariableId v) { return !k.variable(v).is_zero_outside || k.is_operand(v); });
        });
    };
    const bool asks = any_of(by_user, [](const ScheduleItem& item) { return item.kind == ChoiceKind::mma_m; });
    for (const FactorForm factors : other_factors) {
        const auto with = with_factors(derived, extents, gpu, factors);
        if (!with) continue;
        auto other = choose_blocks(with->form, with->extents, gpu, by_user, options);
        if (!other || !on_tensor_cores(*other) || !brings_zeros(*other)) continue;
        if (best && (!asks || on_tensor_cores(*best)) && other->seconds() >= best->seconds()) continue;
        for (KernelPlan& kernel : other->kernels) kernel.whole = with->whole[kernel.whole];
        other->change.factors = factors;
        best = std::move(other);
    }
    return best;
}

}  // namespace napkin
