#include "cost/bounds.hpp"

#include <fmt/format.h>

#include <cmath>

#include "cost/compulsory.hpp"
#include "diagram/symbol_names.hpp"
#include "machine/peaks.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

class Bounder {
public:
    Bounder(const Derived& derived, const Kernel& kernel, const Extents& extents, const Machine& machine,
            const KernelOnMachine& on_machine)
        : derived_(derived), kernel_(kernel), extents_(extents), machine_(machine), on_machine_(on_machine) {
        grouped_ = default_grouped(kernel);
        work_ = unit_work(derived, kernel, grouped_, machine);
    }

    [[nodiscard]] double extent(AxisId axis) const { return static_cast<double>(extents_[axis]); }

    /// The value of a size in axes' letters, stream sizes being those of the machine's kernel and group sizes 1.
    [[nodiscard]] std::optional<double> value(const Size& size, double memory = 0) const {
        return size.evaluate([&](Symbol symbol) -> std::optional<double> {
            const auto axis = symbol.axis();
            switch (symbol.kind) {
                case SymbolKind::memory: return memory;
                case SymbolKind::axis: return extent(axis);
                case SymbolKind::stream:
                    return on_machine_.stream.contains(axis) ? static_cast<double>(on_machine_.stream.at(axis)) : 1;
                case SymbolKind::group: return 1;
                default: return std::nullopt;
            }
        });
    }

    /// B.0.1, where all that the loop loads has the same of the grouped axes: those it does not have are the rows that
    /// share a load.
    void group_bounds(std::vector<GroupBound>& out) const {
        double clocks = 0;
        for (const UnitWork& w : work_)
            if (w.contraction && w.in_loop)
                clocks += value(w.of_a_row).value_or(0) * w.flops_each() / (2 * w.rate.per_clock);
        if (!(clocks > 0)) return;
        std::vector<AxisId> rows = grouped_;
        double bytes_a_chunk = 0;
        bool first = true, alike = true;
        const Liveness live = liveness(derived_, kernel_, &extents_);
        for (const CoreVariable& v : live.variables) {
            if (!v.loaded || v.loop < 0) continue;
            const AxisId stream = live.loops[at(v.loop)].axis;
            const std::vector<AxisId> axes = axes_of(v.dims);
            std::vector<AxisId> shared;
            double tile = bytes(derived_.diagram.array(v.array).type);
            for (const AxisId a : grouped_)
                // Groups of different parts load different chunks.
                if (!contains(axes, a) && a != kernel_.parts.part) shared.push_back(a);
            for (const AxisId a : axes)
                if (!contains(grouped_, a))
                    tile *= a == stream ? static_cast<double>(on_machine_.stream.at(a)) : extent(a);
            alike = alike && (first || shared == rows);
            rows = shared;
            first = false;
            bytes_a_chunk += tile;
        }
        if (first || !alike || rows.empty()) return;
        for (std::size_t l = 1; l <= core_memory_level(machine_); ++l) {
            GroupBound bound{rows, machine_.levels[l].name, bytes_a_chunk, clocks, 0, {}};
            const double rate = total_bandwidth(machine_.levels[l]), f = machine_.clock_hz.value, n = machine_.cores.value;
            bound.at_least = bytes_a_chunk * n * f / (rate * clocks);
            bound.formula = {"g",
                             "bytes·N·f / (B·k)",
                             fmt::format("{:.0f} B · {} · {:.4g} GHz / ({:.4g} GB/s · {:.4g} clk)", bytes_a_chunk, n,
                                         f / 1e9, rate / 1e9, clocks),
                             bound.at_least,
                             "",
                             "B.0.1"};
            out.push_back(std::move(bound));
        }
    }

    /// B.1, term by term.
    void term_bounds(const Optimum& best, const TiedLetters& tied, std::vector<TermBound>& out) const {
        Size k = flops(work_, true);
        double seconds_per_flop = 0, total = 0;
        const bool contracts = !k.is_zero();
        if (!contracts) k = flops(work_, false);
        k = leading_terms(with_tied(k, tied));
        if (!best.closed || k.terms().size() != 1) return;
        double widest = 1;
        for (const ArrayId input : kernel_.inputs)
            widest = std::max<double>(widest, bytes(derived_.diagram.array(input).type));
        for (const UnitWork& w : work_) {
            if (contracts && !w.contraction) continue;
            const double count = value(w.total).value_or(0) * w.flops_each();
            total += count;
            seconds_per_flop += count / (w.rate.per_clock * w.flops_each() * machine_.cores.value * machine_.clock_hz.value);
        }
        if (!(total > 0)) return;
        const double peak = total / seconds_per_flop;
        for (std::size_t l = 1; l <= core_memory_level(machine_); ++l) {
            const double rate = total_bandwidth(machine_.levels[l]) / widest;
            const std::string figures = fmt::format("{:.4g} FLOP/s / {:.4g} values/s", peak, rate);
            for (const auto& [monomial, coefficient] : best.transfers.terms()) {
                const Size term = Size::term(monomial, coefficient) / k;
                add_term(term, machine_.levels[l].name, peak / rate, figures, out);
            }
        }
    }

private:
    void add_term(const Size& term, const std::string& level, double ratio, const std::string& figures,
                  std::vector<TermBound>& out) const {
        const auto& [monomial, coefficient] = *term.terms().begin();
        if (!(coefficient > Rational(0))) return;
        const auto m = monomial.find(memory_symbol);
        if (m != monomial.end()) {
            const double beta = -m->second.to_double();
            const auto at_one = value(term, 1);
            if (!at_one || !(beta > 0)) return;
            const double least = std::pow(*at_one * ratio, 1 / beta);
            out.push_back(
                {level,
                 term,
                 memory_symbol,
                 least,
                 {"M_" + level, fmt::format("{} ≤ Ḣ/K̇", to_string(term, names_)), figures, least, "values", "B.1"}});
            return;
        }
        // A single axis to a negative power: its least length.
        if (monomial.size() != 1 || !(monomial.begin()->second < Rational(0))) return;
        const double least = std::pow(coefficient.to_double() * ratio, -1 / monomial.begin()->second.to_double());
        out.push_back({level,
                       term,
                       monomial.begin()->first,
                       least,
                       {names_(monomial.begin()->first), fmt::format("{} ≤ Ḣ/K̇", to_string(term, names_)), figures,
                        least, "", "B.1"}});
    }

    const Derived& derived_;
    SymbolNames names_ = symbol_names(derived_.diagram);
    const Kernel& kernel_;
    const Extents& extents_;
    const Machine& machine_;
    const KernelOnMachine& on_machine_;
    std::vector<AxisId> grouped_;
    std::vector<UnitWork> work_;
};

class IoBounder {
public:
    IoBounder(const Derived& derived, const Kernel& kernel, const Extents& extents)
        : derived_(derived), kernel_(kernel), extents_(extents) {}

    [[nodiscard]] std::vector<IoBound> run(double memory, bool skips) const {
        std::vector<IoBound> out;
        double read = 0, written = 0;
        const std::vector<StatementWork> statements = statement_work(derived_, kernel_);
        for (const ArrayId a : kernel_.inputs) read += values_read(derived_.diagram, statements, a, extents_);
        for (const ArrayId a : kernel_.outputs)
            written += static_cast<double>(count_values(derived_.diagram, a, extents_));
        if (skips) {
            // What skipped iterations alone read is not loaded, and how many points the others are in is a matter of
            // the chunks.
            out.push_back({"every output once: iterations are skipped, and what they read is not loaded",
                           "compulsory transfers", written});
            return out;
        }
        out.push_back({"every input and output once", "compulsory transfers", read + written});
        const std::string called = names_(memory_symbol);
        for (const StatementWork& s : statements) {
            if (!s.contraction) continue;
            const Contraction& c = *s.contraction;
            const double batch = product(c.batch), m = product(c.m), n = product(c.n), k = product(c.k);
            const std::string name = derived_.diagram.array(s.target).name;
            if (!operands_in_memory(s)) continue;
            if (const std::vector<AxisId> window = window_axes(s); !window.empty()) {
                out.push_back({fmt::format("{}: Ω({}·({}·{})^(-1/2))", name, letters(c), axes(window), called),
                               "neighbouring results share what they read (Demmel and Dinh 2018, for convolutions)",
                               batch * m * n * k / std::sqrt(product(window) * memory)});
            } else if (!stays_at_core(s)) {
                out.push_back({fmt::format("{}: 2·{}·{}^(-1/2)", name, letters(c), called),
                               "a contraction of matrices in memory (Hong and Kung 1981; constant: Smith et al. 2019)",
                               2 * batch * m * n * k / std::sqrt(memory)});
            } else if (memory >= k * k) {
                out.push_back(
                    {fmt::format("{0}: Ω({1}·({2})²/{3}), {3} ≥ ({2})²", name, letters(c, false), axes(c.k), called),
                     "a contraction whose result stays at the core (Saha and Ye 2024)", batch * m * n * k * k / memory});
            } else {
                out.push_back({fmt::format("{0}: Ω({1}·{3}^(-1/2)), {3} < ({2})²", name, letters(c), axes(c.k), called),
                               "a contraction whose result stays at the core (Saha and Ye 2024)",
                               batch * m * n * k / std::sqrt(memory)});
            }
        }
        stable_sort(out, [](const IoBound& a, const IoBound& b) { return a.values > b.values; });
        return out;
    }

private:
    [[nodiscard]] double extent(AxisId axis) const { return static_cast<double>(extents_[axis]); }
    [[nodiscard]] double product(const std::vector<AxisId>& axes) const {
        return napkin::product<double>(axes, [&](AxisId a) { return extent(a); });
    }
    [[nodiscard]] std::string axes(const std::vector<AxisId>& ids) const {
        std::string text = join(names_of(derived_.diagram.axes, ids), "·");
        return text;
    }
    [[nodiscard]] std::string letters(const Contraction& c, bool with_k = true) const {
        std::string text;
        for (const auto* part : {&c.batch, &c.m, &c.n, &c.k})
            if (!part->empty() && (with_k || part != &c.k)) text += (text.empty() ? "" : "·") + axes(*part);
        return text;
    }
    [[nodiscard]] bool operands_in_memory(const StatementWork& s) const {
        return all_of(s.operands, [&](const OperandRead& o) {
            return contains(kernel_.inputs, o.array) || !contains(o.axes, s.stream);
        });
    }
    /// The summed axes that an index adds to others: along them, what one result reads the next one reads too.
    static std::vector<AxisId> window_axes(const StatementWork& s) {
        std::vector<AxisId> window;
        for (const OperandRead& operand : s.operands)
            for (const Index& index : operand.dims)
                for (const AxisId axis : index.axes())
                    if (index.axes().size() > 1 && contains(s.reduce_axes, axis) && !contains(window, axis))
                        window.push_back(axis);
        return window;
    }
    /// Nothing stores it, nor as many values as it has: what is made of it leaves the core smaller.
    [[nodiscard]] bool stays_at_core(const StatementWork& s) const {
        return none_of(kernel_.outputs, [&](ArrayId output) {
            const auto& axes = derived_.diagram.array(output).axes;
            return all_of(s.target_axes, [&](AxisId axis) { return contains(axes, axis); });
        });
    }

    const Derived& derived_;
    SymbolNames names_ = symbol_names(derived_.diagram);
    const Kernel& kernel_;
    const Extents& extents_;
};

}  // namespace

std::vector<IoBound> io_bounds(const Derived& derived, const Kernel& kernel, const Extents& extents,
                               double memory_values, bool skips) {
    return IoBounder(derived, kernel, extents).run(memory_values, skips);
}

Bounds bounds(const Derived& derived, const Kernel& kernel, const Optimum& best, const TiedLetters& tied,
              const Extents& extents, const Machine& machine, const KernelOnMachine& on_machine, std::vector<IoBound> io) {
    const Bounder bounder(derived, kernel, extents, machine, on_machine);
    Bounds out;

    bounder.group_bounds(out.groups);
    bounder.term_bounds(best, tied, out.terms);
    out.io = std::move(io);
    return out;
}

}  // namespace napkin
