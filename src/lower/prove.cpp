#include "lower/prove.hpp"

#include "lower/traces.hpp"

namespace napkin::lower {
namespace {

std::string fault_text(const KernelProgram& program, const Accesses& touches, const std::vector<Run>& runs,
                       const Statement* without) {
    for (const Run& run : runs)
        if (const auto fault = fault_in(program, touches, run, without)) return fault->what;
    return "";
}

}  // namespace

bool synchronizes(const Statement& statement) {
    return std::visit(
        [](const auto& s) {
            using T = std::decay_t<decltype(s)>;
            if constexpr (requires { s.has_barrier_inside; }) return s.has_barrier_inside;
            if constexpr (std::is_same_v<T, WaitProducts>) return s.outstanding >= 0;
            return std::is_same_v<T, Wait> || std::is_same_v<T, Arrive> || std::is_same_v<T, WaitCopies> ||
                   std::is_same_v<T, WaitStaging> || std::is_same_v<T, FenceProxy> || std::is_same_v<T, Sync> ||
                   std::is_same_v<T, CtaBarrier> || std::is_same_v<T, ClusterBarrier> || std::is_same_v<T, NamedBarrier> ||
                   std::is_same_v<T, ClaimStates> || std::is_same_v<T, SignalStates> || std::is_same_v<T, WaitStates>;
        },
        statement.kind);
}

std::string fault_of(const KernelProgram& program, const Statement* without) {
    const Accesses touches = accesses_of(*program.kernel);
    return fault_text(program, touches, runs_of(*program.kernel), without);
}

std::vector<Deletion> deletions(const KernelProgram& program) {
    const Accesses touches = accesses_of(*program.kernel);
    const std::vector<Run> runs = runs_of(*program.kernel);
    std::vector<Deletion> out;
    const auto add = [&](const Block& list) {
        each_statement(list, [&](const Statement& s) {
            if (synchronizes(s)) out.push_back({&s, fault_text(program, touches, runs, &s)});
        });
    };
    add(program.entry);
    if (program.producer) add(program.producer->body), add(program.producer->end);
    add(program.consumer.body), add(program.consumer.end);
    return out;
}

}  // namespace napkin::lower
