#pragma once
// The writers of statements on a matrix unit, for a GPU: products, maps and reductions over the fragments that each thread has in registers,
// copies of operands into shared memory (schedule/fragments.hpp has the layout).
#include <set>
#include <string>

#include "emit/emit_frame.hpp"

namespace napkin::writers {

/// Numbers of a variable in registers, for a thread.
std::string fragment_declaration(const Frame& frame, VariableId id);
/// A map or a reduction along the columns.
void write_fragment(const Frame& frame, Lines& out, const Step& step);
/// Before a product along these columns: what its target holds, corrected by the statement's carry where it is another.
void write_correction(const Frame& frame, Lines& out, const Step& step, AxisId columns);
/// The matrix instruction; `functions` gets those that the text calls and the prelude has not, each once.
void write_product(const Frame& frame, Lines& out, const Step& step, std::set<std::string>& functions);
void write_init_of_fragments(const Frame& frame, Lines& out, const Init& init);
void write_store_of_fragments(const Frame& frame, Lines& out, VariableId variable, int scope);

/// One thread asks for the bulk copy of an operand's tile into the stage, or all threads for their parts of it; `stage` is a text. Threads
/// ask for nothing where `condition` is not met, which still counts as one of their copies; "" is met.
void write_fill(const Frame& frame, Lines& out, VariableId variable, int scope, const std::string& stage,
                const std::string& condition = "");
/// All wait until the stage that the load fills is full for the turn of this number.
void write_wait(const Frame& frame, Lines& out, const Step& load, const std::string& turn);
/// Where the operand's stage of the turn begins, in bytes from its first one: declared by write_wait.
std::string stage_name(const Frame& frame, VariableId variable);
/// The text of an operand's stage in the turn of a loop, or of the groups.
std::string stage_of_turn(const Frame& frame, VariableId variable, const std::string& turn);

/// Operands in the order of their tensor maps and barriers.
std::vector<VariableId> operands_of(const ScheduledKernel& kernel);

}  // namespace napkin::writers
