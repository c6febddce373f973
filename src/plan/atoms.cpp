// Chooses for every compute statement the axis of its vectors and the extent of its register block.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "plan/complete.hpp"
#include "schedule/accumulators.hpp"
#include "schedule/fragments.hpp"
#include "schedule/lane_product.hpp"
#include "schedule/thread_runs.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Most terms of a chain of additions before its sum goes to the target. Matrix products of BLAS libraries cut the
/// summed axis into parts of 256 to 384 as well.
constexpr std::int64_t longest_chain = 512;

/// Vectors that a warp must be spared before warps share a reduction and wait for each other at the end. Estimated: a
/// barrier and five more shuffles take as long as loading and adding up so many vectors.
constexpr std::int64_t worth_barrier = 8;

bool mentions(const Read& r, AxisId axis) {
    return any_of(r.indices, [&](const Index& i) { return i.depends_on(axis); });
}

/// The number of vectors in a block, at most `limit`, that wastes the least of the last block.
int fitting_block(std::int64_t vectors, std::int64_t limit) {
    const std::int64_t most = std::max<std::int64_t>(1, std::min(vectors, limit));
    std::int64_t best = most;
    for (std::int64_t n = most; n > most / 2; --n)
        if (round_up(vectors, n) < round_up(vectors, best)) best = n;
    return static_cast<int>(best);
}

class AtomChoice {
public:
    AtomChoice(const ScheduledKernel& kernel, const Step& step)
        : kernel_(kernel),
          step_(step),
          scope_(kernel.scope(step.scope)),
          compute_(std::get<Compute>(*step.statement)),
          reads_(step.reads),
          targets_(target_axes(kernel.variable(compute_.variable))),
          product_(lane_product(kernel, step)) {
        if (product_ && !contains(kernel.unit.lane_products, product_->type)) product_.reset();
    }

    /// `known`: an atom whose order of additions is kept; null: everything is chosen.
    Atom run(const Atom* known) {
        Atom atom;
        known_ = known;
        if (const Step* sum = known ? nullptr : followed_sum(kernel_, step_)) return along(kernel_.atom(*sum));
        if (const auto run = known ? std::nullopt : thread_run(kernel_, step_)) return by_runs(*run);
        if (known && known->terms == 1) product_.reset();
        if (has_known_lanes())
            atom.across = true, atom.vector_axis = known->vector_axis;
        else if (!step_.is_whole || product_)
            choose_vector_axis(atom);
        if (product_ && why_not_in_lanes(kernel_, *product_, atom).empty())
            atom.terms = product_->terms;
        else if (step_.is_whole)
            atom = {};
        const std::int64_t vectors = atom.vector_axis < 0 ? 1 : (tile(atom.vector_axis) + kernel_.lanes - 1) / kernel_.lanes;
        // Where statements run panel by panel, a block is one panel.
        if (atom.vector_axis >= 0 && atom.vector_axis == kernel_.schedule.vector_axis && !atom.across &&
            (!kernel_.in_blocks() || compute_.reduce))
            atom.vectors = kernel_.schedule.panel_vectors;
        else
            atom.vectors = fitting_block(vectors,
                                         std::max(kernel_.schedule.panel_vectors.value, least_chains(atom, vectors)));
        // Threads that hold a row between them access neighbours of it together, as many as a power of two.
        if (kernel_.in_blocks() && atom.vector_axis >= 0 && (atom.across || !compute_.reduce) && is_one_row(atom.vector_axis))
            atom.vectors = static_cast<int>(std::bit_floor(static_cast<unsigned>(atom.vectors)));
        if (has_known_lanes()) atom.vectors = known->vectors;
        while (atom.vector_axis >= 0 && !takes_blocks(atom.vector_axis, atom.vectors * kernel_.lanes)) --atom.vectors;
        choose_rows(atom);
        if (has_known_lanes()) {
            atom.shared = known->shared;
        } else {
            if (!kernel_.in_blocks()) fill_chains(atom, vectors);
            share_among_warps(atom);
        }
        for (const AxisId a : targets_)
            if (a != atom.row_axis && (atom.across || a != atom.vector_axis)) atom.points.push_back(a);
        // Scalar code goes through the target in the order of its memory.
        if (const auto inner = find_if(atom.points, [&](AxisId a) { return stores_along(a); });
            atom.vector_axis < 0 && inner != atom.points.end())
            std::rotate(inner, inner + 1, atom.points.end());
        for (const AxisId a : compute_.reduce_axes)
            if (!(atom.across && a == atom.vector_axis)) atom.reduced.push_back(a);
        order_reduced(atom);
        atom.vector_inner = atom.vector_axis >= 0 && !compute_.reduce && all_of(reads_, [&](const Read* r) {
                                return lane_step(kernel_, *r, atom.vector_axis) != LaneStep::far;
                            });
        if (known_)
            atom.cut_axis = known_->cut_axis, atom.cut = known_->cut;
        else
            cut_long_sums(atom);
        return atom;
    }

private:
    /// Threads take runs one after the other, those of neighbouring threads beside each other.
    [[nodiscard]] Atom by_runs(const ThreadRun& run) const {
        Atom atom;
        atom.row_axis = run.axis, atom.rows = static_cast<int>(run.values);
        for (const AxisId a : targets_)
            if (a != run.axis) atom.points.push_back(a);
        atom.reduced = compute_.reduce_axes;
        return atom;
    }
    /// A map goes through the register blocks of the sum that it reads.
    [[nodiscard]] Atom along(Atom sum) const {
        sum.reduced.clear(), sum.reason.clear();
        for (const AxisId a : targets_)
            if (a != sum.vector_axis && a != sum.row_axis && !contains(sum.points, a)) sum.points.push_back(a);
        return sum;
    }
    [[nodiscard]] bool has_known_lanes() const { return known_ && known_->across; }
    [[nodiscard]] std::int64_t tile(AxisId axis) const { return scope_[axis].tile; }

    /// The target has one value along all axes but this one.
    [[nodiscard]] bool is_one_row(AxisId axis) const {
        return all_of(targets_, [&](AxisId a) { return a == axis || tile(a) == 1; });
    }

    [[nodiscard]] bool takes_blocks(AxisId axis, std::int64_t size) const {
        return kernel_.takes_blocks(axis, step_.scope, size);
    }
    /// The smallest block of vectors along the axis: a panel along the kernel's vector axis unless that is reduced,
    /// else one vector.
    [[nodiscard]] std::int64_t least_block(AxisId axis, bool reduces) const {
        return axis == kernel_.schedule.vector_axis && !reduces ? kernel_.panel() : kernel_.lanes;
    }

    [[nodiscard]] bool stores_along(AxisId axis) const {
        const int inner = kernel_.place(compute_.variable).innermost;
        return inner >= 0 && targets_[at(inner)] == axis;
    }

    /// Instructions for a value of the body when vectors lie along the axis. Idle lanes and gathers make them more.
    [[nodiscard]] double cost(AxisId axis, bool reduces) const {
        // Estimated, all of these: a value for all lanes is loaded once for two vectors or more. Lanes are combined at
        // the end by two instructions for each halving.
        constexpr double broadcast = 0.5, combining = 10;
        // A lane of a warp finds its own place by some instructions. A CPU loads lane by lane.
        const double far_load = kernel_.in_blocks() ? 8 : kernel_.lanes;
        double instructions = 1;
        for (const Read* r : reads_) {
            const LaneStep far = lane_step(kernel_, *r, axis);
            instructions += far == LaneStep::same ? broadcast : far == LaneStep::near ? 1 : far_load;
        }
        const auto n = static_cast<double>(tile(axis));
        const double vectors = std::ceil(n / kernel_.lanes);
        double per_value = instructions * vectors / n;
        if (reduces) per_value += combining / n;
        return per_value;
    }

    void choose_vector_axis(Atom& atom) const {
        const AxisId own = kernel_.schedule.vector_axis;
        if (own >= 0 && stores_along(own) && takes_blocks(own, least_block(own, false))) {
            atom.vector_axis = own;
            return;
        }
        double best = 1 + static_cast<double>(reads_.size());  // scalar code
        const auto consider = [&](AxisId axis, bool reduces) {
            if (tile(axis) < 2 || !takes_blocks(axis, least_block(axis, reduces))) return;
            if (const double c = cost(axis, reduces); c < best)
                best = c, atom.vector_axis = axis, atom.across = reduces;
        };
        for (const AxisId a : targets_)
            if (stores_along(a)) consider(a, false);
        if (known_) return;
        for (const AxisId a : compute_.reduce_axes) consider(a, true);
    }

    /// The least vectors of a block. A reduction across the lanes has a chain of its own for each vector: with one
    /// alone, every addition waits for the last. A warp of a GPU waits for what it loads. So it asks for several
    /// vectors of a map before that, as long as all warps have some.
    [[nodiscard]] int least_chains(const Atom& atom, std::int64_t vectors) const {
        constexpr std::int64_t enough = 4;
        if (atom.across) return enough;
        if (!kernel_.in_blocks() || compute_.reduce || atom.vector_axis < 0) return 1;
        for (const AxisId a : targets_)
            if (a != atom.vector_axis) vectors *= tile(a);
        return static_cast<int>(std::clamp<std::int64_t>(vectors / kernel_.schedule.warps.value, 1, enough));
    }

    /// Where no rows stand beside each other to hide its latency, a reduction across the lanes has as many chains as
    /// the unit needs. Half of the registers are left to what the body computes.
    void fill_chains(Atom& atom, std::int64_t vectors) const {
        if (!atom.across || atom.rows > 1) return;
        Atom more = atom;
        more.vectors = std::min(kernel_.unit.chains, kernel_.unit.registers / 2);
        more.vectors = fitting_block(vectors, more.vectors);
        while (more.vectors > atom.vectors && !takes_blocks(atom.vector_axis, more.vectors * kernel_.lanes))
            --more.vectors;
        if (more.vectors > atom.vectors) atom = more;
    }

    /// A number of rows that cuts the tiles without a remainder: `most`, or down to three quarters of it. If there is
    /// none, it is `most`, evened out over the blocks.
    [[nodiscard]] std::int64_t fitting_rows(AxisId axis, std::int64_t most) const {
        const std::int64_t n = tile(axis);
        const bool ragged = scope_[axis].ragged;
        const std::int64_t last = ragged ? kernel_.extent(axis) % n : n;
        for (std::int64_t rows = most; 4 * rows >= 3 * most; --rows)
            if (n % rows == 0 && last % rows == 0) return rows;
        const std::int64_t blocks = (n + most - 1) / most;
        return (n + blocks - 1) / blocks;
    }

    /// The most rows with which every warp of the block still has a register block, or every thread where there are no
    /// vectors.
    [[nodiscard]] std::int64_t rows_for_all_warps(const Atom& atom) const {
        std::int64_t blocks = tile(atom.row_axis);
        for (const AxisId a : targets_)
            if (a != atom.row_axis)
                blocks *= !atom.across && a == atom.vector_axis
                              ? (tile(a) + kernel_.lanes * atom.vectors - 1) / (kernel_.lanes * atom.vectors)
                              : tile(a);
        const std::int64_t workers = kernel_.schedule.warps.value * (atom.vector_axis < 0 ? kernel_.lanes : 1);
        return std::max<std::int64_t>(1, blocks / workers);
    }

    /// Rows let vectors that do not depend on them be loaded once for a block. Without such vectors, rows only hide
    /// latency.
    void choose_rows(Atom& atom) const {
        if (!compute_.reduce) return;
        int best_reuse = -1;
        for (const AxisId a : targets_) {
            if ((!atom.across && a == atom.vector_axis) || tile(a) < 2) continue;
            int reuse = 0;
            for (const Read* r : reads_) {
                const bool in_reduction = any_of(compute_.reduce_axes, [&](AxisId x) { return mentions(*r, x); });
                const bool is_vector = atom.vector_axis < 0 || mentions(*r, atom.vector_axis);
                if (in_reduction && is_vector && !mentions(*r, a)) ++reuse;
            }
            if (Atom with = atom;
                atom.terms > 1 && (with.row_axis = a, !why_not_in_lanes(kernel_, *product_, with).empty()))
                continue;
            if (reuse > best_reuse || (reuse == best_reuse && tile(a) >= tile(atom.row_axis)))
                best_reuse = reuse, atom.row_axis = a;
        }
        if (atom.row_axis < 0) return;
        // The block's accumulators, one row of operands and a broadcast must fit.
        // A GPU's registers have 32 bits.
        const int registers_of_value = kernel_.in_blocks() && (step_.is_whole || kernel_.is_double) ? 2 : 1;
        const std::int64_t fit = (kernel_.unit.registers / registers_of_value - 1) / atom.vectors - 1;
        // Integers are scalar where real numbers fill vectors, so their block has all of its accumulators in rows.
        const std::int64_t wanted = kernel_.schedule.rows.value *
                                    (step_.is_whole && atom.terms == 1 ? kernel_.schedule.panel_vectors : 1);
        std::int64_t rows = std::min({wanted, fit, tile(atom.row_axis)});
        if (best_reuse == 0) rows = std::min<std::int64_t>(rows, 4);
        rows = std::max<std::int64_t>(rows, 1);
        if (kernel_.in_blocks()) rows = std::min(rows, rows_for_all_warps(atom));
        rows = fitting_rows(atom.row_axis, rows);
        while (!takes_blocks(atom.row_axis, rows)) --rows;
        atom.rows = static_cast<int>(rows);
        if (atom.rows == 1) atom.row_axis = -1;
    }

    /// Where some warps would have no register block of the target, all warps share the vectors of each block, if that
    /// spares them enough.
    void share_among_warps(Atom& atom) const {
        const Place& place = kernel_.place(compute_.variable);
        if (!kernel_.in_blocks() || !atom.across || reads_.empty() ||
            (place.by_user && place.holding != MemorySpace::buffer))
            return;
        std::int64_t blocks = 1;
        for (const AxisId a : targets_) blocks *= a == atom.row_axis ? (tile(a) + atom.rows - 1) / atom.rows : tile(a);
        const std::int64_t warps = kernel_.schedule.warps.value,
                           vectors = (tile(atom.vector_axis) + kernel_.lanes - 1) / kernel_.lanes,
                           of_warp = (vectors + warps - 1) / warps;
        if (blocks >= warps || vectors - blocks * of_warp < worth_barrier) return;
        atom.shared = true;
        atom.vectors = fitting_block(of_warp, atom.vectors);
        while (!takes_blocks(atom.vector_axis, atom.vectors * kernel_.lanes)) --atom.vectors;
    }

    /// On a CPU the innermost loops go along neighbours at the core. Where they go from row to row, or from plane to
    /// plane, lines of so many rows fall into few sets of the first cache. A convolution of 64 channels with a stride
    /// takes 1.6 times as long on a Zen 5 core.
    void order_reduced(Atom& atom) const {
        if (kernel_.in_blocks()) return;
        if (known_ && std::is_permutation(atom.reduced.begin(), atom.reduced.end(), known_->reduced.begin(),
                                          known_->reduced.end())) {
            atom.reduced = known_->reduced;
            return;
        }
        const auto depth = [&](AxisId axis) {
            std::size_t sum = 0;
            for (const Read* r : reads_)
                for (std::size_t d = 0; d < r->indices.size(); ++d)
                    if (r->indices[d].depends_on(axis))
                        sum += static_cast<int>(d) == kernel_.place(r->variable()).innermost ? r->indices.size() : d;
            return sum;
        };
        stable_sort(atom.reduced, [&](AxisId a, AxisId b) { return depth(a) < depth(b); });
    }

    /// Cuts the outermost loop within which a chain would get too long into even parts.
    void cut_long_sums(Atom& atom) const {
        if (step_.is_whole || !compute_.reduce || *compute_.reduce != ReduceOp::sum || atom.across) return;
        if (atom.terms > 1 && product_->is_integer) return;  // nothing is rounded
        std::int64_t inner = 1;
        for (auto axis = atom.reduced.rbegin(); axis != atom.reduced.rend(); ++axis) {
            const std::int64_t n = tile(*axis);
            if (inner * n > longest_chain) {
                const std::int64_t most = std::max<std::int64_t>(1, longest_chain / inner), parts = (n + most - 1) / most;
                atom.cut_axis = *axis;
                atom.cut = (n + parts - 1) / parts;
                if (atom.terms > 1 && *axis == product_->axis) atom.cut = round_up(atom.cut, atom.terms);
                return;
            }
            inner *= n;
        }
    }

    const ScheduledKernel& kernel_;
    const Step& step_;
    const Scope& scope_;
    const Compute& compute_;
    const std::vector<const Read*>& reads_;
    std::vector<AxisId> targets_;
    std::optional<LaneProduct> product_;  ///< where the unit has an instruction for it
    const Atom* known_ = nullptr;
};

/// Whether the index takes several values in the scope's tile.
bool is_wide_in(const Scope& scope, const Index& index) {
    if (const Affine* form = index.affine())
        return any_of(form->terms, [&](const auto& term) { return scope[term.first].tile > 1; });
    return any_of(index.axes(), [&](AxisId axis) { return scope[axis].tile > 1; });
}

}  // namespace

void choose_orders(ScheduledKernel& kernel) {
    kernel.schedule.places.resize(kernel.layouts.size());
    for (const VariableId v : kernel.layouts.ids()) {
        const Variable& variable = kernel.kernel->variables[v];
        const Scope& scope = kernel.scope(kernel.layouts[v].scope);
        int inner = -1;
        for (std::size_t d = 0; d < variable.dims.size(); ++d)
            if (inner < 0 || is_wide_in(scope, variable.dims[d])) inner = static_cast<int>(d);
        if (kernel.schedule.vector_axis >= 0)
            for (std::size_t d = 0; d < variable.dims.size(); ++d)
                if (variable.dims[d].depends_on(kernel.schedule.vector_axis)) inner = static_cast<int>(d);
        Place& place = kernel.schedule.places[v];
        if (!place.by_user || place.innermost < 0) place.innermost = inner;
    }
}

void choose_atoms(ScheduledKernel& kernel) {
    if (const AxisId axis = kernel.schedule.vector_axis; axis >= 0) {
        const std::int64_t vectors = (kernel.span(axis, 0).tile + kernel.lanes - 1) / kernel.lanes;
        Chosen<int>& panel = kernel.schedule.panel_vectors;
        if (!panel.by_user) panel.value = fitting_block(vectors, panel.value);
    }
    By<AtomId, Atom>& atoms = kernel.schedule.atoms;
    const auto num_atoms = count_if(kernel.steps, [](const Step& step) { return step.atom >= 0; });
    if (std::ssize(atoms) < num_atoms) atoms.resize(static_cast<std::size_t>(num_atoms));
    for (const Step& step : kernel.steps)
        if (step.atom >= 0 && !atoms[step.atom].by_user) {
            const Atom known = atoms[step.atom];
            atoms[step.atom] = AtomChoice(kernel, step).run(known.keeps_order ? &known : nullptr);
        }
}

}  // namespace napkin
