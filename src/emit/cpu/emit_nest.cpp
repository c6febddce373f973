// Chooses for every compute statement along which axis its vectors lie and what its register block holds.
#include <algorithm>
#include <cmath>

#include "emit/cpu/emit_whole.hpp"

namespace napkin::cpu {
namespace {

/// How far apart neighbouring values of the axis lie in what is read.
enum class Step1 { none, one, far };

Step1 step_along(const Frame& frame, const Read& r, AxisId axis) {
    std::int64_t inner = 0;
    for (std::size_t d = 0; d < r.indices.size(); ++d) {
        if (!r.indices[d].depends_on(axis)) continue;
        if (static_cast<int>(d) != frame.layout(r.array).innermost || !r.indices[d].affine()) return Step1::far;
        inner = r.indices[d].affine()->coefficient(axis);
    }
    return inner == 0 ? Step1::none : inner == 1 ? Step1::one : Step1::far;
}

bool mentions(const Read& r, AxisId axis) {
    return std::any_of(r.indices.begin(), r.indices.end(), [&](const Index& i) { return i.depends_on(axis); });
}

/// The number of vectors in a block, at most `limit`, that wastes the least of the last block.
int fitting_block(std::int64_t vectors, std::int64_t limit) {
    const std::int64_t most = std::max<std::int64_t>(1, std::min(vectors, limit));
    std::int64_t best = most;
    for (std::int64_t n = most; n > most / 2; --n)
        if (round_up(vectors, n) < round_up(vectors, best)) best = n;
    return static_cast<int>(best);
}

class NestChoice {
public:
    NestChoice(const Frame& frame, const Step& step, bool is_whole)
        : is_whole_(is_whole),
          frame_(frame),
          scope_(frame.scope(step.scope)),
          compute_(std::get<Compute>(*step.statement)),
          reads_(reads_of(compute_)),
          targets_(target_axes(frame.variable(compute_.variable))) {}

    Nest run() {
        Nest nest;
        nest.is_whole = is_whole_;
        if (!is_whole_) choose_vector_axis(nest);
        const std::int64_t vectors = nest.vector_axis < 0 ? 1 : (tile(nest.vector_axis) + frame_.lanes - 1) / frame_.lanes;
        if (nest.vector_axis >= 0 && nest.vector_axis == frame_.vector_axis && !nest.vector_reduces)
            nest.block_vectors = frame_.panel_vectors;
        else
            nest.block_vectors = fitting_block(vectors, std::max<std::int64_t>(1, frame_.plan->block_vectors.value));
        choose_rows(nest);
        for (const AxisId a : targets_)
            if (a != nest.row_axis && (nest.vector_reduces || a != nest.vector_axis)) nest.outer.push_back(a);
        for (const AxisId a : compute_.reduce_axes)
            if (!(nest.vector_reduces && a == nest.vector_axis)) nest.reduce.push_back(a);
        nest.vector_last = nest.vector_axis >= 0 && !compute_.reduce &&
                           std::all_of(reads_.begin(), reads_.end(), [&](const Read* r) {
                               return step_along(frame_, *r, nest.vector_axis) != Step1::far;
                           });
        return nest;
    }

private:
    [[nodiscard]] std::int64_t tile(AxisId axis) const { return span_of(scope_, axis).tile; }

    [[nodiscard]] bool stores_along(AxisId axis) const {
        const int inner = frame_.layout(compute_.variable).innermost;
        return inner >= 0 && targets_[static_cast<std::size_t>(inner)] == axis;
    }

    /// Instructions for a value of the body when vectors lie along the axis: loads, less where lanes idle, more where they gather.
    [[nodiscard]] double cost(AxisId axis, bool reduces) const {
        double instructions = 1;
        for (const Read* r : reads_) {
            const Step1 s = step_along(frame_, *r, axis);
            instructions += s == Step1::none ? 0.5 : s == Step1::one ? 1 : frame_.lanes;
        }
        const auto n = static_cast<double>(tile(axis));
        const double vectors = std::ceil(n / frame_.lanes);
        double per_value = instructions * vectors / n;
        if (reduces) per_value += 10.0 / n;  // combining the lanes at the end
        return per_value;
    }

    void choose_vector_axis(Nest& nest) const {
        if (frame_.vector_axis >= 0 && stores_along(frame_.vector_axis)) {
            nest.vector_axis = frame_.vector_axis;
            return;
        }
        double best = 1 + static_cast<double>(reads_.size());  // scalar code
        const auto consider = [&](AxisId axis, bool reduces) {
            if (tile(axis) < 2) return;
            if (const double c = cost(axis, reduces); c < best)
                best = c, nest.vector_axis = axis, nest.vector_reduces = reduces;
        };
        for (const AxisId a : targets_)
            if (stores_along(a)) consider(a, false);
        for (const AxisId a : compute_.reduce_axes) consider(a, true);
    }

    /// A number of rows, `most` or a little less, that cuts the tiles without a remainder; else `most`, evened out over the blocks.
    [[nodiscard]] std::int64_t fitting_rows(AxisId axis, std::int64_t most) const {
        const std::int64_t n = tile(axis), last = span_of(scope_, axis).ragged ? frame_.extent(axis) % n : n;
        for (std::int64_t rows = most; 4 * rows >= 3 * most; --rows)
            if (n % rows == 0 && last % rows == 0) return rows;
        const std::int64_t blocks = (n + most - 1) / most;
        return (n + blocks - 1) / blocks;
    }

    /// Rows let vectors that do not depend on them be loaded once for a block; without such vectors they only hide latency.
    void choose_rows(Nest& nest) const {
        if (!compute_.reduce) return;
        int best_reuse = -1;
        for (const AxisId a : targets_) {
            if ((!nest.vector_reduces && a == nest.vector_axis) || tile(a) < 2) continue;
            int reuse = 0;
            for (const Read* r : reads_) {
                const bool in_reduction = std::any_of(compute_.reduce_axes.begin(), compute_.reduce_axes.end(),
                                                      [&](AxisId x) { return mentions(*r, x); });
                const bool is_vector = nest.vector_axis < 0 || mentions(*r, nest.vector_axis);
                if (in_reduction && is_vector && !mentions(*r, a)) ++reuse;
            }
            if (reuse > best_reuse || (reuse == best_reuse && tile(a) >= tile(nest.row_axis)))
                best_reuse = reuse, nest.row_axis = a;
        }
        if (nest.row_axis < 0) return;
        // The block's accumulators (and totals), one row of operands and a spare register must fit.
        std::int64_t terms = 1;
        for (const AxisId a : compute_.reduce_axes) terms = std::min(terms, std::int64_t{1} << 20) * tile(a);
        const bool has_totals = *compute_.reduce == ReduceOp::sum && !nest.vector_reduces &&
                                is_long_sum(terms, total_terms(frame_, compute_));
        const std::int64_t fit = ((frame_.options.vector_registers - 2) / nest.block_vectors - 1) / (has_totals ? 2 : 1);
        // Integers stand one by one where real numbers fill vectors: their block has all of its accumulators in rows.
        const std::int64_t wanted = frame_.plan->block_rows.value * (is_whole_ ? frame_.plan->block_vectors.value : 1);
        std::int64_t rows = std::min({wanted, fit, tile(nest.row_axis)});
        if (best_reuse == 0) rows = std::min<std::int64_t>(rows, 4);
        rows = std::max<std::int64_t>(rows, 1);
        nest.block_rows = static_cast<int>(fitting_rows(nest.row_axis, rows));
        if (nest.block_rows == 1) nest.row_axis = -1;
    }

    bool is_whole_;
    const Frame& frame_;
    const Scope& scope_;
    const Compute& compute_;
    std::vector<const Read*> reads_;
    std::vector<AxisId> targets_;
};

}  // namespace

void choose_layout_orders(Frame& frame) {
    for (std::size_t v = 0; v < frame.layouts.size(); ++v) {
        const Variable& variable = frame.kernel->variables[v];
        const Scope& scope = frame.scope(frame.layouts[v].scope);
        int inner = -1;
        for (std::size_t d = 0; d < variable.dims.size(); ++d) {
            const std::vector<AxisId> axes = variable.dims[d].axes();
            const bool wide = std::any_of(axes.begin(), axes.end(),
                                          [&](AxisId axis) { return span_of(scope, axis).tile > 1; });
            if (wide || inner < 0) inner = static_cast<int>(d);
        }
        if (frame.vector_axis >= 0)
            for (std::size_t d = 0; d < variable.dims.size(); ++d)
                if (variable.dims[d].depends_on(frame.vector_axis)) inner = static_cast<int>(d);
        frame.layouts[v].innermost = inner;
    }
}

void choose_nests(Frame& frame) {
    if (frame.vector_axis >= 0) {
        const std::int64_t vectors = (span_of(frame.scope(0), frame.vector_axis).tile + frame.lanes - 1) / frame.lanes;
        frame.panel_vectors = fitting_block(vectors, frame.plan->block_vectors.value);
    }
    frame.blocks.resize(frame.program->extents.size());
    const auto pad = [&](AxisId axis, std::int64_t block) {
        frame.blocks[static_cast<std::size_t>(axis)].insert(block);
        for (Scope& scope : frame.scopes) {
            Span& span = scope[static_cast<std::size_t>(axis)];
            span.padded = std::max(span.padded, round_up(span.tile, block));
        }
    };
    WholeValues values(frame);
    for (Step& step : frame.steps) {
        const auto* compute = std::get_if<Compute>(step.statement);
        if (!compute) continue;
        step.nest = NestChoice(frame, step, values.needs_integers(*compute)).run();
        if (step.nest.vector_axis >= 0)
            pad(step.nest.vector_axis, static_cast<std::int64_t>(frame.lanes) * step.nest.block_vectors);
        if (step.nest.row_axis >= 0) pad(step.nest.row_axis, step.nest.block_rows);
    }
}

}  // namespace napkin::cpu
