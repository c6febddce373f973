#include "syntax/jagged.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "algebra/linear_terms.hpp"
#include "algebra/number.hpp"
#include "diagram/empty_axes.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/guards.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

Expr whole(std::int64_t value) { return integer_constant(value); }
Expr operator+(const Expr& a, const Expr& b) { return binary(BinaryOp::add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return binary(BinaryOp::sub, a, b); }
Expr is_less(const Expr& a, const Expr& b) { return binary(BinaryOp::lt, a, b); }

/// Where the rows of a sequence begin and end: the values first and last.
struct Interval {
    Expr first, last;
};

/// An axis of packed rows.
struct Packed {
    AxisId sequence, rows;
    ArrayId offsets;
};

/// The equation at hand: how the axes of the text are written.
struct Scope {
    std::map<AxisId, Packed> owners;  ///< by sequence axis: the packed rows that say which sequence it is
    std::vector<AxisId> bound;        ///< the axes of the text
};

/// Where points count, and the reduced axes over which that is asked.
struct Guard {
    Expr condition;  ///< null: everywhere
    std::vector<AxisId> over;
    friend bool operator==(const Guard&, const Guard&) = default;
};

class Jagged {
public:
    Jagged(Diagram diagram, const std::vector<JaggedAxis>& axes, Diagnostics& diagnostics)
        : d_(std::move(diagram)), old_(d_), axes_(axes), diagnostics_(diagnostics) {}

    Diagram run();

private:
    /// An equation on its way.
    struct Draft {
        Equation equation;
        Guard guard;
        Expr some;    ///< holds where some point of the reduction counts; null: not known
        Expr inside;  ///< holds where the target's own values count; null: everywhere
    };
    /// What the readers of an array want outside of the sequences.
    struct Wanted {
        Guard guard;
        Expr value;
        bool agree = true;
    };
    using OfRead = std::function<Expr(const Expr& read, const Guard&, const Expr& value)>;

    void error(const SourceRange& range, std::string message, std::string expected) {
        diagnostics_.error(Code::bad_lengths, range, std::move(message), std::move(expected));
    }
    void stands_without(AxisId axis, AxisId sequence, const SourceRange& range);
    void name_axes();
    void lay_out(ArrayId id);
    [[nodiscard]] const JaggedAxis* jagged(AxisId axis) const {
        const auto at = find_if(axes_, [&](const JaggedAxis& j) { return j.axis == axis; });
        return at == axes_.end() ? nullptr : &*at;
    }
    [[nodiscard]] const Packed* packed(AxisId axis) const {
        const auto at = packed_.find(axis);
        return at == packed_.end() ? nullptr : &at->second;
    }

    // the tables: for each row its sequence, and where the rows of another axis lie for it
    ArrayId table(const std::string& name, AxisId rows, Expr body, std::optional<ReduceOp> reduce = {},
                  std::vector<AxisId> over = {});
    Expr sequence(ArrayId offsets, AxisId of, AxisId rows);
    Interval interval(const JaggedAxis& axis, const Scope& scope, const SourceRange& range);

    std::optional<Scope> scope_of(const Equation& e);
    Expr written(const Expr& e, const Scope& scope, const SourceRange& range);
    Expr written_read(const Read& r, const Scope& scope, const SourceRange& range);
    void keep_reads_inside(Equation& e, const Scope& scope);
    void draft(const Equation& e);

    // guards, put where a factor, an exponent or an array's own equation takes them
    Expr guarded(const Expr& e, const Guard& guard, const Expr& value, const OfRead& of_read);
    Expr guarded(const Draft& draft, const OfRead& of_read);
    void collect_wanted();
    void finish(const Draft& draft);

    Diagram d_;
    const Diagram old_;
    const std::vector<JaggedAxis>& axes_;
    Diagnostics& diagnostics_;
    std::map<AxisId, Packed> packed_;
    std::map<ArrayId, std::vector<std::optional<std::size_t>>> places_;  ///< by dimension of the text: the one now
    std::map<std::pair<ArrayId, AxisId>, ArrayId> sequences_;            ///< by offsets and rows
    std::map<std::pair<ArrayId, AxisId>, std::pair<ArrayId, ArrayId>> intervals_;
    std::vector<Equation> equations_;
    std::vector<Draft> drafts_;
    std::map<ArrayId, Wanted> wanted_;
    /// Arrays that are no numbers where nothing counts; those that only equations over the rows read have another
    /// version for the rest.
    std::map<ArrayId, ArrayId> versions_;
    std::set<ArrayId> open_;
    bool is_open_ = false;  ///< so is the expression at hand
};

void Jagged::stands_without(AxisId axis, AxisId sequence, const SourceRange& range) {
    error(range,
          fmt::format("{} has a length for each {}, and stands without it", d_.axis(axis).name, d_.axis(sequence).name),
          fmt::format("{} among the axes of the equation", d_.axis(sequence).name));
}

/// Names the axes of packed rows, and says of the arrays of numbers what they are.
void Jagged::name_axes() {
    for (const JaggedAxis& j : axes_) {
        const ArrayId by = as<Read>(j.last)->array;
        if (!j.first) {
            d_.arrays[by].rows = RowNumbers{j.axis, false};
            continue;
        }
        const AxisId b = free_axes(j.first)[0];
        Axis& rows = d_.axes[j.rows];
        rows.range = d_.axis(j.axis).range;
        packed_[j.axis] = {b, j.rows, by};
        // All axes of the same offsets have as many rows.
        if (!d_.array(by).rows)
            d_.arrays[by].rows = RowNumbers{j.rows, true};
        else if (!rows.size && d_.array(by).rows->axis != j.rows)
            rows.size = Size(axis_symbol(d_.array(by).rows->axis)), rows.is_any = d_.axis(d_.array(by).rows->axis).is_any;
        for (ScheduleItem& item : d_.schedule)
            if (item.axis == d_.axis(j.axis).name) item.axis = rows.name;
    }
}

/// The array with its packed axes in place of pairs.
void Jagged::lay_out(ArrayId id) {
    Array& array = d_.arrays[id];
    const std::vector<AxisId> before = array.axes;
    const auto in_pair = [&](AxisId axis) {
        const Packed* p = packed(axis);
        return p && contains(before, p->sequence) ? p : nullptr;
    };
    const auto is_paired = [&](AxisId axis) {
        return any_of(before, [&](AxisId other) { return in_pair(other) && in_pair(other)->sequence == axis; });
    };
    const auto pairs = std::count_if(before.begin(), before.end(), in_pair);
    if (pairs > 1 && array.role != ArrayRole::temporary)
        error(array.range, fmt::format("{} would hold pairs of rows of each sequence", array.name),
              "one axis of packed rows in an argument or result");
    array.axes.clear();
    for (std::size_t i = 0; i < before.size(); ++i) {
        const Packed* p = in_pair(before[i]);
        if (p && array.role != ArrayRole::temporary && (i == 0 || before[i - 1] != p->sequence))
            error(array.range,
                  fmt::format("{} has {} and {} apart, whose rows lie packed", array.name, d_.axis(p->sequence).name,
                              d_.axis(before[i]).name),
                  fmt::format("{}, {} side by side", d_.axis(p->sequence).name, d_.axis(before[i]).name));
        places_[id].push_back(is_paired(before[i]) ? std::nullopt : std::optional(array.axes.size()));
        if (!is_paired(before[i])) array.axes.push_back(p ? p->rows : before[i]);
    }
}

ArrayId Jagged::table(const std::string& name, AxisId rows, Expr body, std::optional<ReduceOp> reduce,
                      std::vector<AxisId> over) {
    const ArrayId id = add_array(d_, name, {rows}, DType::i32, ArrayRole::temporary);
    equations_.push_back({id, reduce, std::move(over), std::move(body), d_.range, {}});
    return id;
}

/// The sequence of a row. A row of no sequence has one all the same, so that reads by it stay inside.
Expr Jagged::sequence(ArrayId offsets, AxisId of, AxisId rows) {
    const auto [at, added] = sequences_.try_emplace({offsets, rows}, ArrayId());
    if (added) {
        const std::string name = d_.array(offsets).name;
        const Affine next{{{of, 1}}, 1, {}};
        const Expr has_ended = binary(BinaryOp::le, read(offsets, {next}), axis_index(rows));
        const ArrayId ended = table(name + "_ended", rows, select(has_ended, whole(1), whole(0)), ReduceOp::sum, {of});
        at->second = table(name + "_sequence", rows,
                           binary(BinaryOp::min, read(ended, {Affine::axis(rows)}), axis_size(of) - whole(1)));
    }
    return read(at->second, {Affine::axis(rows)});
}

/// Where the values of a jagged axis lie that belong to the equation's sequence.
Interval Jagged::interval(const JaggedAxis& axis, const Scope& scope, const SourceRange& range) {
    const std::vector<AxisId> by = free_axes(axis.last);
    for (const AxisId b : by)
        if (!contains(scope.bound, b)) stands_without(axis.axis, b, range);
    if (!axis.first) return {whole(0), written(axis.last, scope, range)};
    const auto owner = scope.owners.find(by[0]);
    if (owner == scope.owners.end()) return {axis.first, axis.last};
    const AxisId rows = owner->second.rows;
    const ArrayId of_rows = owner->second.offsets, offsets = as<Read>(axis.last)->array;
    const auto [at, added] = intervals_.try_emplace({offsets, rows}, ArrayId(), ArrayId());
    if (added) {
        const Expr i = sequence(of_rows, by[0], rows), row = axis_index(rows);
        const auto offset = [&](ArrayId array, bool is_next) {
            return read(array, {Index::of(is_next ? i + whole(1) : i)});
        };
        const Expr has_row = both_hold(binary(BinaryOp::ge, row, offset(of_rows, false)),
                                       is_less(row, offset(of_rows, true)));
        const std::string name = d_.array(offsets).name;
        const ArrayId first = table(name + "_first", rows, select(has_row, offset(offsets, false), whole(0)));
        at->second = {first, table(name + "_last", rows, select(has_row, offset(offsets, true), whole(0)))};
    }
    const Index row = Affine::axis(rows);
    return {read(at->second.first, {row}), read(at->second.second, {row})};
}

std::optional<Scope> Jagged::scope_of(const Equation& e) {
    const std::vector<AxisId>& kept = old_.array(e.target).axes;
    Scope scope{{}, kept};
    scope.bound.insert(scope.bound.end(), e.reduce_axes.begin(), e.reduce_axes.end());
    for (const AxisId axis : scope.bound) {
        const Packed* p = packed(axis);
        if (!p) continue;
        const bool is_kept = contains(kept, axis), is_kept_with = contains(kept, p->sequence);
        if (!contains(scope.bound, p->sequence) || (is_kept && !is_kept_with)) {
            stands_without(axis, p->sequence, e.range);
            return std::nullopt;
        }
        if (is_kept || !is_kept_with) scope.owners.try_emplace(p->sequence, *p);
    }
    return scope;
}

/// The expression over the axes of packed rows.
Expr Jagged::written(const Expr& e, const Scope& scope, const SourceRange& range) {
    if (const auto* n = as<AxisIndex>(e)) {
        if (const Packed* p = packed(n->axis))
            return axis_index(p->rows) - interval(*jagged(n->axis), scope, range).first;
        const auto owner = scope.owners.find(n->axis);
        return owner == scope.owners.end() ? e : sequence(owner->second.offsets, n->axis, owner->second.rows);
    }
    if (const auto* n = as<AxisSize>(e)) {
        const JaggedAxis* j = jagged(n->axis);
        if (!j) return e;
        const Interval i = interval(*j, scope, range);
        return j->first ? i.last - i.first : i.last;
    }
    if (const auto* r = as<Read>(e)) return written_read(*r, scope, range);
    std::vector<Expr> below;
    for (const Expr& child : children(e)) below.push_back(written(child, scope, range));
    const Expr out = below.empty() ? e : with_children(e, below);
    const auto* n = as<Binary>(out);
    const bool is_whole = n && is_comparison(n->op) && is_integer(kinds_of(d_)(n->a)) && is_integer(kinds_of(d_)(n->b));
    return is_whole ? without_common_terms(out) : out;
}

Expr Jagged::written_read(const Read& r, const Scope& scope, const SourceRange& range) {
    const std::vector<AxisId>& dimensions = old_.array(r.array).axes;
    std::vector<Index> indices(d_.array(r.array).axes.size(), Affine{});
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
        const auto& place = places_[r.array][i];
        if (!place) continue;
        const Packed* p = packed(dimensions[i]);
        const auto pair = p ? find(dimensions, p->sequence) : dimensions.end();
        Expr value = written(r.indices[i].value(), scope, range);
        if (pair != dimensions.end()) {
            const Index& of = r.indices[static_cast<std::size_t>(pair - dimensions.begin())];
            value = value + (of.is_axis(p->sequence) && contains(scope.bound, p->sequence)
                                 ? interval(*jagged(dimensions[i]), scope, range).first
                                 : read(p->offsets, {Index::of(written(of.value(), scope, range))}));
        }
        indices[*place] = Index::of(without_cancelled_terms(value));
    }
    return read(r.array, std::move(indices));
}

/// Whether all that the expression reads along the axes lies at their own places.
bool reads_in_place(const Expr& e, const std::vector<AxisId>& axes) {
    bool good = true;
    visit(e, [&](const Expr& node) {
        const auto* r = as<Read>(node);
        for (std::size_t i = 0; r && i < r->indices.size(); ++i)
            good = good && (r->indices[i].single_axis() >= 0 ||
                            none_of(axes, [&](AxisId axis) { return r->indices[i].depends_on(axis); }));
    });
    return good;
}

/// A value of rows of two sequences, or of a row of none, is never used. What it is made of may lie outside of its
/// array, so it is computed only where the rows are of one.
void Jagged::keep_reads_inside(Equation& e, const Scope& scope) {
    Expr counts;
    for (const AxisId axis : old_.array(e.target).axes) {
        const Packed* p = packed(axis);
        if (!p || reads_in_place(e.body, {p->rows})) continue;
        const Interval i = interval(*jagged(axis), scope, e.range);
        const bool is_owner = scope.owners.at(p->sequence).rows == p->rows;
        if (!is_owner) counts = both_hold(counts, binary(BinaryOp::ge, axis_index(p->rows), i.first));
        counts = both_hold(counts, is_less(axis_index(p->rows), i.last));
    }
    if (counts) e.body = select(counts, e.body, of_nothing(e.reduce.value_or(ReduceOp::sum), d_.array(e.target).type));
}

/// The equation over packed rows, and where its reduction counts.
void Jagged::draft(const Equation& e) {
    const auto scope = scope_of(e);
    if (!scope) return;
    Draft out{e, {}, nullptr, nullptr};
    out.equation.body = written(e.body, *scope, e.range);
    out.equation.reduce_axes.clear();
    for (const AxisId axis : e.reduce_axes) {
        const Packed* p = packed(axis);
        const AxisId now = p ? p->rows : axis;
        const auto owner = scope->owners.find(p ? p->sequence : axis);
        if (p || owner == scope->owners.end()) out.equation.reduce_axes.push_back(now);
        const JaggedAxis* j = jagged(axis);
        if (!j) continue;
        const Interval i = interval(*j, *scope, e.range);
        const bool is_owner = p && owner != scope->owners.end() && owner->second.rows == now;
        const Expr begins = p && !is_owner ? binary(BinaryOp::ge, axis_index(now), i.first) : nullptr;
        out.guard.condition = both_hold(out.guard.condition, both_hold(begins, is_less(axis_index(now), i.last)));
        out.guard.over.push_back(now);
        if (!is_owner) out.some = both_hold(out.some, is_less(i.first, i.last));
    }
    sort(out.equation.reduce_axes);
    keep_reads_inside(out.equation, *scope);
    for (const AxisId axis : old_.array(e.target).axes) {
        const JaggedAxis* j = jagged(axis);
        if (j && !j->first && d_.array(e.target).role == ArrayRole::output)
            out.inside = both_hold(out.inside, is_less(axis_index(axis), interval(*j, *scope, e.range).last));
    }
    drafts_.push_back(std::move(out));
}

/// The expression where the guard holds, and `value` (0, or an infinity) where it does not. The condition goes to one
/// factor, an exponent, or a part of a sum, as masks by hand have it: softmax(where(…, S, -inf)).
Expr Jagged::guarded(const Expr& e, const Guard& guard, const Expr& value, const OfRead& of_read) {
    const auto again = [&](const Expr& part, double wanted) { return guarded(part, guard, constant(wanted), of_read); };
    const auto runs = [&](const Expr& part) {
        return any_of(guard.over, [&](AxisId axis) { return depends_on_axis(part, axis); });
    };
    const auto is_computed = [&](const Expr& part) {
        const auto* r = as<Read>(part);
        return runs(part) && (!r || d_.array(r->array).role != ArrayRole::input);
    };
    const auto* number = as<Constant>(value);
    const double wanted = number && number->correction == 0 ? number->value : 1;
    const bool is_zero = wanted == 0, is_infinite = std::isinf(wanted);
    const auto* choice = as<Select>(e);
    if (choice && choice->condition == guard.condition) return select(guard.condition, choice->a, value);
    // What stands beside the part that takes the condition is computed everywhere.
    if (!as<Read>(e) && !reads_in_place(e, guard.over)) return select(guard.condition, e, value);
    if (const auto* n = as<Binary>(e)) {
        const bool is_sum = n->op == BinaryOp::add || n->op == BinaryOp::sub;
        if (is_zero && n->op == BinaryOp::mul) {
            const bool second = !runs(n->a) || (is_computed(n->b) && !is_computed(n->a));
            return second ? binary(n->op, n->a, again(n->b, 0)) : binary(n->op, again(n->a, 0), n->b);
        }
        if (is_zero && n->op == BinaryOp::div && runs(n->a)) {
            is_open_ = is_open_ || !as<Constant>(n->b);
            return binary(n->op, again(n->a, 0), n->b);
        }
        if (is_infinite && is_sum) {
            const bool second = !runs(n->a);
            is_open_ = is_open_ || !as<Constant>(second ? n->a : n->b);
            if (!second) return binary(n->op, again(n->a, wanted), n->b);
            return binary(n->op, n->a, again(n->b, n->op == BinaryOp::sub ? -wanted : wanted));
        }
        if (is_infinite && n->op == BinaryOp::mul && is_positive(n->b) && runs(n->a))
            return binary(n->op, again(n->a, wanted), n->b);
    }
    if (const auto* n = as<Unary>(e)) {
        if (n->op == UnaryOp::neg && (is_zero || is_infinite)) return unary(n->op, again(n->a, is_zero ? 0 : -wanted));
        if (is_zero && (n->op == UnaryOp::exp || n->op == UnaryOp::exp2))
            return unary(n->op, again(n->a, -std::numeric_limits<double>::infinity()));
    }
    if (const auto* n = as<Cast>(e); n && is_zero) return cast(n->type, again(n->a, 0));
    if (choice && equal(choice->b, value))
        return select(both_hold(guard.condition, choice->condition), choice->a, choice->b);
    if (as<Read>(e)) return of_read(e, guard, value);
    return select(guard.condition, e, value);
}

Expr Jagged::guarded(const Draft& draft, const OfRead& of_read) {
    const Equation& e = draft.equation;
    const auto at = wanted_.find(e.target);
    if (draft.guard.condition)
        return guarded(e.body, draft.guard, of_nothing(*e.reduce, d_.array(e.target).type), of_read);
    if (!e.reduce && at != wanted_.end() && at->second.agree)
        return guarded(e.body, at->second.guard, at->second.value, of_read);
    return e.body;
}

/// Readers stand behind what they read, so all have said what they want before the array's own equation is looked at.
void Jagged::collect_wanted() {
    const auto is_map = [&](ArrayId id) {
        return any_of(drafts_, [&](const Draft& d) { return d.equation.target == id && !d.equation.reduce; });
    };
    for (auto draft = drafts_.rbegin(); draft != drafts_.rend(); ++draft) {
        (void)guarded(*draft, [&](const Expr& e, const Guard& guard, const Expr& value) {
            const ArrayId id = as<Read>(e)->array;
            const Array& array = d_.array(id);
            const bool has_axes = all_of(free_axes(guard.condition),
                                         [&](AxisId axis) { return contains(array.axes, axis); });
            if (array.role != ArrayRole::temporary || !equal(e, read_self(d_, id)) || !is_map(id) || !has_axes)
                return e;
            const auto [at, added] = wanted_.try_emplace(id, Wanted{guard, value});
            if (!added)
                at->second.agree = at->second.agree && at->second.guard == guard && equal(at->second.value, value);
            return e;
        });
    }
}

void Jagged::finish(const Draft& draft) {
    Equation e = draft.equation;
    is_open_ = false;
    e.body = guarded(draft, [&](const Expr& r, const Guard& guard, const Expr& value) {
        const auto at = wanted_.find(as<Read>(r)->array);
        const bool is_known = at != wanted_.end() && at->second.agree && at->second.guard == guard &&
                              equal(at->second.value, value);
        return is_known ? r : select(guard.condition, r, value);
    });
    const auto runs_over = [&](const Equation& reader, const std::vector<AxisId>& axes) {
        return all_of(axes, [&](AxisId axis) {
            return contains(reader.reduce_axes, axis) || contains(d_.array(reader.target).axes, axis);
        });
    };
    // Who runs over the rows itself reads nothing where there are none.
    e.body = transform(e.body, [&](const Expr& node) -> Expr {
        const auto* r = as<Read>(node);
        const auto version = r ? versions_.find(r->array) : versions_.end();
        if (version == versions_.end()) return node;
        const Draft& source = *find_if(drafts_, [&](const Draft& d) { return d.equation.target == r->array; });
        return runs_over(e, source.guard.over) ? read(version->second, r->indices) : node;
    });
    is_open_ = is_open_ || any_of(read_arrays(e.body), [&](ArrayId id) { return open_.contains(id); });
    const Array array = d_.array(e.target);
    const bool has_other_readers = array.role == ArrayRole::output || any_of(drafts_, [&](const Draft& d) {
                                       return reads_array(d.equation.body, e.target) &&
                                              !runs_over(d.equation, draft.guard.over);
                                   });
    const Expr counts = both_hold(draft.inside, is_open_ && e.reduce && has_other_readers ? draft.some : nullptr);
    if (!counts) {
        if (is_open_) open_.insert(e.target);
        equations_.push_back(std::move(e));
        return;
    }
    const Expr nothing = of_nothing(e.reduce.value_or(ReduceOp::sum), array.type);
    if (e.reduce) {
        const ArrayId target = e.target;
        e.target = add_array(d_, array.name + "_rows", array.axes, array.type, ArrayRole::temporary);
        versions_[target] = e.target;
        if (is_open_) open_.insert(e.target);
        equations_.push_back(e);
        e = {target, std::nullopt, {}, read_self(d_, e.target), e.range, e.inlined};
    }
    e.body = select(counts, e.body, nothing);
    equations_.push_back(std::move(e));
}

Diagram Jagged::run() {
    name_axes();
    for (const ArrayId id : old_.arrays.ids()) lay_out(id);
    if (!diagnostics_.empty()) return std::move(d_);
    for (const Equation& e : old_.equations) draft(e);
    if (!diagnostics_.empty()) return std::move(d_);
    collect_wanted();
    for (const Draft& draft : drafts_) finish(draft);
    d_.equations = std::move(equations_);
    return std::move(d_);
}

}  // namespace

Diagram without_jagged_axes(Diagram diagram, const std::vector<JaggedAxis>& axes, Diagnostics& diagnostics) {
    return axes.empty() ? std::move(diagram) : Jagged(std::move(diagram), axes, diagnostics).run();
}

}  // namespace napkin
