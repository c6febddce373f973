#include "derive/read_before.hpp"

#include <fmt/format.h>

#include "algebra/number.hpp"
#include "diagram/guards.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
/// The arrays by whose values the read's indices are made.
std::vector<ArrayId> index_arrays(const Read& r) {
    std::vector<ArrayId> out;
    for (const Index& index : r.indices)
        if (index.is_gathered()) append(out, read_arrays(*index.expression()));
    return out;
}

/// Inside a kernel an array is a tile: it can be read only where it was computed, at its own axes. Why a read of one of
/// the kernel's arrays cannot be.
std::optional<Refusal> refused_index(const Diagram& d, const std::set<ArrayId>& kernel, const Equation& e, const Expr& node) {
    const auto* r = as<Read>(node);
    if (!r) return std::nullopt;
    const std::string& target = d.array(e.target).name;
    for (const ArrayId inner : index_arrays(*r)) {
        if (!kernel.contains(inner)) continue;
        const std::string& name = d.array(inner).name;
        return Refusal{fmt::format("fuse {} with {}", name, target),
                       fmt::format("{} says where {} is read, so it must be in memory before the kernel begins", name,
                                   to_string(node, d.names())),
                       e.range};
    }
    if (!kernel.contains(r->array)) return std::nullopt;
    const auto& axes = d.array(r->array).axes;
    for (std::size_t k = 0; k < axes.size(); ++k) {
        if (r->indices[k].is_axis(axes[k])) continue;
        return Refusal{
            fmt::format("fuse {} with {}", d.array(r->array).name, target),
            fmt::format("{} is read at other indices than its own, so a tile of it does not hold what is read",
                        to_string(node, d.names())),
            e.range};
    }
    return std::nullopt;
}

/// A computed integer that says how far an axis counts, as in where(x < n[q], …), where the node is such a choice.
/// Loops over the axis skip what it leaves out, by a look at it before the kernel begins.
struct Bound {
    ArrayId array;
    AxisId axis;
};
std::vector<Bound> bounds_of(const Diagram& d, const Expr& node) {
    std::vector<Bound> out;
    const auto* s = as<Select>(node);
    if (!s) return out;
    for (const MaskForm& form : implied_mask_forms(s->condition, true))
        for (const Expr& side : {form.plus, form.minus}) {
            if (!side || !is_integer(kind_of(d.array(as<Read>(side)->array).type))) continue;
            for (const auto& [axis, factor] : form.affine.terms)
                if (!depends_on_axis(side, axis)) out.push_back({as<Read>(side)->array, axis});
        }
    return out;
}

std::optional<Refusal> refused_bound(const Diagram& d, const std::set<ArrayId>& kernel, const Equation& e, const Expr& node) {
    for (const auto& [array, axis] : bounds_of(d, node)) {
        if (!kernel.contains(array)) continue;
        const std::string& name = d.array(array).name;
        return Refusal{fmt::format("fuse {} with {}", name, d.array(e.target).name),
                       fmt::format("{} says how far {} counts, so it must be in memory before the kernel begins", name,
                                   d.axis(axis).name),
                       e.range};
    }
    return std::nullopt;
}

}  // namespace

std::optional<Refusal> refused_read(const Diagram& d, const std::set<ArrayId>& kernel) {
    for (const auto& e : d.equations) {
        if (!kernel.contains(e.target)) continue;
        std::optional<Refusal> refusal;
        visit(e.body, [&](const Expr& node) {
            if (!refusal) refusal = refused_index(d, kernel, e, node);
            if (!refusal) refusal = refused_bound(d, kernel, e, node);
        });
        if (refusal) return refusal;
    }
    return std::nullopt;
}

std::set<ArrayId> read_before(const Diagram& d) {
    std::set<ArrayId> out;
    for (const Equation& e : d.equations)
        visit(e.body, [&](const Expr& node) {
            for (const Bound& bound : bounds_of(d, node)) out.insert(bound.array);
            if (const auto* r = as<Read>(node))
                for (const ArrayId inner : index_arrays(*r)) out.insert(inner);
        });
    for (auto e = d.equations.rbegin(); e != d.equations.rend(); ++e)
        if (out.contains(e->target))
            for (const ArrayId source : read_arrays(e->body)) out.insert(source);
    return out;
}

}  // namespace napkin
