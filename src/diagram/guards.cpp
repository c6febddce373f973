#include "diagram/guards.hpp"

#include <map>
#include <set>

#include "algebra/expr_walk.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
constexpr std::int64_t most_points = std::int64_t{1} << 22;  ///< that are walked where no form decides

bool same(const Expr& a, const Expr& b) { return a == nullptr || b == nullptr ? a == b : equal(a, b); }

/// a + factor·b, of which one reads nothing where both are on one side.
MaskForm plus_times(MaskForm a, const MaskForm& b, std::int64_t factor) {
    a.affine = a.affine + b.affine * factor;
    for (const auto& [axis, count] : b.sizes) {
        const auto place = std::lower_bound(a.sizes.begin(), a.sizes.end(), axis,
                                            [](const auto& term, AxisId id) { return term.first < id; });
        if (place == a.sizes.end() || place->first != axis)
            a.sizes.insert(place, {axis, count * factor});
        else if ((place->second += count * factor) == 0)
            a.sizes.erase(place);
    }
    return a;
}

/// A sum of axes, sizes and whole numbers, each times a whole number.
std::optional<MaskForm> sum_of_sizes(const Expr& e) {
    if (auto form = affine_form(e)) return MaskForm{*std::move(form), {}, nullptr, nullptr};
    if (const auto* size = as<AxisSize>(e)) return MaskForm{{}, {{size->axis, 1}}, nullptr, nullptr};
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::neg) {
        const auto a = sum_of_sizes(u->a);
        return a ? std::optional(plus_times({}, *a, -1)) : std::nullopt;
    }
    const auto* b = as<Binary>(e);
    if (!b || (b->op != BinaryOp::add && b->op != BinaryOp::sub && b->op != BinaryOp::mul)) return std::nullopt;
    const auto x = sum_of_sizes(b->a), y = x ? sum_of_sizes(b->b) : std::nullopt;
    if (!y) return std::nullopt;
    if (b->op != BinaryOp::mul) return plus_times(*x, *y, b->op == BinaryOp::add ? 1 : -1);
    const auto is_number = [](const MaskForm& f) { return f.sizes.empty() && f.affine.terms.empty(); };
    if (is_number(*x)) return plus_times({}, *y, x->affine.constant);
    if (is_number(*y)) return plus_times({}, *x, y->affine.constant);
    return std::nullopt;
}

/// The left side minus the right one; none where a side is neither such a sum nor a single read.
std::optional<MaskForm> difference(const Expr& left, const Expr& right) {
    const auto side = [](const Expr& e) { return as<Read>(e) ? std::optional(MaskForm{}) : sum_of_sizes(e); };
    const auto x = side(left), y = side(right);
    if (!x || !y) return std::nullopt;
    MaskForm out = plus_times(*x, *y, -1);
    if (as<Read>(left)) out.plus = left;
    if (as<Read>(right)) out.minus = right;
    return out;
}

class GuardWalk {
public:
    GuardWalk(const std::function<bool(const Read&)>& wanted,
              const std::function<void(const Read&, const std::vector<Guard>&)>& f)
        : wanted_(wanted), f_(f) {}

    void walk(const Expr& e) {
        if (!holds_wanted(e)) return;
        std::vector<std::pair<const ExprNode*, bool>> way;
        for (const Guard& g : guards_) way.emplace_back(g.condition.get(), g.holds);
        if (!seen_.insert({e.get(), std::move(way)}).second) return;
        if (const auto* r = as<Read>(e); r && wanted_(*r)) f_(*r, guards_);
        const auto* s = as<Select>(e);
        if (!s) return for_each_child(*e, [&](const Expr& child) { walk(child); });
        walk(s->condition);
        for (const bool holds : {true, false}) {
            guards_.push_back({s->condition, holds});
            walk(holds ? s->a : s->b);
            guards_.pop_back();
        }
    }

private:
    bool holds_wanted(const Expr& e) {
        const auto [found, fresh] = holds_.try_emplace(e.get(), false);
        if (!fresh) return found->second;
        bool holds = false;
        visit(e, [&](const Expr& node) { holds = holds || (as<Read>(node) && wanted_(*as<Read>(node))); });
        return holds_[e.get()] = holds;
    }

    const std::function<bool(const Read&)>& wanted_;
    const std::function<void(const Read&, const std::vector<Guard>&)>& f_;
    std::vector<Guard> guards_;
    std::map<const ExprNode*, bool> holds_;
    std::set<std::pair<const ExprNode*, std::vector<std::pair<const ExprNode*, bool>>>> seen_;
};

/// The parts of a conjunction, each of which holds where the condition does (or, with `holds` false, does not).
void take_apart(const Expr& condition, bool holds, std::vector<Expr>& parts) {
    const auto* u = as<Unary>(condition);
    if (u && u->op == UnaryOp::logical_not) return take_apart(u->a, !holds, parts);
    const auto* b = as<Binary>(condition);
    if (b && b->op == (holds ? BinaryOp::logical_and : BinaryOp::logical_or)) {
        take_apart(b->a, holds, parts);
        return take_apart(b->b, holds, parts);
    }
    parts.push_back(holds ? condition : unary(UnaryOp::logical_not, condition));
}

/// A rest of the dimension's own size lies inside, whatever it is the rest of.
bool wraps_around(const Index& index, AxisId dimension) {
    const auto* rest = index.expression() ? as<Binary>(*index.expression()) : nullptr;
    const auto* size = rest && rest->op == BinaryOp::mod ? as<AxisSize>(rest->b) : nullptr;
    return size && size->axis == dimension;
}

/// Adds the axes of the indices that may leave, those of elements in indices included; false: no index may.
bool add_leaving_axes(const Diagram& diagram, const Expr& e, const MayLeave& may_leave, std::set<AxisId>& axes) {
    bool leaves = false;
    visit(e, [&](const Expr& node) {
        const auto* r = as<Read>(node);
        for (std::size_t d = 0; r && d < r->indices.size(); ++d) {
            const AxisId dimension = diagram.array(r->array).axes[d];
            if (wraps_around(r->indices[d], dimension) || !may_leave(r->indices[d], dimension)) continue;
            leaves = true;
            for (const AxisId axis : r->indices[d].axes()) axes.insert(axis);
        }
    });
    return leaves;
}

/// A condition of coordinates at a point.
double value_of(const Expr& e, const std::vector<std::int64_t>& point) {
    if (const auto* c = as<Constant>(e)) return c->value;
    if (const auto* i = as<AxisIndex>(e)) return static_cast<double>(point[at(i->axis)]);
    if (const auto* u = as<Unary>(e)) return apply(u->op, value_of(u->a, point));
    if (const auto* b = as<Binary>(e)) return apply(b->op, value_of(b->a, point), value_of(b->b, point));
    if (const auto* s = as<Select>(e)) return value_of(value_of(s->condition, point) != 0 ? s->a : s->b, point);
    return value_of(std::get<Cast>(e->v).a, point);
}

/// No point of the axes at which the guards are as they say has the index outside.
bool is_inside_everywhere(const Index& index, std::int64_t extent, const std::vector<Guard>& guards, const Extents& extents) {
    std::set<AxisId> axes;
    for (const AxisId axis : index.axes()) axes.insert(axis);
    for (const Guard& guard : guards)
        for (const AxisId axis : free_axes(guard.condition)) axes.insert(axis);
    std::int64_t points = 1;
    for (const AxisId axis : axes) points = std::min(most_points + 1, points * std::min(most_points, extents[axis]));
    if (points > most_points) return false;
    std::vector<std::int64_t> point(extents.size(), 0);
    for (std::int64_t number = 0; number < points; ++number) {
        std::int64_t rest = number;
        for (const AxisId axis : axes) {
            const std::int64_t size = extents[axis];
            point[at(axis)] = rest % size;
            rest /= size;
        }
        const std::int64_t value = value_at(index, point, {});
        if (value >= 0 && value < extent) continue;
        const bool taken = all_of(
            guards, [&](const Guard& guard) { return (value_of(guard.condition, point) != 0) == guard.holds; });
        if (taken) return false;
    }
    return true;
}

}  // namespace

void for_each_guarded_read(const Expr& e, const std::function<bool(const Read&)>& wanted,
                           const std::function<void(const Read&, const std::vector<Guard>&)>& f) {
    GuardWalk(wanted, f).walk(e);
}

const Select* zero_elsewhere(const Expr& e) {
    const auto* select = as<Select>(e);
    const auto* zero = select ? as<Constant>(select->b) : nullptr;
    return zero && zero->value == 0 ? select : nullptr;
}

Expr both_hold(const Expr& a, const Expr& b) { return a && b ? binary(BinaryOp::logical_and, a, b) : a ? a : b; }

std::vector<Expr> conditions_in(const Expr& condition) {
    std::vector<Expr> parts;
    take_apart(condition, true, parts);
    return parts;
}

Expr guard_of_reads(const Diagram& diagram, const Expr& e, const Expr& condition, const MayLeave& may_leave) {
    std::set<AxisId> axes;
    if (!condition || !add_leaving_axes(diagram, e, may_leave, axes)) return nullptr;
    const std::vector<Expr> parts = conditions_in(condition);
    std::vector<bool> taken(parts.size(), false);
    for (bool grows = true; grows;) {
        grows = false;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const std::vector<AxisId> own = free_axes(parts[i]);
            const bool touches = own.empty() || any_of(own, [&](AxisId axis) { return axes.contains(axis); });
            if (taken[i] || !touches) continue;
            taken[i] = grows = true;
            axes.insert(own.begin(), own.end());
        }
    }
    Expr guard;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!taken[i]) continue;
        // A conjunction does not keep its own reads inside: the earlier parts, which stand further out, keep those of
        // the later ones.
        guard = both_hold(guard, with_guarded_reads(diagram, parts[i], guard, may_leave));
    }
    return guard;
}

Expr with_guarded_reads(const Diagram& diagram, const Expr& e, const Expr& condition, const MayLeave& may_leave) {
    if (!condition) return e;
    std::map<const ExprNode*, Expr> done;
    const std::function<Expr(const Expr&)> guarded = [&](const Expr& node) -> Expr {
        if (const auto known = done.find(node.get()); known != done.end()) return known->second;
        Expr out = node;
        if (as<Read>(node)) {
            // The elements in its indices are read where it is.
            if (const Expr guard = guard_of_reads(diagram, node, condition, may_leave))
                out = select(guard, node, constant(0));
        } else {
            out = with_children(node, mapped<Expr>(children(node), guarded));
        }
        return done[node.get()] = out;
    };
    return guarded(e);
}

bool operator==(const MaskForm& a, const MaskForm& b) {
    return a.affine == b.affine && a.sizes == b.sizes && same(a.plus, b.plus) && same(a.minus, b.minus);
}

MaskForm with_sizes(MaskForm form, const Extents& extents) {
    for (const auto& [axis, factor] : form.sizes)
        form.affine = form.affine + Affine{{}, extents[axis], {{axis, 1}}} * factor;
    form.sizes.clear();
    for (Expr* read : {&form.plus, &form.minus})
        if (*read) *read = with_sizes(*read, extents);
    return form;
}

std::vector<MaskForm> implied_mask_forms(const Expr& condition, bool holds) {
    if (const auto* u = as<Unary>(condition); u && u->op == UnaryOp::logical_not)
        return implied_mask_forms(u->a, !holds);
    const auto* b = as<Binary>(condition);
    if (!b) return {};
    if ((b->op == BinaryOp::logical_and && holds) || (b->op == BinaryOp::logical_or && !holds))
        return united(implied_mask_forms(b->a, holds), implied_mask_forms(b->b, holds));
    const auto le = difference(b->b, b->a), ge = difference(b->a, b->b);
    if (!le || !ge) return {};
    const auto strictly = [](MaskForm form) {
        form.affine.constant -= 1;
        return form;
    };
    switch (b->op) {
        case BinaryOp::le: return {holds ? *le : strictly(*ge)};
        case BinaryOp::lt: return {holds ? strictly(*le) : *ge};
        case BinaryOp::ge: return {holds ? *ge : strictly(*le)};
        case BinaryOp::gt: return {holds ? strictly(*ge) : *le};
        case BinaryOp::eq: return holds ? std::vector<MaskForm>{*le, *ge} : std::vector<MaskForm>{};
        case BinaryOp::ne: return holds ? std::vector<MaskForm>{} : std::vector<MaskForm>{*le, *ge};
        default: return {};
    }
}

std::optional<std::vector<MaskForm>> equivalent_mask_forms(const Expr& condition, bool holds) {
    if (const auto* u = as<Unary>(condition); u && u->op == UnaryOp::logical_not)
        return equivalent_mask_forms(u->a, !holds);
    const auto* b = as<Binary>(condition);
    if (!b) return std::nullopt;
    if (b->op == (holds ? BinaryOp::logical_and : BinaryOp::logical_or)) {
        const auto x = equivalent_mask_forms(b->a, holds), y = equivalent_mask_forms(b->b, holds);
        return x && y ? std::optional(united(*x, *y)) : std::nullopt;
    }
    std::vector<MaskForm> forms = implied_mask_forms(condition, holds);
    if (forms.empty()) return std::nullopt;
    return forms;
}

std::vector<Affine> implied_forms(const Expr& condition, bool holds) {
    std::vector<Affine> out;
    for (const MaskForm& form : implied_mask_forms(condition, holds))
        if (form.is_affine()) out.push_back(form.affine);
    return out;
}

bool is_kept_inside(const Index& index, std::int64_t extent, const std::vector<Guard>& guards, const Extents& extents) {
    std::vector<Guard> known;
    std::vector<Affine> forms;
    for (const Guard& guard : guards) {
        if (!read_arrays(guard.condition).empty()) continue;
        const Expr sized = transform(guard.condition, [&](const Expr& node) -> Expr {
            const auto* size = as<AxisSize>(node);
            return size ? constant(static_cast<double>(extents[size->axis])) : node;
        });
        known.push_back({sized, guard.holds});
        forms = united(std::move(forms), implied_forms(sized, guard.holds));
    }
    const std::vector<std::int64_t> zero(extents.size(), 0);
    if (const Affine* form = index.affine()) {
        // What is at least a form that is not negative is not negative.
        const auto is_not_negative = [&](const Affine& f) {
            const auto at_least = [&](const Affine& g) { return range_of(f - g, zero, extents).low >= 0; };
            return at_least(Affine{}) || any_of(forms, at_least);
        };
        if (is_not_negative(*form) && is_not_negative(Affine{{}, extent - 1} - *form)) return true;
        if (known.empty()) return false;  // the range of an affine form is exact
    }
    return is_inside_everywhere(index, extent, known, extents);
}

}  // namespace napkin
