#pragma once
// What a tile program's variables and computations must be, each looked at by itself (verify.hpp).
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "tile/sizes.hpp"

namespace napkin {

/// A kernel, and where messages about it go.
class KernelReport {
public:
    KernelReport(const SizedProgram& program, std::size_t k, std::vector<std::string>& messages)
        : program_(program), diagram_(program.diagram), kernel_(program.kernels[k]), messages_(messages) {}

    template <class... Args>
    void report(fmt::format_string<Args...> format, Args&&... args) const {
        messages_.push_back(fmt::format("kernel {}: ", kernel_.name) + fmt::format(format, std::forward<Args>(args)...));
    }

    [[nodiscard]] bool is_axis(AxisId a) const { return a >= 0 && static_cast<std::size_t>(a) < diagram_.axes.size(); }
    [[nodiscard]] std::int64_t extent(AxisId a) const { return program_.extents[a]; }
    [[nodiscard]] const std::string& axis_name(AxisId a) const { return diagram_.axis(a).name; }
    [[nodiscard]] const Variable& variable(VariableId v) const { return kernel_.variables[v]; }
    [[nodiscard]] const Diagram& diagram() const { return diagram_; }
    [[nodiscard]] const TileKernel& kernel() const { return kernel_; }
    [[nodiscard]] std::size_t num_messages() const { return messages_.size(); }

protected:
    const SizedProgram& program_;
    const Diagram& diagram_;
    const TileKernel& kernel_;
    std::vector<std::string>& messages_;
};

/// False: what reads variables cannot be checked.
bool check_variables(const KernelReport& in);
/// A variable that is computed or initialised has the axes of its array.
void check_dims(const KernelReport& in, VariableId id);
/// Expressions mention the axes of their target, and a body those that are reduced.
void check_axes(const KernelReport& in, const Compute& compute);

}  // namespace napkin
