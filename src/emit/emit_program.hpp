#pragma once
// The kernel program (lower/kernel_program.hpp) as C++ or CUDA: one statement in, one line, block or call out.
#include <map>
#include <set>
#include <string>

#include "emit/emit_frame.hpp"
#include "lower/kernel_program.hpp"

namespace napkin::writers {

/// Prints the statements of one role.
class ProgramPrinter {
public:
    ProgramPrinter(Frame& frame, bool is_producer);

    Lines code(const lower::Block& statements);
    /// Functions that the code calls: those of statements, and those of tensor core instructions.
    [[nodiscard]] const Lines& functions() const { return functions_; }
    [[nodiscard]] const std::set<std::string>& instructions() const { return instructions_; }

private:
    void print(const lower::Block& statements);

    // Loops and branches (emit_loops.cpp).
    void print(const lower::ForTiles& tiles);
    void print(const lower::LoopScope& scope);
    void print(const lower::Bounds& bounds);
    void own_bounds(const lower::Bounds& bounds);
    void print(const lower::ForBlocks& blocks);
    void header_of_skipped(const lower::ForBlocks& blocks);
    void print(const lower::If& branch);
    void print(const lower::At& at);
    void print(const lower::ForParts& parts);
    void print(const lower::ForPanels& panels);
    void print(const lower::ForStaging& tiles);
    void print(const lower::UseStage& use);
    void print(const lower::Advance& advance);
    [[nodiscard]] std::string header_of_tiles(lower::TileOrder order) const;

    // Copies.
    void print(const lower::Copy& copy);
    void print(const lower::CopyAhead& copies);
    void first_copies(const ScheduledLoop& loop);
    void print(const lower::PrefetchTiles& prefetch);
    void print(const lower::LoadFirstRows& load);

    // Computation.
    void print(const lower::Init& init);
    void print(const lower::Mma& product);
    void print(const lower::Map& map);
    void print(const lower::Rescale& rescale);
    void print(const lower::SumRows& sums);
    void print(const lower::Round& round);
    void print(const lower::FinishPipelined& finish);
    void print(const lower::MergeStates& merge);
    void compute_in_blocks(const Step& step);
    void call_of_blocks(const Step& step, const Step* before = nullptr);

    // Synchronization.
    void print(const lower::InitBarriers& init);
    void print(const lower::Wait& wait);
    void print(const lower::Arrive& arrive);
    void print(const lower::Defer& defer);
    void print(const lower::WaitCopies& wait);
    void print(const lower::WaitProducts& wait);
    void print(const lower::WaitStaging& wait);
    void print(const lower::FenceProxy& fence);
    void print(const lower::FenceStores& fence);
    void print(const lower::Sync& sync);
    void print(const lower::CtaBarrier& barrier);
    void print(const lower::ClusterBarrier& barrier);
    void print(const lower::NamedBarrier& barrier);
    void print(const lower::AskTile& ask);
    void print(const lower::WriteTile& write);
    void print(const lower::ReadTile& read);
    void print(const lower::ClaimStates& claim);
    void print(const lower::SignalStates& signal);
    void print(const lower::WaitStates& wait);
    [[nodiscard]] std::string barrier_text(const lower::BarrierRef& barrier) const;

    /// Texts of a loop's first K block and of the one past its last.
    struct Range {
        std::string begin = "0", end;
        std::string all_end = {};  ///< where warpgroups run their own K blocks: the end of those of the CTA
    };
    Range& range(LoopId loop);
    [[nodiscard]] const std::string& axis_name(LoopId loop) const {
        return frame_.axis(frame_.loops[loop].loop->axis).begin;
    }
    [[nodiscard]] std::int64_t tile_of(LoopId loop) const {
        return frame_.span(frame_.loops[loop].loop->axis, frame_.loops[loop].scope).tile;
    }
    /// "load K[h, x, k]" of a load or store.
    [[nodiscard]] std::string about(const char* what, const Step& step) const;
    [[nodiscard]] const Step& load_of(VariableId operand) const;
    [[nodiscard]] bool is_by_one_of_many(const lower::Copy& copy) const;

    Frame& frame_;
    bool is_producer_;
    std::map<LoopId, Range> ranges_;
    bool in_at_ = false;  ///< the text stands in an At, whose beginning declares the stages
    Lines functions_;
    std::set<std::string> instructions_;
    Lines out_;
};

}  // namespace napkin::writers
