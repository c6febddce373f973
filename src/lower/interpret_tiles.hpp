#pragma once
// Which output tiles and K blocks an agent of the interpreter runs, and where its barriers are.
#include "lower/interpret_state.hpp"

namespace napkin::lower::interpreter {

/// The CTA's barriers and what the agents meet at, none of which is made yet.
void prepare(const Grid& grid, Cta& cta);

/// The loop over output tiles of one agent, and the ranges of its K blocks.
class Tiles {
public:
    explicit Tiles(Warp& warp) : warp_(warp), grid_(warp.grid), kernel_(warp.kernel) {}

    /// Goes to the first or the next tile; false where there is none.
    bool first(TileOrder order);
    bool next(TileOrder order);
    [[nodiscard]] bool is_split() const { return is_split_; }
    bool goes_on = true;  ///< stream-K: this warp has all of the tile

    /// The K blocks of a loop. Without bounds they are all.
    BlockRange& range(LoopId loop);
    void forget(LoopId loop) { warp_.ranges.erase(loop); }
    void bounds(LoopId loop);
    void own_bounds(LoopId loop);

    // ---- the queue of tiles
    void ask(bool is_due);
    [[nodiscard]] bool has_asked() const { return has_asked_; }
    void forget_asking() { has_asked_ = false; }
    void write_number();
    void read_number();
    [[nodiscard]] Cta::QueueStage& queue_stage() const;

    void make_barriers();
    /// Copies that were late arrive, as somebody waits for them.
    void complete_copies(MemoryBarrier& barrier);

private:
    void stand();
    void cut_by_masks(LoopId loop, std::int64_t& begin, std::int64_t& end, const std::pair<std::int64_t, std::int64_t>* own);
    void rest_from(std::int64_t place);
    [[nodiscard]] std::int64_t first_of_sections(std::int64_t section) const;
    [[nodiscard]] std::int64_t place_of_block(std::int64_t section) const;

    Warp& warp_;
    Grid& grid_;
    const ScheduledKernel& kernel_;
    bool is_split_ = false, has_asked_ = false;
    std::int64_t claimed_ = 0;
    KBlockRange whole_;  ///< that the data leave to the rows of the last bounds
};

}  // namespace napkin::lower::interpreter
