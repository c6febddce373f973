#pragma once
// The writers of statements on a matrix unit, for a GPU: products, maps and reductions over the fragments that each
// thread has in registers, copies of operands into shared memory (schedule/fragments.hpp has the layout).
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "emit/emit_frame.hpp"
#include "schedule/stream_k.hpp"

namespace napkin::writers {

/// As a group begins, its tiles of what is_fetched_with_group says are asked for, by all threads that compute.
void write_fetches(const Frame& frame, Lines& out);

/// The number of the thread's warp, of which the compiler knows that it is the same for all of the warp: what is made
/// of it stays out of the threads' own registers.
inline constexpr const char* warp_name = "warp_";
/// The block's number in its cluster, whose blocks lie beside each other in the grid.
inline constexpr const char* cluster_rank_name = "cluster_rank_";
/// Text of the number of the warp's group of four, which run products together.
std::string warpgroup_text();
/// Numbers of a variable in registers, for a thread.
std::string fragment_declaration(const Frame& frame, VariableId id);
/// A map or a reduction along the columns. Where it is written twice, for tiles with and without masks, `then` writes
/// what follows behind each of them, so that both run beside each other.
void write_fragment(const Frame& frame, Lines& out, const Step& step, const std::function<void()>& then = {});
/// Every thread's sum over its columns of what the statement reduces, one for each of its rows.
void write_sum_of_thread(const Frame& frame, Lines& out, const Step& step, const std::string& target);
/// After a loop: what threads kept for themselves of its sums becomes that of the rows (is_kept_by_threads).
void write_sums_of_rows(const Frame& frame, Lines& out, ScopeId scope);
/// Before a product along these columns: what its target holds, corrected by the statement's carry where it is another.
void write_correction(const Frame& frame, Lines& out, const Step& step, AxisId columns);
/// The matrix instruction; `functions` gets those that the text calls and the prelude has not, each once.
void write_product(const Frame& frame, Lines& out, const Step& step, std::set<std::string>& functions);
/// The same by the instruction that every warp runs by itself, for what runs seldom: where the name of threads of the
/// warp (those_of_warp) says that there are some. Pre: product_by_warp has one.
void write_product_again(const Frame& frame, Lines& out, const Step& step, const std::string& those);
/// Declarations of a lazy maximum's own, and what they are as a group begins.
void declare_rescale(const Frame& frame, Lines& out);
void write_init_of_rescale(const Frame& frame, Lines& out);
/// The weights that refer to it, and their sum: as the maximum stands, or, where that is no longer enough and in the
/// first turn, after it has moved. Every warp decides for itself: none waits for another.
void write_rescaled_weights(const Frame& frame, Lines& out, bool is_first_iteration);
/// The name of what says whether it has moved.
std::string moves_name(const Frame& frame);
/// What is_rounded_ahead: its registers, and what gives them their values as a turn ends.
void declare_rounded(const Frame& frame, Lines& out);
void write_rounded(const Frame& frame, Lines& out, ScopeId scope, int ahead);
/// What is_read_by_rows: its registers, what is read into them as a turn begins, and before a loop's first one at
/// `begin` where every turn reads the next one's.
void declare_rows(const Frame& frame, Lines& out, const Step& step);
void write_load_of_rows(const Frame& frame, Lines& out, const Step& step);
void write_first_rows(const Frame& frame, Lines& out, const Step& step, const std::string& begin);
void write_init_of_fragments(const Frame& frame, Lines& out, const Init& init);
void write_store_of_fragments(const Frame& frame, Lines& out, VariableId variable, ScopeId scope);
/// The same by boxes: every warp writes to them, and one of its threads asks for the bulk copies that bring them to
/// memory.
void write_store_by_staging(const Frame& frame, Lines& out, const Step& store);
/// Where groups are cut: behind the stream, warps of two blocks put their parts' states together, and `goes_on_name`
/// says to a warp whether it has them.
void write_parts_of_group(const Frame& frame, Lines& out, const StreamK& cut);
inline constexpr const char *share_name = "share_", *goes_on_name = "goes_on_";
/// The type that deals out groups, of the prelude.
std::string shares_type(const Frame& frame, const StreamK& cut);
/// A state of both parts, of what each of them gives: `texts` has what is read, and `before` stands before every value
/// is computed.
void write_state_of_parts(const Frame& frame, Lines& out, const StateMerge& merge, const std::array<Expr, 2>& given,
                          const std::map<VariableId, std::string>& texts, const std::string& before);
/// Text of the number of a thread's value, in loops over its rows r_ and columns (j_, c_).
std::string number_in_thread(const Frame& frame, VariableId id);

/// Variables that bulk copies store. Their tensor maps come behind those of the operands.
std::vector<VariableId> staged_out(const ScheduledKernel& kernel);

/// Texts of the stage in which operands of a scope are loaded in a turn, "0" of one, and of how often the stages came
/// round, modulo 2. The turn is that of the scope's counters, over all groups, or so many ahead of it: -1, 0 or 1.
struct IterationNames {
    std::string stage, phase;
};
IterationNames iteration_names(const Frame& frame, ScopeId scope, int ahead = 0);
/// The scope's operands; all of them have as many stages.
std::vector<VariableId> operands_of(const ScheduledKernel& kernel, ScopeId scope);
void declare_iteration(const Frame& frame, Lines& out, ScopeId scope);
/// The next turn.
void next_iteration(const Frame& frame, Lines& out, ScopeId scope);

/// One thread asks for the bulk copy of an operand's tile into the stage, or all threads for their parts of it; `stage`
/// is a text. Threads ask for nothing where `condition` is not met, which still counts as one of their copies; "" is
/// met.
void write_copy(const Frame& frame, Lines& out, VariableId variable, ScopeId scope, const std::string& stage,
                const std::string& condition = "");
/// Where the stage of the turn begins, in bytes from the operand's first one.
void declare_stage(const Frame& frame, Lines& out, VariableId operand, int ahead);
/// All wait until the stage that the load fills is full for the turn that is so many ahead.
void write_wait(const Frame& frame, Lines& out, const Step& load, int ahead);
/// The role that asks for copies: once the turn's stage is free where that is not known, the copy.
void write_producer_copy(const Frame& frame, Lines& out, const Step& load);
/// The wait for products, and a warp that computes says that it is done with operands' tiles. `shift` turns behind the
/// loop's counters. They are free where `condition`, which ends with &&, says so, too.
void write_wait_group(const Frame& frame, Lines& out, const WaitGroup& settle, int shift,
                      const std::string& condition = "");
/// Says that there is a tile to free, where an operand is freed a turn later.
std::string deferred_release_name(const Frame& frame, VariableId operand);
/// Barriers of all operands, and what else of shared memory is there before any of the block's threads goes on.
void write_barriers(const Frame& frame, Lines& out);
/// The name that declare_stage gives.
std::string stage_name(const Frame& frame, VariableId variable);

/// Operands in the order of their tensor maps and barriers.
std::vector<VariableId> operands_of(const ScheduledKernel& kernel);

}  // namespace napkin::writers
