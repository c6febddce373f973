#include "schedule/time_terms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/numbers.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

constexpr const char* delay = "units that delay each other";

bool is_shorter(const TimeTerm& a, const TimeTerm& b) { return a.seconds < b.seconds; }

}  // namespace

bool TimeSum::is_in_waves() const {
    return all_of(terms_, [](const TimeTerm& t) { return t.in_waves; });
}

TimeSum TimeSum::scaled(double factor, const std::string& why) const {
    TimeSum out = *this;
    out.seconds_ *= factor;
    for (TimeTerm& t : out.terms_) {
        t.seconds *= factor, t.made_of += why;
        for (HiddenTime& h : t.hidden) h.seconds *= factor, h.slack *= factor;
    }
    if (factor == 0) out.terms_.clear();
    return out;
}

TimeSum TimeSum::overlapped(double seconds, double exponent, std::initializer_list<TimeSum> sums, const char* behind) {
    const TimeSum* longest = max_element(sums, [](const TimeSum& a, const TimeSum& b) { return a.seconds_ < b.seconds_; });
    if (!longest->keeps_terms_) {
        TimeSum out(false);
        out.seconds_ = seconds;
        return out;
    }
    TimeSum out = *longest;
    const double left = seconds - longest->seconds_;
    out.seconds_ = seconds;
    if (out.terms_.empty()) return out;
    for (TimeTerm& t : out.terms_)
        for (HiddenTime& h : t.hidden) h.slack += left;
    const std::string name = out.terms_.size() == 1 ? out.terms_[0].name : behind;
    std::vector<HiddenTime>& hidden = max_element(out.terms_, is_shorter)->hidden;
    for (const TimeSum& sum : sums) {
        if (&sum == longest) continue;
        const double slack = seconds - sum.seconds_;
        for (const TimeTerm& t : sum.terms_) {
            if (t.name != delay) hidden.push_back({t.name, t.seconds, slack, t.made_of, name, t.in_waves});
            for (HiddenTime h : t.hidden) h.slack += slack, h.behind = name, hidden.push_back(std::move(h));
        }
    }
    if (exponent > 0 && left > 0)
        out.terms_.push_back({delay, left,
                              fmt::format("(Σ t^p)^(1/p) of what overlaps, less the longest, p = {:.3g}", exponent),
                              all_of(sums, [](const TimeSum& sum) { return sum.is_in_waves(); })});
    return out;
}

std::vector<TimeTerm> with_waves_apart(std::vector<TimeTerm> terms, double waves, const std::string& why) {
    waves = std::max(1.0, waves);
    TimeTerm quantization{"wave quantization", 0, why};
    std::vector<TimeTerm> out;
    for (TimeTerm& t : terms) {
        if (t.in_waves) {
            quantization.seconds += t.seconds - t.seconds / waves;
            t.seconds /= waves;
        }
        for (HiddenTime& h : t.hidden)
            if (h.in_waves) h.seconds /= waves, h.slack /= waves;
        const auto same = find_if(out, [&](const TimeTerm& other) { return other.name == t.name; });
        if (same == out.end()) {
            out.push_back(std::move(t));
            continue;
        }
        same->seconds += t.seconds;
        if (same->made_of.find(t.made_of) == std::string::npos) same->made_of += "; " + t.made_of;
        for (HiddenTime& h : t.hidden) {
            const auto alike = find_if(
                same->hidden, [&](const HiddenTime& other) { return other.name == h.name && other.behind == h.behind; });
            if (alike == same->hidden.end())
                same->hidden.push_back(std::move(h));
            else
                alike->seconds += h.seconds, alike->slack += h.slack;
        }
    }
    if (quantization.seconds > 0) out.push_back(std::move(quantization));
    return out;
}

std::string number_text(double number) {
    return number >= 1000 ? count_text(std::round(number)) : fmt::format("{:.4g}", number);
}

std::string CoresText::of_waves(double seconds, double count, const std::string& what) const {
    return each(seconds / waves, count, what);
}

std::string CoresText::each(double seconds, double count, const std::string& what) const {
    return fmt::format("{} {} on each of {} {} × {} clocks at {}", number_text(count / cores), what, number_text(cores),
                       names, number_text(clocks(seconds, count)), at);
}

std::string transfer_text(double bytes, double seconds) {
    return fmt::format("{} MB at {} GB/s", number_text(bytes / 1e6), number_text(bytes / seconds / 1e9));
}

}  // namespace napkin
