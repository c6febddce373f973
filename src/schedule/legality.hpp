#pragma once
// What may be done with a statement, a tile or a set of fused statements. The plan asks before it chooses, and the
// rules check it after (rules.hpp).
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// Bytes that one TLB entry covers, and within which prefetchers follow streams (Intel 64 and IA-32 optimization
/// manual, "Data Prefetching").
constexpr std::int64_t page_bytes = 4096;

/// Whether the compute statement may run panel by panel together with the fused `members`. Each may read what another
/// computes only in the panel in which it is computed.
bool may_join(const ScheduledKernel& kernel, const std::vector<StepId>& members, const Step& joining);
/// Whether the statement may move before the fused `members`, although it stands between them.
bool is_independent(const ScheduledKernel& kernel, const std::vector<StepId>& members, const Step& other);
/// Whether the step is a load that is gathered by elements of the variable.
bool looks_up(const ScheduledKernel& kernel, const Step& step, VariableId id);
/// Whether the two must keep their order. One of them writes, at the core or in memory, what the other reads, gathers
/// by or writes. Operand tiles do not count, as stages keep them apart. Neither does what threads read in memory, as no
/// statement copies it.
bool must_keep_order(const ScheduledKernel& kernel, const Step& a, const Step& b);
/// Whether `after` can be computed in the loops of `leader`. The axis that it reduces becomes the innermost of the
/// loops over points.
bool may_fuse_reduction(const ScheduledKernel& kernel, const Step& leader, const Step& after);

/// Whether a tile may be a view. It may be read where it lies if it has the compute type and is not written here. The
/// same dimension must be contiguous at the core and in memory. It may be written where it goes if why_not_in_place has
/// no objection. A gathered tile may be a view on a CPU if it lies in one block of memory. A tile that only serves as
/// indices of gathers may be a view in any type.
bool may_be_view(const ScheduledKernel& kernel, VariableId id);
/// Why a result cannot be written where it goes in memory; empty when it can. One statement makes it whole, in numbers
/// of the array's type and along its rows. Nothing but its store accesses it: it lies in memory only, so nobody reads
/// it and no sum grows there. Pre: the atoms are applied.
std::string_view why_not_in_place(const ScheduledKernel& kernel, VariableId id);
/// Why a result cannot be written past the caches; empty when it can. It is written in place, as vectors.
std::string why_not_non_temporal(const ScheduledKernel& kernel, VariableId id);
/// Why the tile cannot be prefetched in the statement's loops; empty when it can. It is read in place, output tiles
/// have different ones, and the statement's vectors go over just its points.
std::string why_not_prefetched(const ScheduledKernel& kernel, VariableId id, const Step& in);
/// Why a statement cannot be pipelined across tiles, to run for the output tile before in the loops of `in`; empty when
/// it can. It writes its result in place. Its loops and blocks are those of `in`, which is no reduction. What it reads
/// is still there. Statement `in` overwrites it only at the very point that is read just before, and nothing that runs
/// until then does.
std::string why_not_tile_pipelined(const ScheduledKernel& kernel, const Step& deferred, const Step& in);
/// Why the rows of a later block cannot be prefetched in the statement's loops; empty when they can. The statement
/// reduces along several of the tile's rows at once, innermost, and reads the tile in place.
std::string_view why_no_rows_ahead(const ScheduledKernel& kernel, VariableId id, const Step& in);
/// Whether these rows may be prefetched and several of a block lie in one page. A processor's prefetchers see no stream
/// there, as the rows are read in turn.
bool rows_share_pages(const ScheduledKernel& kernel, VariableId id, const Step& in);
/// Whether every statement that reads the loaded tile takes whole panels of it, at the panel's own place. The tile has
/// several panels.
bool may_be_packed(const ScheduledKernel& kernel, VariableId id);
/// The variables that only one set of fused statements accesses, which defines each of their panels before it reads it.
/// Pre: the atoms are applied.
std::vector<bool> in_one_fusion(const ScheduledKernel& kernel);

/// Registers that an atom's block takes: its accumulators, a row of operands, a broadcast. Operands come one after the
/// other where lanes are reduced and the block has one row.
int registers_of(const Atom& atom);

}  // namespace napkin
