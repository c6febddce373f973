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

/// Counters of the turns in which operands of a scope are loaded, over all groups: the stage of the turn, "0" of one, and how often the stages
/// came round, modulo 2.
struct TurnNames {
    std::string stage, phase;
};
TurnNames turn_names(const Frame& frame, int scope);
/// The scope's operands; all of them have as many stages.
std::vector<VariableId> operands_of(const ScheduledKernel& kernel, int scope);
void declare_turn(const Frame& frame, Lines& out, int scope);
/// The next turn.
void count_turn(const Frame& frame, Lines& out, int scope);

/// One thread asks for the bulk copy of an operand's tile into the stage, or all threads for their parts of it; `stage` is a text. Threads
/// ask for nothing where `condition` is not met, which still counts as one of their copies; "" is met.
void write_fill(const Frame& frame, Lines& out, VariableId variable, int scope, const std::string& stage,
                const std::string& condition = "");
/// All wait until the stage that the load fills is full for this turn.
void write_wait(const Frame& frame, Lines& out, const Step& load);
/// The role that asks for copies: once the turn's stage is free where that is not known, the copy.
void write_refill(const Frame& frame, Lines& out, const Step& load);
/// A warp that computes says that it is done with the operands' tiles of this turn.
void write_frees(const Frame& frame, Lines& out, const std::vector<VariableId>& operands);
/// Barriers of all operands.
void write_barriers(const Frame& frame, Lines& out);
/// Where the operand's stage of the turn begins, in bytes from its first one: declared by write_wait.
std::string stage_name(const Frame& frame, VariableId variable);

/// Operands in the order of their tensor maps and barriers.
std::vector<VariableId> operands_of(const ScheduledKernel& kernel);

}  // namespace napkin::writers
