#pragma once
// The figures of machines that stand under keys of their own: one table of each kind, which readers, writers and
// reports go through.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.hpp"
#include "machine/quantity.hpp"

namespace napkin {

/// Whose file must give a figure. What may be left out is derived from the others (complete_figures), or stays unknown.
enum class Need { always, of_cpus, never };

template <class Owner>
struct FigureKey {
    const char* key;        ///< in a machine file: "fma_latency"
    const char* with_unit;  ///< in reports for programs: "fma_latency_clocks"
    Figure Owner::* figure;
    Dimension dimension = Dimension::number;
    Need need = Need::always;
    double least = 0, most = 0;  ///< whole numbers between them, where `most` is not 0
    bool may_be_zero = false;
};

std::span<const FigureKey<Machine>> machine_figures();
/// Without the bandwidth from the level above, which a file gives of one instance or of all, and without the shares of
/// runs, a table.
std::span<const FigureKey<Level>> level_figures();
std::span<const FigureKey<ThreadLimits>> thread_figures();

/// What the source of a figure in a machine's file begins with says what the figure rests on: "measured …", "estimated:
/// …".
Origin origin_of(std::string_view source);
Figure estimated(double value, const std::string& formula);
/// How much longer two equally busy pipes take beside each other than one of them, where it has not been measured.
Figure estimated_beside();

/// The middle one of measurements of one machine, figure by figure, with its source. Pre: an odd number of them, with
/// the same levels, units, types and runs; the rest is the first one's.
Machine middle_of(const std::vector<Machine>& measurements);

/// Fills in what a machine's file may leave out, each figure with the formula as its source.
void complete_figures(Machine& machine);

}  // namespace napkin
