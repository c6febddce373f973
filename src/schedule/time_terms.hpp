#pragma once
// The terms of a predicted time. They are kept only where somebody asks for them, as a search makes thousands of times.
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace napkin {

/// What runs at the same time as a term and takes no time of its own.
struct HiddenTime {
    std::string name;
    double seconds = 0;
    double slack = 0;  ///< seconds that it could take longer without changing the predicted time
    std::string made_of;
    std::string behind;  ///< the term, or what several terms make
    bool in_waves = false;
};

/// A part of a predicted time, and the counts and figures of the machine that it is made of.
struct TimeTerm {
    std::string name;
    double seconds = 0;
    std::string made_of;
    bool in_waves = false;  ///< it is proportional to the wave quantization factor
    std::vector<HiddenTime> hidden = {};
};

/// Terms with the wave quantization as a term of its own, equal names joined, in their first order. Every other term
/// is that of even shares then. `waves`: the factor. `why`: the counts that it is made of.
std::vector<TimeTerm> with_waves_apart(std::vector<TimeTerm> terms, double waves, const std::string& why);

/// Seconds that are added up, with the terms that they consist of.
class TimeSum {
public:
    explicit TimeSum(bool keeps_terms) : keeps_terms_(keeps_terms) {}

    [[nodiscard]] double seconds() const { return seconds_; }
    [[nodiscard]] const std::vector<TimeTerm>& terms() const { return terms_; }

    /// `what` is called where terms are kept. It makes a term, whose seconds are set here, or a TimeSum whose terms
    /// have these seconds.
    void add(double seconds, auto&& what) {
        seconds_ += seconds;
        if (!keeps_terms_ || seconds == 0) return;
        if constexpr (std::is_same_v<decltype(what()), TimeTerm>) {
            terms_.push_back(what());
            terms_.back().seconds = seconds;
        } else {
            const TimeSum parts = what();
            terms_.insert(terms_.end(), parts.terms_.begin(), parts.terms_.end());
        }
    }
    void add(const TimeSum& other) {
        add(other.seconds_, [&] { return other; });
    }
    /// `why` goes behind what the terms are made of.
    [[nodiscard]] TimeSum scaled(double factor, const std::string& why = "") const;

    /// Sums that run at the same time and take `seconds` together, no less than the longest. This one's terms stay, the
    /// others are hidden behind them. What is left is a term of its own. It comes from a norm with this exponent; where
    /// nothing can be left, that is 0. `behind` names the longest where it has several terms. Pre: there is a sum.
    static TimeSum overlapped(double seconds, double exponent, std::initializer_list<TimeSum> sums,
                              const char* behind = "several terms");

private:
    [[nodiscard]] bool is_in_waves() const;

    double seconds_ = 0;
    bool keeps_terms_ = false;
    std::vector<TimeTerm> terms_;
};

/// Cores that run at the same time, for texts.
struct CoresText {
    double cores = 1, waves = 1;
    double hz = 1;      ///< that a core sustains
    std::string names;  ///< "SMs"
    std::string at;     ///< "1.755 GHz"

    /// "31 K blocks on each of 132 SMs × 512 clocks at 1.755 GHz", where all of these take the seconds. `count`: on
    /// all cores together.
    [[nodiscard]] std::string of_waves(double seconds, double count, const std::string& what) const;
    /// The same for seconds that no wave quantization lengthens.
    [[nodiscard]] std::string each(double seconds, double count, const std::string& what) const;
    /// Clocks of these, by the same cores.
    [[nodiscard]] double clocks(double seconds, double count) const { return seconds * hz * cores / count; }
};

/// "1,024", "12.5".
std::string number_text(double number);
/// "16.8 MB at 4,020 GB/s", which take the seconds.
std::string transfer_text(double bytes, double seconds);

}  // namespace napkin
