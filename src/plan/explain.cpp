#include "plan/explain.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "plan/simulate_again.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

constexpr int digits = 5;  // of a kernel's time
/// Shares of the time below this have no line of their own.
constexpr double least_share = 1e-3;

/// The terms, with the small ones in one.
std::vector<TimeTerm> with_lines(const ExplainedTime& time) {
    std::vector<TimeTerm> out;
    TimeTerm rest{"all else", 0, ""};
    std::size_t small = 0;
    for (const TimeTerm& t : time.terms)
        t.seconds < least_share* time.seconds ? (rest.seconds += t.seconds, ++small) : (out.push_back(t), 0u);
    rest.made_of = fmt::format("{} terms of less than {}% each", small, 100 * least_share);
    if (small > 0) out.push_back(std::move(rest));
    return out;
}

/// Terms in units of the last digit that is printed. Those with the largest remainders are rounded up, so that the sum
/// is the rounded time.
std::vector<std::int64_t> rounded(const std::vector<TimeTerm>& terms, double seconds, double unit) {
    auto out = mapped<std::int64_t>(
        terms, [&](const TimeTerm& t) { return static_cast<std::int64_t>(std::floor(t.seconds / unit)); });
    auto left = std::llround(seconds / unit) - sum<std::int64_t>(out, [](std::int64_t n) { return n; });
    std::vector<std::size_t> order(out.size());
    iota(order, std::size_t{0});
    const auto remainder = [&](std::size_t i) { return terms[i].seconds / unit - static_cast<double>(out[i]); };
    const auto exact = mapped<double>(order, remainder);
    stable_sort(order, [&](std::size_t a, std::size_t b) { return exact[a] > exact[b]; });
    for (const std::size_t i : order)
        if (left > 0) ++out[i], --left;
    return out;
}

std::string table_of(const ExplainedTime& time) {
    // The unit of the column is that of the time, and so are its decimals.
    int exponent = 0, decimals = digits - 1;
    for (const int e : {3, 6, 9})
        if (time.seconds * std::pow(10, exponent) < 1) exponent = e;
    for (double t = time.seconds * std::pow(10, exponent); t >= 10 && decimals > 0; t /= 10) --decimals;
    const std::string unit = exponent == 0 ? "s" : exponent == 3 ? "ms" : exponent == 6 ? "µs" : "ns";
    const double last_digit = std::pow(10, -exponent - decimals);
    const auto cell = [&](double seconds) { return fmt::format("{:.{}f}", seconds * std::pow(10, exponent), decimals); };
    const auto share = [&](double seconds) { return fmt::format("{:.1f}%", 100 * seconds / time.seconds); };

    std::vector<std::vector<std::string>> rows{{"term", unit, "share", "made of"}};
    const std::vector<TimeTerm> terms = with_lines(time);
    const std::vector<std::int64_t> in_digits = rounded(terms, time.seconds, last_digit);
    for (std::size_t i = 0; i < terms.size(); ++i) {
        const TimeTerm& t = terms[i];
        rows.push_back({t.name, cell(static_cast<double>(in_digits[i]) * last_digit), share(t.seconds), t.made_of});
        for (const HiddenTime& h : t.hidden)
            if (h.seconds >= least_share * time.seconds)
                rows.push_back({"  hidden: " + h.name, "(" + cell(h.seconds) + ")", "",
                                fmt::format("slack {} {}{}; {}", cell(h.slack), unit,
                                            h.behind == t.name ? "" : " behind " + h.behind, h.made_of)});
    }
    rows.push_back({"predicted", cell(time.seconds), share(time.seconds), ""});
    return fmt::format("\ntime of kernel {}\n", time.kernel) + table(rows, {1, 2}, "  ");
}

}  // namespace

std::vector<ExplainedTime> explained_times(const Derived& derived, const Extents& extents, const Machine& machine,
                                           const Plan& plan) {
    std::vector<ExplainedTime> out;
    for (Simulation& time : simulate_again(derived, extents, machine, plan, {.explains = true})) {
        const KernelPlan& kernel = plan.kernels[out.size()];
        internal_check(time.seconds == kernel.time.seconds, "explain: the plan's time is another one");
        stable_sort(time.terms, [](const TimeTerm& a, const TimeTerm& b) { return a.seconds > b.seconds; });
        out.push_back({kernel.schedule().kernel, time.seconds, std::move(time.terms)});
    }
    return out;
}

std::string to_string(const std::vector<ExplainedTime>& times) {
    std::string out;
    for (const ExplainedTime& time : times) out += table_of(time);
    return out;
}

}  // namespace napkin
