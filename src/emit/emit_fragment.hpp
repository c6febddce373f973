#pragma once
// The writers of statements on a GPU's tensor cores: products, maps and reductions over the fragments that each thread
// has in registers. They also write copies of operands into shared memory (schedule/fragments.hpp has the layout).
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "emit/emit_body.hpp"
#include "emit/emit_frame.hpp"

namespace napkin::writers {

/// As a tile begins, all threads that compute ask for its rows of what StepShape::fetched names.
void write_fetches(const Frame& frame, Lines& out);

/// The number of the thread's warp. The compiler knows that it is the same for all of the warp, so that what is made of
/// it stays out of the threads' own registers.
inline constexpr const char* warp_name = "warp_";
/// The block's number in its cluster, whose blocks lie beside each other in the grid.
inline constexpr const char* cluster_rank_name = "cluster_rank_";
/// Condition that the end of the axis does not cut its tile.
std::string is_whole_tile(const Frame& frame, AxisId axis, ScopeId scope);
/// Text of the number of the thread's warpgroup, whose four warps run products together.
std::string warpgroup_text(const Frame& frame);
/// What CUDA calls a type of registers (register_type).
const char* register_text(DType type);
/// Declaration of a thread's registers for a variable.
std::string fragment_declaration(const Frame& frame, VariableId id);
/// Writes what follows a statement, in tiles whose columns the axis' end does not cut, or in any.
using AfterFragment = std::function<void(bool has_whole_columns)>;
/// A map or a reduction along the columns. Where it is written twice, for tiles from which nothing is excluded and for
/// others, `then` writes what follows behind each of them, so that both run beside each other.
void write_fragment(const Frame& frame, Lines& out, const Step& step, const AfterFragment& then = {});
/// A map whose values all threads write to a tile of an operand (MemorySpace::written).
void write_tile(const Frame& frame, Lines& out, const Step& step);
/// Neighbours of an operand's row that a thread reads at once into registers of this name: from a column on, for the
/// values that this number counts.
struct OperandPart {
    VariableId operand;
    std::int64_t values;
    std::string name, column, number;
};
std::string part_declaration(const Frame& frame, const Step& step, const OperandPart& part);
std::string part_load(const Frame& frame, const Step& step, const OperandPart& part);
/// Tells the body that the operand's value stands in those registers, or that a thread reads it by itself.
void give_part(const Frame& frame, const Step& step, BodyWriter& body, const OperandPart& part);
void give_operand_value(const Frame& frame, const Step& step, BodyWriter& body, VariableId operand);
/// An element of an array, read in place at the thread's own coordinates.
BodyWriter::Element element_in_memory(const Frame& frame, const Read& r, ScopeId scope);
/// Every thread's sum over its columns of what the statement reduces, one for each of its rows.
void write_sum_of_thread(const Frame& frame, Lines& out, const Step& step, const std::string& target,
                         bool has_whole_columns);
/// After a loop: each thread's own part of its sums becomes the sum of the row (is_kept_by_threads).
void write_sums_of_rows(const Frame& frame, Lines& out, ScopeId scope);
/// Before a product along these columns: what its target holds, corrected by the statement's carry where that is not
/// the target itself.
void write_correction(const Frame& frame, Lines& out, const Step& step, AxisId columns);
/// The product by mma or wgmma. The set `functions` gets the functions of instructions that the text calls and the
/// prelude lacks, each once.
void write_product(const Frame& frame, Lines& out, const Step& step, std::set<std::string>& functions);
/// The product by the instruction that every warp runs by itself, for code that runs seldom. The threads named by
/// `those` (those_of_warp) are the ones for which it runs. Pre: there is one (StepShape::by_warp).
void write_product_again(const Frame& frame, Lines& out, const Step& step, const std::string& those,
                         std::set<std::string>& functions);
/// Declarations of conditional rescaling, and their values as a tile begins.
void declare_rescale(const Frame& frame, Lines& out);
void write_init_of_rescale(const Frame& frame, Lines& out);
/// The weights that refer to the maximum, and their sum. They are computed as the maximum stands. Where that is no
/// longer enough, and in the first iteration, they are computed after it has moved. Every warp decides for itself: none
/// waits for another.
void write_rescaled_weights(const Frame& frame, Lines& out, bool is_first_iteration, std::set<std::string>& functions);
/// Name of the flag that says whether the maximum has moved.
std::string moves_name(const Frame& frame);
/// Registers of what is rounded ahead (VariableShape), and the code that fills them as an iteration ends.
void declare_rounded(const Frame& frame, Lines& out);
void write_rounded(const Frame& frame, Lines& out, ScopeId scope, int ahead);
/// What is read by rows (VariableShape): its registers, and the reads into them as an iteration begins. Where every
/// iteration reads those of later ones, those of a loop's first iterations are read before it, from `begin` on.
void declare_rows(const Frame& frame, Lines& out, const Step& step);
void write_load_of_rows(const Frame& frame, Lines& out, const Step& step);
void write_first_rows(const Frame& frame, Lines& out, const Step& step, const std::string& begin);
void write_init_of_fragments(const Frame& frame, Lines& out, const Init& init);
void write_store_of_fragments(const Frame& frame, Lines& out, VariableId variable, ScopeId scope);
/// The store by staging tiles, in three parts. The first says where a warp's staging tiles lie and opens the loop over
/// them. The second is a warp's write to one. The third is the bulk copy to memory that one of its threads issues.
void write_staging_header(const Frame& frame, Lines& out, const Step& store);
void write_to_staging(const Frame& frame, Lines& out, const Step& store);
void write_from_staging(const Frame& frame, Lines& out, const Step& store);
/// Stream-K, behind the stream of a split tile. The warp claims the tile. The flag `goes_on_name` says whether it is
/// the second one to do so. The first one leaves its states. The second one merges these with its own.
void write_claim(const Frame& frame, Lines& out);
void write_states_left(const Frame& frame, Lines& out);
void write_merged_states(const Frame& frame, Lines& out);
inline constexpr const char *share_name = "work_", *goes_on_name = "goes_on_";
/// The type of the prelude that assigns shares of tiles to blocks.
std::string shares_type(const Frame& frame);
/// A state of both parts, made of what each of them gives. What is read has its text in `texts`. The line `before`
/// stands before every value is computed.
void write_state_of_parts(const Frame& frame, Lines& out, const StateMerge& merge, const std::array<Expr, 2>& given,
                          const lower::MathChoices& math, const std::map<VariableId, std::string>& texts,
                          const std::string& before);
/// The loops of a thread over its rows r_ and over its columns (j_, c_) of so many, as text, and its rows' reduction.
std::string each_row(const Frame& frame);
std::string each_column(const Frame& frame, std::int64_t columns);
std::string over_row(const Frame& frame, std::string_view reduction, const std::string& value);
/// Text of the number of a thread's value in these loops.
std::string number_in_thread(const Frame& frame, VariableId id);
/// Declares fragment_row(r) and fragment_column(j, c), a thread's rows and columns, as the layout of results has them.
void write_coordinates(const Frame& frame, Lines& out);

/// Variables that bulk copies store. Their tensor maps come behind those of the operands.
std::vector<VariableId> staged_out(const ScheduledKernel& kernel);

/// Texts of the stage into which operands of a scope are loaded in an iteration ("0" of one stage), and of the phase.
/// That is how often the stages came round, modulo 2. The iteration is that of the scope's counters, over all tiles,
/// shifted by `ahead`: -1, 0 or 1.
struct IterationNames {
    std::string stage, phase;
};
IterationNames iteration_names(const Frame& frame, ScopeId scope, int ahead = 0);
/// The scope's operands; all of them have as many stages.
std::vector<VariableId> operands_of(const ScheduledKernel& kernel, ScopeId scope);
void declare_iteration(const Frame& frame, Lines& out, ScopeId scope);
/// Advances the counters to the next iteration.
void next_iteration(const Frame& frame, Lines& out, ScopeId scope);

/// One thread issues the bulk copy of an operand's tile into the stage, or all threads copy their parts of it. The
/// stage is a text. Threads copy nothing where `condition` is not met, but it still counts as one of their copies. An
/// empty condition is always met.
void write_copy(const Frame& frame, Lines& out, VariableId variable, ScopeId scope, const std::string& stage,
                const std::string& condition = "");
/// Declares where the iteration's stage begins, in bytes from the operand's first one.
void declare_stage(const Frame& frame, Lines& out, VariableId operand, int ahead);
/// Text of the barrier that says that the operand's stage is full, or that it is free.
std::string operand_barrier(const Frame& frame, VariableId operand, bool is_empty, const std::string& stage);
/// Name of the flag for a deferred release, where an operand is released an iteration later.
std::string deferred_release_name(const Frame& frame, VariableId operand);
/// Makes the barriers of all operands and of the tile queue.
void write_barriers(const Frame& frame, Lines& out);
/// The name that declare_stage gives.
std::string stage_name(const Frame& frame, VariableId variable);

/// Operands in the order of their tensor maps and barriers.
std::vector<VariableId> operands_of(const ScheduledKernel& kernel);

}  // namespace napkin::writers
