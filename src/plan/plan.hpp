#pragma once
// The plan: the schedule of every kernel of a derived diagram on one machine, with what the model says of it.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "derive/tiled_reduction.hpp"
#include "schedule/scheduled.hpp"
#include "schedule/simulate.hpp"

namespace napkin {

struct KernelPlan {
    ScheduledKernel scheduled;
    std::size_t whole = 0;     ///< the kernel of the derived diagram that it is, or that it is a part or the merge of
    Simulation time = {};      ///< with H
    double memory_values = 0;  ///< M, values a core
    /// It is no plan: none takes less than its time, which is more than PlanOptions::useless, and that is all there is.
    bool is_bound = false;
    [[nodiscard]] const KernelSchedule& schedule() const { return scheduled.schedule; }
};

/// Factors of products that no instruction multiplies as they lie (plan/copied.hpp).
enum class FactorForm : std::uint8_t {
    as_they_are,
    copied,     ///< by kernels before the first one that reads them
    converted,  ///< by each kernel that multiplies them
    padded,     ///< with zeros around them by the copies that bring them
};

/// How the planned form was made from the derived one.
struct FormChange {
    std::vector<TiledReduction> tiled;  ///< plan/tiled.hpp
    FactorForm factors = FactorForm::as_they_are;
    std::vector<std::int64_t> parts;  ///< then: of every kernel's stream (plan/parts.hpp)
    friend bool operator==(const FormChange&, const FormChange&) = default;
};

struct Plan {
    std::string machine;
    FormChange change;
    /// in order: one for each kernel of the derived diagram, several where its stream is cut into parts
    std::vector<KernelPlan> kernels;
    [[nodiscard]] ScheduledProgram program() const;
    [[nodiscard]] SizedProgram tiles() const;  ///< the tile program with the schedules' sizes
    [[nodiscard]] double seconds() const;      ///< of all kernels, one after the other
    [[nodiscard]] int threads() const;         ///< the most that a kernel takes
    [[nodiscard]] bool is_bound() const;       ///< some kernel is (KernelPlan::is_bound)
};

/// One aligned line for each choice, with its reason, and the figures of the model.
std::string to_string(const Plan& plan);

}  // namespace napkin
