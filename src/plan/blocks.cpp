#include "plan/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "machine/block_machine.hpp"
#include "plan/estimates.hpp"
#include "plan/moves.hpp"
#include "plan/overrides.hpp"
#include "plan/parts.hpp"
#include "plan/plan_form.hpp"
#include "schedule/cluster.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"
#include "support/share_out.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// Threads of a warp in CUDA.
constexpr double cuda_warp = 32;
/// Warps of a block: 1,024 threads (CUDA's technical specifications).
constexpr std::int64_t most_warps = 32;
/// Warps of the smallest shape (moves.cpp).
constexpr std::int64_t fewest_warps = 4;

/// What the estimate of a plan in blocks of a shape says of it. Fewer refused kernels are better, then fewer seconds.
struct EstimatedStrategy {
    CtaShape shape;
    std::size_t refused;
    double seconds;
    bool uses_tensor_cores;
    friend bool operator<(const EstimatedStrategy& a, const EstimatedStrategy& b) {
        return std::tie(a.refused, a.seconds) < std::tie(b.refused, b.seconds);
    }
};
/// A shape whose estimate is the best one's times this may still have the best plan. Estimated: a plan takes up to 5%
/// more than its estimate.
constexpr double near_the_best = 1.05;

/// Overrides for all blocks.
struct BlocksByUser {
    std::optional<std::int64_t> warps, threads;
    std::optional<ScheduleItem> blocks;  ///< of an SM
    std::int64_t copying = 0;
    SourceRange producer_range = {};
    /// clusters, stream-K, a tile queue and ping-pong are of blocks with producer warps
    bool needs_copies = false;
};

/// Shapes to try, each once. With an override of the warps, an SM that holds `most` of them has room for fewer blocks.
/// Overridden threads have even shares of the SMs, unless an override says how many blocks an SM has.
std::vector<CtaShape> shapes_to_try(const std::vector<CtaShape>& shapes, const BlocksByUser& by_user,
                                    std::int64_t cores, std::int64_t most) {
    std::vector<CtaShape> out;
    for (CtaShape shape : shapes) {
        if (by_user.copying > 0) shape.producer_warps = static_cast<int>(by_user.copying);
        if (by_user.warps) shape.warps = static_cast<int>(*by_user.warps);
        if (by_user.threads && !by_user.blocks)
            shape.blocks_a_core = static_cast<int>(std::min(most, ceil_div(*by_user.threads, cores)));
        const int warps = shape.warps + shape.producer_warps;
        if (by_user.blocks)
            shape.blocks_a_core = static_cast<int>(*by_user.blocks->value);
        else if (by_user.warps || by_user.threads || by_user.copying > 0)
            shape.blocks_a_core = std::max(1, std::min(shape.blocks_a_core, static_cast<int>(most) / warps));
        if (warps <= most_warps && warps * shape.blocks_a_core <= most && !contains(out, shape)) out.push_back(shape);
    }
    return out;
}

bool is_any_on_tensor_cores(const Plan& plan) {
    return any_of(plan.kernels, [](const KernelPlan& kernel) { return kernel.scheduled.on_tensor_cores(); });
}

/// Whether one thread asks for copies of operands in a loop, which producer warps could do.
bool loads_operands_in_a_loop(const KernelPlan& plan) {
    const ScheduledKernel& k = plan.scheduled;
    return !plan.is_bound && k.has_bulk_copies() &&
           any_of(k.steps, [&](const Step& step) { return step.scope > 0 && k.loads_operand(step); });
}

/// Whether integers say where rows of narrow values lie that it sums. Producer warps may copy them for the tensor
/// cores.
bool gathers_rows(const Derived& derived, const Kernel& kernel) {
    return any_of(kernel.stages, [&](const Stage& stage) {
        return any_of(statements_of(stage), [&](const Statement& s) {
            bool found = false;
            visit(s.body, [&](const Expr& node) {
                const auto* r = as<Read>(node);
                found = found || (r && bytes(derived.diagram.array(r->array).type) <= 2 &&
                                  any_of(r->indices, [](const Index& i) { return i.is_gathered(); }));
            });
            return s.reduce == ReduceOp::sum && found;
        });
    });
}

bool writes_operands(const KernelPlan& plan) {
    const ScheduledKernel& k = plan.scheduled;
    return !plan.is_bound && any_of(k.layouts.ids(), [&](VariableId v) { return k.is_written(v); });
}

/// A cluster's CTAs keep step, so that each waits for the slower one.
constexpr std::int64_t ctas_of_a_cluster = 2;
constexpr double worth_of_a_cluster = 0.985;

/// Axes along which the CTAs of a cluster may share operands whose rows begin between lines of L2. It answers line by
/// line, and binds such a kernel before it binds others.
std::vector<AxisId> axes_of_clusters(const Plan& plan) {
    if (plan.kernels.size() != 1 || plan.kernels.front().is_bound) return {};
    const ScheduledKernel& k = plan.kernels.front().scheduled;
    const auto asks_twice = [&](VariableId v) { return k.is_operand(v) && !k.is_written(v) && lines_of_a_row(k, v) > 1; };
    if (k.in_cluster() || !k.producer_role() || !k.has_bulk_copies() ||
        !contains(k.unit.copies.clusters, ctas_of_a_cluster) || none_of(k.layouts.ids(), asks_twice))
        return {};
    std::vector<AxisId> out = axes_to_share(k, ctas_of_a_cluster);
    std::erase_if(out, [&](AxisId axis) { return k.is_any(axis); });
    return out;
}

std::string reason_of(std::size_t num_shapes) {
    return num_shapes == 1 ? "" : fmt::format("fastest of {} shapes of blocks", num_shapes);
}

/// Precedence for warps: schedule file, then the choices beside the text, then the text. What is said of the kernel's
/// parts, or of their merge, is said of all of it.
Result<BlocksByUser> blocks_by_user(const Derived& derived, const Extents& extents, std::size_t kernel,
                                    const std::vector<ScheduleItem>& by_user, const PlanOptions& options) {
    auto said = kernel_overrides(derived, by_user, options.file);
    if (!said) return said.errors();
    std::vector<ScheduleItem> items = std::move(said).value();
    const std::string& own = derived.kernels[kernel].name;
    std::erase_if(items, [&](const ScheduleItem& item) {
        if (item.kernel.empty() || item.kernel == own) return false;
        return contains(names_of(derived.kernels), item.kernel) || !is_of_parts(derived, kernel, item.kernel);
    });
    BlocksByUser out;
    for (const ScheduleItem& item : items)
        if (item.kind == ChoiceKind::threads)
            out.threads = std::max(out.threads.value_or(1), *item.value);
        else if (item.kind == ChoiceKind::role && item.value.value_or(0) > out.copying)
            out.copying = *item.value, out.producer_range = item.range;
        else if ((item.kind == ChoiceKind::cluster && item.value.value_or(1) > 1) ||
                 (item.kind == ChoiceKind::scheduler && *item.value > 0) ||
                 (item.kind == ChoiceKind::ping_pong && *item.value > 0))
            out.needs_copies = true;
    std::erase_if(items, [](const ScheduleItem& item) {
        return item.kind != ChoiceKind::warps && item.kind != ChoiceKind::blocks;
    });
    const auto checked = checked_overrides(derived, extents, items);
    if (!checked) return checked.errors();
    if (const ScheduleItem* warps = checked->line(ChoiceKind::warps)) out.warps = *warps->value;
    if (const ScheduleItem* blocks = checked->line(ChoiceKind::blocks)) out.blocks = *blocks;
    return out;
}

/// The error where overrides ask for more warps than a block has, or than an SM has, which runs `most` warps at a time.
std::optional<Diagnostic> too_many(const BlocksByUser& wanted, std::int64_t most) {
    const std::int64_t computing = wanted.warps.value_or(fewest_warps), warps = wanted.copying + computing;
    if (warps > most_warps)
        return Diagnostic{
            "too-many-warps",
            wanted.producer_range,
            fmt::format("a block of {} warps beside {} of a role is more than the {} that a block may have", computing,
                        wanted.copying, most_warps),
            "a role of 4 warps",
            "role copies 4",
            {},
            ExitCode::bad_input};
    if (wanted.blocks && *wanted.blocks->value * warps > most)
        return Diagnostic{
            "too-many-blocks",
            wanted.blocks->range,
            fmt::format("{} blocks of {} warps are more than the {} warps of an SM", *wanted.blocks->value, warps, most),
            fmt::format("blocks 1 … {}", std::max<std::int64_t>(1, most / warps)),
            {},
            {},
            ExitCode::bad_input};
    return std::nullopt;
}

/// The shapes of the next rows, of all that have one condition, if it holds. They are taken from the rows.
std::vector<CtaShape> shapes_of_next(std::span<const ShapeMove>& moves, const TriedShapes& tried) {
    std::vector<CtaShape> out;
    const auto when = moves.front().when;
    const bool holds = when(tried);
    for (; !moves.empty() && moves.front().when == when; moves = moves.subspan(1))
        if (holds) append(out, moves.front().apply(tried));
    return out;
}

/// Kernels of the derived form that are refused and have no other candidate in blocks of this shape.
std::size_t refused_kernels(const Plan& plan, const PlanOptions& options) {
    std::set<std::size_t> out;
    for (const KernelPlan& kernel : plan.kernels)
        if (contains(options.refused, candidate_of(kernel.scheduled))) out.insert(kernel.whole);
    return out.size();
}

/// The warps of a block where the order that is kept has a reduction which they share.
std::optional<std::int64_t> warps_of_order(const Derived& derived, std::size_t kernel, const PlanOptions& options) {
    if (!options.orders) return std::nullopt;
    for (const ScheduledKernel& k : *options.orders)
        if (k.schedule.kernel == derived.kernels[kernel].name || is_of_parts(derived, kernel, k.schedule.kernel))
            if (any_of(k.schedule.atoms, [](const Atom& atom) { return atom.shared; })) return k.schedule.warps.value;
    return std::nullopt;
}

/// Estimates leave out what a full plan has: orders of tiles, the rest of a tile. Shapes near the best one are compared
/// by plans, unless that would take too long.
std::vector<CtaShape> shapes_near_the_best(std::vector<EstimatedStrategy> rated, bool is_quick) {
    std::stable_sort(rated.begin(), rated.end());
    std::vector<CtaShape> near;
    for (const EstimatedStrategy& r : rated) {
        if (!near.empty() &&
            (is_quick || r.refused > rated.front().refused || r.seconds > near_the_best * rated.front().seconds))
            break;
        // A shape that differs only in its order of products, and takes as long, has no products to order.
        const auto same = [&](const EstimatedStrategy& other) {
            return &other < &r && other.seconds == r.seconds && other.shape.warps == r.shape.warps &&
                   other.shape.blocks_a_core == r.shape.blocks_a_core &&
                   other.shape.producer_warps == r.shape.producer_warps;
        };
        if (none_of(rated, same)) near.push_back(r.shape);
    }
    return near;
}

}  // namespace

Result<Plan> choose_blocks_of(std::size_t kernel, const Derived& derived, const Extents& extents, const Machine& gpu,
                              const std::vector<ScheduleItem>& by_user, const PlanOptions& options) {
    auto wanted = blocks_by_user(derived, extents, kernel, by_user, options);
    if (!wanted) return wanted.errors();
    const bool warps_by_user = wanted->warps.has_value();
    if (const auto warps = warps_of_order(derived, kernel, options)) wanted->warps = warps;
    const auto most = static_cast<std::int64_t>(gpu.threads->warps_a_core.value);
    if (auto error = too_many(*wanted, most)) return *error;
    const auto machine_of = [&](const CtaShape& shape) {
        return block_machine(gpu, shape.warps, shape.blocks_a_core, shape.producer_warps);
    };
    const auto planned = [&](const CtaShape& shape, PlanOptions how, const std::string& reason) {
        how.only = {kernel};
        how.warps = {shape.warps, reason, warps_by_user};
        how.blocks_by_user = wanted->blocks.has_value();
        how.producer_warps = shape.producer_warps, how.products = shape.products;
        return plan_form(derived, extents, machine_of(shape), by_user, how);
    };
    // The searches of different shapes share nothing, so they run side by side.
    const auto each_planned = [&](const std::vector<CtaShape>& of, const PlanOptions& how, const std::string& reason) {
        std::vector<Result<Plan>> plans(of.size(), Diagnostic{});
        share_out(of.size(), [&](std::size_t i) { plans[i] = planned(of[i], how, reason); });
        return plans;
    };
    PlanOptions for_estimate = options;
    for_estimate.known_tiles = std::make_shared<KnownTiles>();
    for_estimate.quick = true, for_estimate.completion = Completion::for_estimate;
    PlanOptions as_a_whole = for_estimate;
    as_a_whole.parts.resize(derived.kernels.size());
    const bool may_be_cut = !options.is_batch_invariant && !as_a_whole.parts[kernel];
    if (may_be_cut) as_a_whole.parts[kernel] = Choice{1, "", false};
    std::vector<CtaShape> shapes;
    std::optional<Result<Plan>> refused;
    std::vector<EstimatedStrategy> rated;
    bool copies = gathers_rows(derived, derived.kernels[kernel]), writes = false;
    double least = std::numeric_limits<double>::infinity();
    const auto try_shapes = [&](const std::vector<CtaShape>& next) {
        PlanOptions whole = as_a_whole;
        whole.useless = std::min(whole.useless, near_the_best * least);
        std::vector<Result<Plan>> plans = each_planned(next, whole, "");
        for (const Result<Plan>& plan : plans)
            if (plan && !plan->is_bound() && refused_kernels(*plan, options) == 0)
                least = std::min(least, plan->seconds());
        // Parts are of use only where they come near the fastest shape without them.
        PlanOptions in_parts = for_estimate;
        in_parts.enough = near_the_best * least, in_parts.useless = whole.useless;
        share_out(may_be_cut ? next.size() : 0, [&](std::size_t i) {
            // Parts of a stream compute no less than all of it.
            if (!plans[i] || plans[i]->is_bound()) return;
            const Machine machine = machine_of(next[i]);
            const bool may_gain = any_of(plans[i]->kernels, [&](const KernelPlan& k) {
                return may_gain_by_parts(k, machine, machine.num_cores(), in_parts.enough);
            });
            if (may_gain || wanted->threads) plans[i] = planned(next[i], in_parts, "");
        });
        for (std::size_t i = 0; i < next.size(); ++i) {
            const Result<Plan>& plan = plans[i];
            // Overridden sizes may fit where fewer blocks share an SM. Where overrides need producer warps, the error
            // of a shape with them replaces one of the same code.
            if (!plan && (!refused || (wanted->needs_copies && next[i].producer_warps > 0 &&
                                       plan.errors().front().code == refused->errors().front().code)))
                refused = plan;
            if (!plan) continue;
            copies |= any_of(plan->kernels, loads_operands_in_a_loop), writes |= any_of(plan->kernels, writes_operands);
            rated.push_back({next[i], refused_kernels(*plan, options), plan->seconds(), is_any_on_tensor_cores(*plan)});
        }
    };
    const auto try_all = [&](const std::vector<CtaShape>& more) {
        std::vector<CtaShape> next = shapes_to_try(more, *wanted, gpu.num_cores(), most);
        std::erase_if(next, [&](const CtaShape& shape) { return contains(shapes, shape); });
        append(shapes, next);
        // What the first one takes may leave the others unplanned.
        if (std::isinf(least) && next.size() > 1) try_shapes({next.front()}), next.erase(next.begin());
        try_shapes(next);
    };
    for (std::span<const ShapeMove> moves = shape_moves(); !moves.empty();)
        try_all(shapes_of_next(moves, {wanted->copying > 0 || ((copies || wanted->needs_copies) && !wanted->warps),
                                       writes, !rated.empty() && !min_element(rated)->uses_tensor_cores}));
    if (rated.empty()) return *refused;

    const std::vector<CtaShape> near = shapes_near_the_best(std::move(rated), options.quick);
    std::optional<Result<Plan>> best;
    CtaShape shape = near.front();
    PlanOptions in_full = options;
    in_full.known_tiles = for_estimate.known_tiles;
    const std::string reason = reason_of(shapes.size());
    std::vector<Result<Plan>> plans = each_planned(near, in_full, reason);
    for (std::size_t i = 0; i < plans.size(); ++i)
        if (!best || (plans[i] && (!*best || plans[i]->seconds() < (*best)->seconds())))
            best = std::move(plans[i]), shape = near[i];
    if (!*best || options.quick) return *best;
    for (const AxisId axis : axes_of_clusters(**best)) {
        in_full.cluster = CtaCluster{axis, ctas_of_a_cluster};
        auto plan = planned(shape, in_full, reason);
        if (plan && plan->seconds() < worth_of_a_cluster * (*best)->seconds()) best = std::move(plan);
    }
    return *best;
}

namespace {

/// Plans every kernel of the form by itself.
Result<Plan> choose_each(const Derived& derived, const Extents& extents, const Machine& gpu,
                         const std::vector<ScheduleItem>& by_user, const PlanOptions& options) {
    Plan plan;
    std::vector<Diagnostic> errors;
    for (std::size_t k = 0; k < derived.kernels.size(); ++k) {
        auto of_kernel = choose_blocks_of(k, derived, extents, gpu, by_user, options);
        if (!of_kernel) {
            // An error that kernels have in common is reported once.
            for (const Diagnostic& error : of_kernel.errors())
                if (none_of(errors, [&](const Diagnostic& e) {
                        return e.message == error.message && e.range.begin == error.range.begin;
                    }))
                    errors.push_back(error);
            continue;
        }
        plan.machine = of_kernel->machine;
        plan.change.parts.push_back(of_kernel->change.parts[k]);
        append(plan.kernels, std::move(of_kernel->kernels));
    }
    if (!errors.empty()) return errors;
    return plan;
}

}  // namespace

bool has_cuda_blocks(const Machine& gpu) { return gpu.threads && gpu.threads->warp_threads.value == cuda_warp; }

Result<Plan> choose_blocks(const Derived& derived, const Extents& extents, const Machine& gpu,
                           const std::vector<ScheduleItem>& by_user, const PlanOptions& options) {
    if (!has_cuda_blocks(gpu)) {
        return Diagnostic{
            .code = "no-emitter",
            .message = fmt::format(
                "kernels are planned and emitted for CPUs and for GPUs that CUDA programs, and {} is neither", gpu.name),
            .expected = "a machine of kind cpu, or a GPU with warps of 32 threads",
            .hint = fmt::format("'napkin cost --machine {}' says what it costs there", gpu.name),
            .exit_code = ExitCode::machine_lacks};
    }
    // The full search of a shape finds what its estimate found before.
    PlanOptions of_kernels = options;
    if (!of_kernels.ratings) of_kernels.ratings = std::make_shared<Estimates>();
    auto plan = choose_each(derived, extents, gpu, by_user, of_kernels);
    const bool is_cut = plan && any_of(plan->change.parts, [](std::int64_t n) { return n > 1; });
    if (!is_cut || derived.kernels.size() == 1) return plan;
    // Each kernel is planned in a form in which only its own stream is cut. They are planned once more in the form
    // where all of these streams are cut.
    of_kernels.parts.assign(derived.kernels.size(), Choice{1, "", false});
    for (const KernelPlan& kernel : plan->kernels)
        if (kernel.scheduled.kernel->parts.any()) of_kernels.parts[kernel.whole] = kernel.schedule().split;
    return choose_each(derived, extents, gpu, by_user, of_kernels);
}

}  // namespace napkin
