#pragma once
// What the writers read: the scheduled kernel with a name for everything that its source mentions, and the texts of
// positions.
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emit/emit_code.hpp"
#include "emit/emit_numbers.hpp"
#include "emit/emit_text.hpp"
#include "lower/kernel_program.hpp"

namespace napkin::writers {

/// Position of an element in a buffer: Σ local·(index in the tile) + Σ begin·(start of the tile) + constant. Dimensions
/// whose indices are not affine add Σ stride·(index - first).
struct Address {
    struct Other {
        std::int64_t stride;
        Index index;
        std::string first;  ///< text of the value at which the dimension begins
    };
    std::map<AxisId, std::int64_t> local, begin;
    std::int64_t constant = 0;
    std::vector<Other> others;
};

struct AxisNames {
    std::string local, begin, count, block;
};

struct Frame : ScheduledKernel {
    Frame(const lower::KernelProgram& program, std::string_view prelude);

    const lower::KernelProgram& lowered;
    lower::KernelShapes shapes;
    Names names;
    ByAxis<AxisNames> axes;
    ByVariable<std::string> variables;  ///< buffers' names
    ByVariable<std::string> copies;     ///< of views: copies of the tiles that may not be read in place
    /// of views that are prefetched: the tile of a group to come
    std::map<VariableId, std::string> ahead;
    /// of views that a deferred statement reads or writes: the previous group's tile
    std::map<VariableId, std::string> before;
    std::string partials_name;                       ///< of what warps that share a reduction leave behind
    std::map<ArrayId, std::string> memory, strides;  ///< pointers to arrays and to their strides
    std::shared_ptr<LaunchNumbers> numbers;          ///< shared by all copies of the frame

    /// The same for a deferred statement, which runs for the previous group.
    [[nodiscard]] Frame of_group_before() const;
    [[nodiscard]] const lower::VariableShape& shape(VariableId id) const { return shapes.variables[id]; }
    [[nodiscard]] const lower::StepShape& shape(const Step& step) const { return shapes.steps[number(step)]; }
    [[nodiscard]] const lower::LoopShape& shape(const ScheduledLoop& loop) const {
        return shapes.loops[LoopId::of(&loop - loops.data())];
    }
    /// How the statement's operations are computed.
    [[nodiscard]] const lower::StatementMath& math(const Step& step) const {
        return lowered.math.statements.at(step.statement);
    }
    [[nodiscard]] const AxisNames& axis(AxisId id) const { return axes[id]; }
    [[nodiscard]] const std::string& name(VariableId id) const { return variables[id]; }
    /// Whether its array is one that the kernel writes.
    [[nodiscard]] bool is_output(VariableId id) const;
    [[nodiscard]] const Diagram& diagram() const { return program->diagram; }
    /// C++ type of the numbers in the variable's buffer.
    [[nodiscard]] const char* cell_type(VariableId id) const { return is_whole(id) ? "int64_t" : "real"; }
    [[nodiscard]] Address address(VariableId id, const std::vector<Index>& indices, ScopeId at_scope) const;
    /// Whether the extent of one of the axes is an argument of the launch.
    [[nodiscard]] bool vary_with(std::initializer_list<AxisId> of) const;
    /// A number that follows from sizes, as text. `what` tells it from the kernel's others.
    [[nodiscard]] std::string whole_text(const std::string& what, const Expr& formula) const;
    /// Whether the formula is this number at all sizes that the text takes.
    [[nodiscard]] bool is_number(const Expr& formula, double number) const;
    [[nodiscard]] std::string real_text(const std::string& what, const Expr& formula) const;
    [[nodiscard]] std::string extent_text(AxisId id) const;
    /// The form's constant: what is the same for all sizes, and the name of the number for the rest; "" without any.
    [[nodiscard]] std::pair<std::int64_t, std::string> constant_of(const Affine& form) const;
    /// The form for a reader.
    [[nodiscard]] std::string form_text(const Affine& form, const ExprNames& form_names) const;
    /// How much of a tile along the axis lies inside of it.
    [[nodiscard]] std::string count_text(AxisId id, std::int64_t tile) const;
    /// Number of values over which the axis runs, as text.
    [[nodiscard]] std::string count(AxisId id, ScopeId at_scope) const;
};

}  // namespace napkin::writers
