#pragma once
// Why the statements of a kernel's loops run in their order. A proof has the interval of that order, a lower bound for
// all orders, and what the search over all orders found (schedule/modulo.hpp). The interval is the simulator's, for an
// iteration of a full tile.
#include <string>
#include <vector>

#include "diagram/sizes.hpp"
#include "plan/plan.hpp"
#include "report/report.hpp"
#include "schedule/modulo_body.hpp"
#include "support/result.hpp"

namespace napkin {

/// Work that all warpgroups of an SM have for a unit in an iteration, whatever the order.
struct UnitBound {
    std::string unit;
    double clocks = 0;
    std::vector<std::string> of;  ///< "S 512 clocks", most first
};

struct ProvenOrder {
    ModuloOrder order;
    double pace = 0;             ///< issue interval of a warpgroup, clocks an iteration
    double interval = 0;         ///< initiation interval of all warpgroups of an SM, clocks
    std::int64_t registers = 0;  ///< of the loop's values
};

struct LoopProof {
    std::string kernel, axis;
    std::int64_t chunk = 0;
    double warpgroups = 1;
    bool is_ping_pong = false;
    std::string refusal;  ///< why its statements have one order; empty: orders were searched
    LoopBody loop;
    ProvenOrder scheduled, best;
    bool has_runner_up = false;
    ProvenOrder runner_up;
    std::int64_t kernel_registers = 0;  ///< the most of the scheduled kernel, outside of the loop, too
    std::vector<UnitBound> units;       ///< most clocks first
    double least_interval = 0;          ///< of a warpgroup whose pace is that of the bounds
    ModuloSearch search;
    /// Whether the scheduled order is as good as any. An override of slots may have made it another one.
    [[nodiscard]] bool is_scheduled_best() const;
};

/// Proofs for every streamed loop of the plan. Errors: no-orders (the machine's processors run statements as they
/// stand, or no kernel has a loop whose order is open).
Result<std::vector<LoopProof>> prove_orders(const Derived& derived, const Extents& extents, const Machine& machine,
                                            const Plan& plan);

report::Section report_of(const LoopProof& proof);
/// Which bound the best order meets, or that all other orders were excluded.
std::string proof_text(const LoopProof& proof);
/// The dependences around the longest cycle, each as "P_M after S (why)".
std::vector<std::string> cycle_text(const LoopProof& proof);

}  // namespace napkin
