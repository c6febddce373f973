#pragma once
// The passes that make the statements of one role, each over the lists of nodes that the schedule orders.
#include <optional>
#include <vector>

#include "lower/kernel_program.hpp"
#include "schedule/stream_k.hpp"
#include "schedule/warpgroups.hpp"

namespace napkin::lower {

/// What a role's lists of nodes become.
class RoleLowering {
public:
    RoleLowering(const ScheduledKernel& kernel, bool is_producer);

    /// The loop over output tiles, and what is left behind it.
    Block run();
    [[nodiscard]] bool has_ping_pong() const { return ping_pong_.has_value(); }

private:
    void tile_body(Block& out);
    void next_tile(Block& out);
    void nodes(const std::vector<Node>& list, Block& out);
    std::size_t in_parts(const std::vector<Node>& list, std::size_t first, Block& out);
    void nodes_of_split_tile(Block& out);

    void step(const Step& step, Block& out);
    void copies(const Step& load, Block& out);
    void wait_for_operand(const Step& load, Block& out);
    void load(const Step& step, Block& out);
    void store(const Step& step, Block& out);
    void compute(const Step& step, Block& out);
    [[nodiscard]] bool is_read_beside(const Step& s) const;
    void panels(const FusedStatements& run, Block& out);
    void wait_group(const WaitGroup& settle, Block& out, Arrive::When when = Arrive::always, LoopId loop = {});

    void loop(LoopId id, Block& out);
    void simple_loop(LoopId id, Block& out);
    void modulo_loop(LoopId id, Block& out);
    void iteration(LoopId id, const std::vector<Node>& list, int shift, Block& out);
    void blocks_of_others(LoopId id, KBlocks blocks, Block& out);
    void defer(LoopId id, const std::vector<Node>& nodes, Block& out);
    void copy_ahead(LoopId id, bool is_loop, Block& out);

    [[nodiscard]] bool fills(const ScheduledLoop& loop) const { return !kernel_.operand_loads(loop.scope).empty(); }
    [[nodiscard]] bool is_last_of_copies(LoopId id) const;
    [[nodiscard]] bool is_ping_pong_product(StepId step, const std::vector<Node>& list) const;
    [[nodiscard]] bool rounds(ScopeId scope, int ahead) const;
    [[nodiscard]] std::vector<VariableId> deferred_releases(const ScheduledLoop& loop) const;
    [[nodiscard]] TileRef tile_of(const Step& load, int ahead) const;

    const ScheduledKernel& kernel_;
    bool is_producer_;
    std::optional<StreamK> stream_k_;
    std::optional<PingPong> ping_pong_;
    int shift_ = 0;       ///< iterations that the statements stand before the counters of their loop
    bool in_at_ = false;  ///< statements stand in an At, which names the stages
};

}  // namespace napkin::lower
