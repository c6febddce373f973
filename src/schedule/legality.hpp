#pragma once
// What may be done with a statement, a tile or a run of statements: the plan asks before it chooses, and the rules
// after (rules.hpp).
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// What one entry of the address translation covers, and within which prefetchers follow streams (Intel 64 and IA-32
/// optimization manual, "Data Prefetching").
constexpr std::int64_t page_bytes = 4096;

/// Whether the compute statement may go panel by panel together with the members of a run: each reads what another
/// computes in the panel in which it is computed.
bool may_join(const ScheduledKernel& kernel, const std::vector<StepId>& members, const Step& joining);
/// Whether the statement may stand before a run with these members though it stands between them.
bool is_independent(const ScheduledKernel& kernel, const std::vector<StepId>& members, const Step& other);
/// Whether elements of the variable say what the step loads.
bool looks_up(const ScheduledKernel& kernel, const Step& step, VariableId id);
/// Whether the two must keep their order: one of them writes, at the core or in memory, what the other reads, looks up
/// or writes. Stages keep an operand's tile apart from the next one, and what threads read where it lies in memory no
/// statement brings anywhere.
bool must_keep_order(const ScheduledKernel& kernel, const Step& a, const Step& b);
/// Whether `after` can be computed in the loops of `leader`, with the axis that it reduces innermost of those over
/// points.
bool may_fuse_reduction(const ScheduledKernel& kernel, const Step& leader, const Step& after);

/// Whether a tile may be read where it lies: numbers of the compute type, at the core as in memory, not written here.
/// Or written where it goes: why_not_in_place says nothing against it. A tile of which data decide where it lies, if
/// that is one block. Or a tile that is only looked up, of any type.
bool may_be_view(const ScheduledKernel& kernel, VariableId id);
/// Why a result cannot be written where it goes in memory; empty when it can. One statement makes it in one piece, in
/// numbers of the array's type and along its rows, and nothing but its store looks at it: no one reads what is in
/// memory only, and no sum grows there. Pre: the atoms are applied.
std::string why_not_in_place(const ScheduledKernel& kernel, VariableId id);
/// Why a result cannot be written past the caches; empty when it can: it is written in place, as vectors.
std::string why_not_non_temporal(const ScheduledKernel& kernel, VariableId id);
/// Why the tile cannot be fetched ahead in the statement's loops; empty when it can. It is read in place, another one
/// in every group, and the statement's vectors go over just its points.
std::string why_not_prefetched(const ScheduledKernel& kernel, VariableId id, const Step& in);
/// Why a statement cannot run for the group before, in the loops of `in`; empty when it can. It writes its result in
/// place; its loops and blocks are those of `in`, which is no reduction; and what it reads is there still: `in`
/// overwrites it at the very point that is read before, and nothing that runs until then does.
std::string why_not_tile_pipelined(const ScheduledKernel& kernel, const Step& deferred, const Step& in);
/// Why the rows of a block to come cannot be fetched ahead in the statement's loops; empty when they can. The statement
/// reduces along several of the tile's rows at once, innermost, and has the tile in place.
std::string_view why_no_rows_ahead(const ScheduledKernel& kernel, VariableId id, const Step& in);
/// They may be fetched ahead, and several of a block lie in one page, where a processor's prefetchers see no stream in
/// what is read in turn.
bool rows_share_pages(const ScheduledKernel& kernel, VariableId id, const Step& in);
/// Whether every statement that reads the loaded tile takes whole panels of it, several of them, at the panel's own
/// place.
bool may_be_packed(const ScheduledKernel& kernel, VariableId id);
/// The variables that live within one run, which defines each of their panels before it reads it. Pre: the atoms are
/// applied.
std::vector<bool> in_one_fusion(const ScheduledKernel& kernel);

/// Registers that an atom's block takes: its accumulators, a row of operands, a broadcast. Operands that no other row
/// takes, and that are reduced across their lanes, come one after the other.
int registers_of(const Atom& atom);

}  // namespace napkin
