#pragma once
// First half of a stream partition. It rewrites the reductions of a set of equations over the streamed axis into states
// and finishing maps. It also says in which traversal of the stream each can be computed. The rewritten diagram stays a
// diagram.
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "derive/derive.hpp"
#include "derive/factor.hpp"

namespace napkin {

/// What streaming needs to know of one reduction that became a state.
struct StateInfo {
    int traversal = 1;  ///< the 1-based traversal of the stream that computes it
    Correction correction;
    friend bool operator==(const StateInfo& a, const StateInfo& b) = default;
};

struct Analysis {
    std::vector<ArrayId> targets;         ///< every array of the set after rewriting, in order of definition
    std::map<ArrayId, StateInfo> states;  ///< the reductions over the streamed axis
    int num_traversals = 0;
    std::vector<ValueClass> values;  ///< of every array, the states included
};

/// Rewrites `diagram` in place (appending arrays, replacing equations) and records every rewrite in `steps` (null: not
/// wanted). What cannot be computed in the same traversal as its operands is moved to the next and noted in `refusals`.
/// Returns a Refusal, and leaves `diagram` as it was, when the set cannot be one kernel streamed over `axis` at all.
std::variant<Analysis, Refusal> analyse(Diagram& diagram, const std::vector<ArrayId>& targets,
                                        std::optional<AxisId> axis, Form form, const std::vector<ValueClass>& values,
                                        std::vector<DerivationStep>* steps, std::vector<Refusal>& refusals);

}  // namespace napkin
