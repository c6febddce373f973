#include "plan/choose_form.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <string>

#include "cost/compulsory.hpp"
#include "diagram/flat_axes.hpp"
#include "plan/aligned.hpp"
#include "plan/blocks.hpp"
#include "plan/choose.hpp"
#include "plan/kernel_times.hpp"
#include "plan/overrides.hpp"
#include "plan/parts.hpp"
#include "schedule/schedule.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "tile/expand.hpp"
#include "tile/work.hpp"

namespace napkin {

namespace {

/// Threads that compare forms. With more of them, more forms are costed before it is known which time rejects them.
constexpr std::size_t forms_at_a_time = 2;
/// Share of the time that another form must save to replace an earlier one.
constexpr double least_gain_of_form = 0.02;

/// The whole fold is planned too where a quick search finds it slower than the fastest form by at most this factor. It
/// may be the faster one by full searches. With one new token against a cache (examples/decode.nk), the quick search
/// finds 8.3 ms where the full search finds 6.3 (two cores of an Intel server, 2026-11-27).
constexpr double near_the_least = 1.25;

/// A form is planned if the model of forms finds at most this multiple of the least time. That model does not see that
/// products computed on the way to others run on no tensor core.
constexpr double worth_planning = 2;
/// Most forms that are planned beside the one that the model finds and the calculus' own first choice.
constexpr std::size_t most_near_forms = 2;

/// The overrides, read for the kernels of one form.
class LinesOfForm {
public:
    LinesOfForm(const Derived& form, const Extents& extents, const std::vector<ScheduleItem>& by_user)
        : form_(form), extents_(extents) {
        // Where an override splits a stream, the lines are those of its parts and of their merge, which may have the
        // name of the whole kernel.
        const auto parts = parts_by_user(form, extents, by_user);
        const std::vector<std::int64_t> numbers = parts ? mapped<std::int64_t>(
                                                              *parts,
                                                              [](const auto& part) { return part ? part->value : 1; })
                                                        : std::vector<std::int64_t>(form.kernels.size(), 1);
        cut_ = cut_streams(form, extents, numbers);
        const std::vector<std::string> names = names_of(cut_.form.kernels);
        const TileProgram tiles = tiles_of(cut_.form, cut_.extents, by_user);
        for (const ScheduleItem& item : by_user) {
            if (!item.kernel.empty() && !contains(names, item.kernel)) {
                missing_.insert(item.kernel);
            } else if (is_readable(item, by_user, tiles, parts.ok())) {
                if (item.kernel.empty()) of_all_.push_back(item);
            } else {
                ++unread_;
            }
        }
    }

    /// Kernels that the form lacks weigh more than lines that cannot be read for kernels that it has. Kernels and lines
    /// of other forms' regions count alike in each of the alternatives.
    [[nodiscard]] double mismatch() const {
        constexpr double weight_of_kernel = 1e6;
        return weight_of_kernel * static_cast<double>(missing_.size()) + unread_;
    }
    /// The lines for all kernels that can be read for these.
    [[nodiscard]] const std::vector<ScheduleItem>& of_all_kernels() const { return of_all_; }

private:
    [[nodiscard]] bool is_readable(const ScheduleItem& item, const std::vector<ScheduleItem>& by_user,
                                   const TileProgram& tiles, bool is_cut_as_said) const {
        // A merge does not stream what the kernel that was split did.
        if (item.kind == ChoiceKind::split)
            return is_cut_as_said && (!item.kernel.empty() || checked_overrides(form_, extents_, {item}).ok());
        std::vector<ScheduleItem> lines{item};
        // A slot may name a role.
        if (item.kind == ChoiceKind::slot)
            for (const ScheduleItem& role : by_user)
                if (role.kind == ChoiceKind::role && (role.kernel.empty() || role.kernel == item.kernel))
                    lines.insert(lines.begin(), role);
        if (!schedule_overrides(lines, tiles).ok()) return false;
        if (!item.clauses.empty()) return true;
        Derived named = cut_.form;
        if (!item.kernel.empty()) std::erase_if(named.kernels, [&](const Kernel& k) { return k.name != item.kernel; });
        return checked_overrides(named, cut_.extents, {item}).ok();
    }

    const Derived& form_;
    const Extents& extents_;
    Cut cut_;
    std::set<std::string> missing_;
    int unread_ = 0;
    std::vector<ScheduleItem> of_all_;
};

/// Whether some statement of the program, also in loops, is a sum for which f holds.
bool has_sum(const std::vector<TileStatement>& statements, const std::function<bool(const Compute&)>& f) {
    return any_of(statements, [&](const TileStatement& s) {
        if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) return has_sum((*loop)->body, f);
        const auto* compute = std::get_if<Compute>(&s);
        return compute && compute->reduce == ReduceOp::sum && f(*compute);
    });
}

/// Whether the model of forms may be wrong about some product on tensor cores. It takes a product in the widest type of
/// what it reads, and a kernel on the tensor cores rounds what it computes to the type of the other factor. It also
/// does not see that a sum over several axes is a product there only if one of them is streamed.
bool may_mistake_products(const TileProgram& program) {
    return any_of(program.kernels, [](const TileKernel& kernel) {
        return has_sum(kernel.body, [&](const Compute& sum) {
            const auto* product = as<Binary>(sum.body);
            if (!product || product->op != BinaryOp::mul) return false;
            const Read *a = as<Read>(product->a), *b = as<Read>(product->b);
            if (!a || !b) return false;
            const int first = bytes(kernel.variables[a->variable()].memory_type),
                      second = bytes(kernel.variables[b->variable()].memory_type);
            return std::min(first, second) <= 2 && (first != second || sum.reduce_axes.size() > 1);
        });
    });
}

/// Whether some sum has at most one axis that lies whole in a tile, as products on the tensor cores have.
bool may_run_on_tensor_cores(const Kernel& kernel, const Extents& extents) {
    return any_of(kernel.stages, [&](const Stage& stage) {
        const auto* loop = std::get_if<Loop>(&stage);
        return any_of(statements_of(stage), [&](const Statement& s) {
            const auto is_whole = [&](AxisId axis) { return extents[axis] > 1 && !(loop && loop->axis == axis); };
            return s.reduce == ReduceOp::sum && count_if(s.reduce_axes, is_whole) <= 1;
        });
    });
}

struct FormToPlan {
    Derived form;
    double seconds = 0;  ///< by the model of forms; 0: it is planned whatever the model says
};

/// The fastest form, by a plan of each. The earlier one where they are alike.
Derived fastest_planned(std::vector<FormToPlan> forms, const Extents& extents, const Machine& machine,
                        const std::vector<ScheduleItem>& by_user, const PlanOptions& options) {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < forms.size(); ++i) {
        const auto plan = choose_plan(forms[i].form, extents, machine, by_user, options);
        if (plan && plan->seconds() < least) best = i, least = plan->seconds();
    }
    return std::move(forms[best].form);
}

/// Finds the form whose plan on a GPU is the fastest, the earlier one where they are alike. Plans are made kernel by
/// kernel, always for the form with the least lower bound. The first form that is planned to its end is the fastest, so
/// that the others need not be.
class FormsByKernels {
public:
    FormsByKernels(std::vector<FormToPlan> forms, const Extents& extents, const Machine& gpu,
                   const std::vector<ScheduleItem>& by_user, PlanOptions options)
        : extents_(extents), gpu_(gpu), by_user_(by_user), options_(std::move(options)) {
        if (!options_.ratings) options_.ratings = std::make_shared<Estimates>();
        for (FormToPlan& form : forms) {
            auto least = mapped<double>(form.form.kernels, [&](const Kernel& kernel) {
                return least_seconds(
                    form.form, kernel, statement_work(form.form, kernel), extents, gpu,
                    may_run_on_tensor_cores(kernel, extents) ? ComputedBy::tensor_cores : ComputedBy::cores);
            });
            planned_.push_back({std::move(form.form), form.seconds, std::move(least)});
        }
    }

    Derived run() {
        while (true) {
            Planned& next = *min_element(planned_,
                                         [&](const Planned& a, const Planned& b) { return bound(a) < bound(b); });
            if (next.is_whole()) return std::move(next.form);
            double others = std::numeric_limits<double>::infinity();
            for (const Planned& other : planned_)
                if (&other != &next) others = std::min(others, bound(other));
            plan_kernel(next, others);
        }
    }

private:
    struct Planned {
        Derived form;
        double by_model = 0;        ///< seconds that its plan takes at least
        std::vector<double> least;  ///< the same of each of its kernels
        std::size_t kernels = 0;    ///< that are planned: the first ones
        double seconds = 0;         ///< of the kernels that are planned
        bool is_cut = false;        ///< whether a stream of theirs is split
        [[nodiscard]] bool is_whole() const { return kernels == form.kernels.size(); }
    };

    /// Seconds that the form's plan takes at least.
    [[nodiscard]] double bound(const Planned& p) const {
        return p.is_whole() ? p.seconds : std::max(p.by_model, bound_of_kernels(p));
    }
    [[nodiscard]] static double bound_of_kernels(const Planned& p) {
        return std::accumulate(p.least.begin() + static_cast<std::ptrdiff_t>(p.kernels), p.least.end(), p.seconds);
    }

    /// Plans the form's next kernel, or finds out that the form takes longer than the others may.
    void plan_kernel(Planned& p, double others) {
        // Copied rows make another form, with other kernels.
        const bool may_copy_rows = with_copied_rows(p.form, extents_, gpu_).has_value();
        if (!may_copy_rows) {
            PlanOptions of_kernel = options_;
            // A bound that comes back is above the one that is known, so that no form is asked the same twice.
            const double known = p.least[p.kernels];
            of_kernel.useless = std::max(known, others - (bound_of_kernels(p) - known));
            const auto plan = choose_blocks_of(p.kernels, p.form, extents_, gpu_, by_user_, of_kernel);
            if (plan && plan->is_bound()) {
                internal_check(plan->seconds() > known, "plan: a form is asked for a bound that is known");
                p.least[p.kernels] = plan->seconds();
                return;
            }
            p.seconds += plan ? plan->seconds() : std::numeric_limits<double>::infinity();
            p.is_cut |= plan && any_of(plan->change.parts, [](std::int64_t n) { return n > 1; });
            if (++p.kernels < p.form.kernels.size() || !p.is_cut) return;
        }
        // Split kernels are planned once more, in the form with all splits.
        const auto plan = choose_plan(p.form, extents_, gpu_, by_user_, options_);
        p.seconds = plan ? plan->seconds() : std::numeric_limits<double>::infinity();
        p.kernels = p.form.kernels.size();
    }

    const Extents& extents_;
    const Machine& gpu_;
    const std::vector<ScheduleItem>& by_user_;
    PlanOptions options_;
    std::vector<Planned> planned_;
};

/// Whether two forms of one derivation have the same kernels, streamed along the same axes.
bool are_alike(const Derived& a, const Derived& b) {
    return a.flat_rows == b.flat_rows &&
           std::equal(a.regions.begin(), a.regions.end(), b.regions.begin(), b.regions.end(),
                      [](const Region& x, const Region& y) {
                          return x.alternatives[x.chosen].kernels == y.alternatives[y.chosen].kernels;
                      });
}

bool streams_flat_axis(const Derived& form) {
    return any_of(form.regions, [&](const Region& region) {
        return any_of(region.alternatives[region.chosen].kernels, [&](const Gathering& g) {
            return g.stream && !parts_of_flat_axis(form.diagram, *g.stream).empty();
        });
    });
}

/// The forms with another alternative in one region that the model of forms finds little slower, the fastest first.
std::vector<FormToPlan> near_forms(const Derived& least, const std::function<double(const Derived&, double)>& seconds) {
    const double enough = worth_planning * seconds(least, std::numeric_limits<double>::infinity());
    std::vector<FormToPlan> found;
    std::vector<std::size_t> chosen = mapped<std::size_t>(least.regions,
                                                          [](const Region& region) { return region.chosen; });
    for (std::size_t r = 0; r < chosen.size(); ++r) {
        const std::size_t kept = chosen[r];
        for (std::size_t a = 0; a < least.regions[r].alternatives.size(); ++a) {
            if (a == kept) continue;
            chosen[r] = a;
            Derived form = rederive(least, chosen);
            if (const double time = seconds(form, enough); time < enough) found.push_back({std::move(form), time});
        }
        chosen[r] = kept;
    }
    stable_sort(found, [](const FormToPlan& a, const FormToPlan& b) { return a.seconds < b.seconds; });
    return found;
}

/// choose_form, with known times of kernels.
Derived least_form(const Derived& derived, const Extents& extents, const Machine& machine,
                   const std::vector<ScheduleItem>& by_user, KernelTimes& known) {
    const auto quick = [&](const Derived& form, double enough) {
        // Vectors lie along any axis of a product, so that a processor gains nothing by one summed axis.
        if (machine.kind == MachineKind::cpu && streams_flat_axis(form)) return std::numeric_limits<double>::infinity();
        if (by_user.empty()) return estimated_seconds(form, extents, machine, known, enough);
        return estimated_seconds(form, extents, machine, known, enough,
                                 LinesOfForm(form, extents, by_user).of_all_kernels());
    };
    std::function<double(const Derived&)> mismatch;
    if (!by_user.empty())
        mismatch = [&](const Derived& form) { return LinesOfForm(form, extents, by_user).mismatch(); };
    Derived least = with_least_cost(derived, quick, forms_at_a_time, least_gain_of_form, mismatch);
    if (machine.kind == MachineKind::gpu || names_of(least.kernels) == names_of(derived.kernels)) return least;
    if (mismatch && mismatch(derived) > mismatch(least)) return least;
    // A quick search finds less of a long fold's schedules than of its parts'.
    constexpr double no_limit = std::numeric_limits<double>::infinity();
    if (quick(derived, no_limit) > near_the_least * quick(least, no_limit)) return least;
    return fastest_planned({{std::move(least)}, {derived}}, extents, machine, by_user, {.ratings = known.ratings()});
}

/// The derivation with flat rows, where an override names one of their axes.
std::optional<Derived> flat_rows_by_user(const Derived& derived, const std::vector<ScheduleItem>& by_user) {
    for (const std::vector<AxisId>& run : flat_rows(derived.source)) {
        const AxisId flat = flat_axis_of(derived.source, run);
        if (flat >= 0 &&
            any_of(by_user, [&](const ScheduleItem& item) { return item.axis == derived.source.axis(flat).name; }))
            return with_flat_rows(derived);
    }
    return std::nullopt;
}

}  // namespace

Derived choose_form(const Derived& derived, const Extents& extents, const Machine& machine,
                    const std::vector<ScheduleItem>& by_user, const std::shared_ptr<Estimates>& ratings) {
    KernelTimes known(by_user.empty() ? ratings : nullptr);
    if (const auto flat = flat_rows_by_user(derived, by_user))
        return least_form(*flat, extents, machine, by_user, known);
    return least_form(derived, extents, machine, by_user, known);
}

Derived choose_form_by_plans(const Derived& derived, const Extents& extents, const Machine& machine,
                             const std::vector<ScheduleItem>& by_user, const std::shared_ptr<Estimates>& ratings) {
    if (const auto flat = flat_rows_by_user(derived, by_user))
        return choose_form_by_plans(*flat, extents, machine, by_user, ratings);
    KernelTimes known(by_user.empty() ? ratings : nullptr);
    Derived least = least_form(derived, extents, machine, by_user, known);
    if (machine.kind != MachineKind::gpu || !has_cuda_blocks(machine)) return least;
    if (!may_mistake_products(expand(derived))) return least;
    std::vector<FormToPlan> forms;
    const auto add = [&](FormToPlan next) {
        if (none_of(forms, [&](const FormToPlan& other) { return are_alike(next.form, other.form); }))
            forms.push_back(std::move(next));
    };
    const auto add_forms_of = [&](const Derived& first, const Derived& fastest) {
        add({fastest});
        add({first});
        const std::size_t most = forms.size() + most_near_forms;
        for (FormToPlan& next : near_forms(fastest, [&](const Derived& form, double enough) {
                 return estimated_seconds(form, extents, machine, known, enough);
             }))
            if (forms.size() < most) add(std::move(next));
    };
    if (by_user.empty()) {
        add_forms_of(derived, least);
        if (const auto flat = with_flat_rows(derived))
            add_forms_of(*flat, least_form(*flat, extents, machine, by_user, known));
    } else {
        add({least}), add({derived});
    }
    if (forms.size() == 1) return least;
    return FormsByKernels(
               std::move(forms), extents, machine, by_user,
               {.quick = true, .completion = Completion::for_estimate, .ratings = by_user.empty() ? ratings : nullptr})
        .run();
}

}  // namespace napkin
