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
/// The matrix instruction; `functions` gets those that the text calls, each once.
void write_product(const Frame& frame, Lines& out, const Step& step, std::set<std::string>& functions);
void write_init_of_fragments(const Frame& frame, Lines& out, const Init& init);
void write_store_of_fragments(const Frame& frame, Lines& out, VariableId variable, int scope);

/// One thread asks for the copy of an operand's tile into the stage; `stage` is a text.
void write_fill(const Frame& frame, Lines& out, VariableId variable, int scope, const std::string& stage);
/// Where the operand's stage of this turn begins.
void write_stage(const Frame& frame, Lines& out, VariableId variable, const std::string& turn);
/// All wait until the stage is full for the turn of this number.
void write_wait(const Frame& frame, Lines& out, VariableId variable, const std::string& turn);
/// The text of an operand's stage in the turn of a loop, or of the groups.
std::string stage_of_turn(const Frame& frame, VariableId variable, const std::string& turn);

/// Operands in the order of their tensor maps and barriers.
std::vector<VariableId> operands_of(const ScheduledKernel& kernel);

}  // namespace napkin::writers
