#include "plan/polynomials.hpp"

#include <fmt/format.h>

#include <utility>

#include "plan/reasons.hpp"
#include "schedule/exponentials.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

/// The finest part that is looked at, one of so many: of 32 to 64 exponentials that a thread has of a row, two or four.
constexpr std::int64_t finest_part = 16;

}  // namespace

std::vector<PossiblePolynomials> possible_polynomials(const ScheduledKernel& kernel, bool by_hand) {
    std::vector<PossiblePolynomials> out;
    if (!kernel.on_matrix_unit()) return out;
    for (const Step& step : kernel.steps) {
        if (step.atom < 0 || kernel.atom(step).kind != AtomKind::fragment || (kernel.atom(step).by_hand && !by_hand))
            continue;
        const auto found = exponentials_of_row(kernel, step);
        if (const auto* n = std::get_if<std::int64_t>(&found))
            out.push_back({kernel.number(step), static_cast<int>(nearest_divisor(*n, finest_part))});
    }
    return out;
}

ScheduledKernel with_polynomials(const ScheduledKernel& kernel, StepId step, int some, int of) {
    ScheduledKernel out = kernel;
    Atom& atom = out.schedule.atoms[kernel.step(step).atom];
    atom.polynomials = some, atom.polynomials_of = some > 0 ? of : 1;
    return out;
}

/// The units' loads are linear in the part, and a norm of them is convex: where the first step up is no faster, none is.
Simulation choose_polynomials(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads, Simulation time) {
    if (!model.machine().polynomial_slots.known()) return time;
    for (const auto& [step, of] : possible_polynomials(kernel)) {
        const double without = time.seconds;
        int chosen = 0;
        for (int some = 1; some <= of; some *= 2) {
            ScheduledKernel other = with_polynomials(kernel, step, some, of);
            Simulation with = model.run(other, threads);
            if (with.seconds >= time.seconds) break;
            time = std::move(with), kernel = std::move(other), chosen = some;
        }
        if (chosen > 0)
            kernel.schedule.atoms[kernel.step(step).atom].reason = fmt::format("no polynomials {}",
                                                                               time_change(without / time.seconds));
    }
    return time;
}

}  // namespace napkin
