#include "plan/copied.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

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

/// The copies that some product of the form needs.
class FactorCopies {
public:
    FactorCopies(const Derived& derived, const Extents& extents, const Machine& gpu)
        : d_(derived.diagram), extents_(extents), gpu_(gpu) {
        for (const Kernel& kernel : derived.kernels)
            for_each_statement(kernel, [&](const Statement& s) {
                const auto* product = s.reduce == ReduceOp::sum ? as_product(s.body) : nullptr;
                if (!product) return;
                for (const auto& [factor, other] : {std::pair(&product->a, &product->b), {&product->b, &product->a}})
                    if (const auto* r = as<Read>(*factor); r && contains(kernel.inputs, r->array))
                        add(kernel, {r, other, &s});
            });
    }

    /// Without the arrays that products need in different copies.
    std::vector<FactorCopy> take() {
        std::erase_if(copies_,
                      [&](const FactorCopy& copy) { return contains(refused_, copy.array) || is_as_it_is(copy); });
        return std::move(copies_);
    }

private:
    [[nodiscard]] FactorCopy as_it_is(ArrayId id) const {
        FactorCopy out{id, d_.array(id).type, std::vector<int>(d_.array(id).axes.size()), 1};
        std::iota(out.order.begin(), out.order.end(), 0);
        return out;
    }
    [[nodiscard]] bool is_as_it_is(const FactorCopy& copy) const { return copy == as_it_is(copy.array); }

    void add(const Kernel& kernel, const Factor& factor) {
        const ArrayId id = factor.read->array;
        const FactorCopy copy = needed(kernel, factor);
        const auto known = find_if(copies_, [&](const FactorCopy& c) { return c.array == id; });
        if (known == copies_.end())
            copies_.push_back(copy);
        else if (!(*known == copy))
            refused_.push_back(id);
    }

    [[nodiscard]] FactorCopy needed(const Kernel& kernel, const Factor& factor) const {
        FactorCopy copy = as_it_is(factor.read->array);
        if (copy.order.empty() || !is_multiplied(copy.type)) return copy;
        if (is_computed(kernel, *factor.other) && !takes_results(copy.type) && takes_results(DType::bf16) &&
            bytes(copy.type) == 1 && is_float(copy.type))
            copy.type = DType::bf16;
        if (!may_be_either_major(copy.type)) put_sum_last(factor, copy);
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
    std::vector<ArrayId> refused_;
};

}  // namespace

std::optional<WithCopies> with_copied_factors(const Derived& derived, const Extents& extents, const Machine& gpu) {
    const std::vector<FactorCopy> copies = FactorCopies(derived, extents, gpu).take();
    if (copies.empty()) return std::nullopt;
    return with_copies(derived, extents, copies);
}

Result<Plan> choose_copied(const Derived& derived, const Extents& extents, const Machine& gpu,
                           const std::vector<ScheduleItem>& by_user, const PlanOptions& options) {
    auto as_it_is = choose_blocks(derived, extents, gpu, by_user, options);
    const auto with = with_copied_factors(derived, extents, gpu);
    if (!with) return as_it_is;
    auto copied = choose_blocks(with->form, with->extents, gpu, by_user, options);
    // In a program of several kernels, an override that this kernel refuses may go unreported (why_no_mma). So a copied
    // form without tensor cores is not taken, and one with them is where a line asks for them.
    const auto on_tensor_cores = [](const Plan& plan) {
        return any_of(plan.kernels, [](const KernelPlan& kernel) { return kernel.scheduled.on_tensor_cores(); });
    };
    const bool asks = any_of(by_user, [](const ScheduleItem& item) { return item.kind == ChoiceKind::mma_m; }) &&
                      as_it_is && !on_tensor_cores(*as_it_is);
    if (!copied || !on_tensor_cores(*copied)) return as_it_is;
    if (as_it_is && !asks && copied->seconds() >= as_it_is->seconds()) return as_it_is;
    for (KernelPlan& kernel : copied->kernels) kernel.whole = with->whole[kernel.whole];
    copied->change.has_copies = true;
    return copied;
}

}  // namespace napkin
