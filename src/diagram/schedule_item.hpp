#pragma once
// Lines of a schedule as they are written, and the one table of what may stand on them. syntax/parse_schedule.cpp reads
// the lines by this table. So whoever uses an item finds a number where one is expected, within its limits, and no
// words but these.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/ids.hpp"
#include "support/limits.hpp"
#include "support/source.hpp"

namespace napkin {

// clang-format off
/// What a line is about.
enum class ChoiceKind : std::uint8_t {
    group, stream, split, subloop, threads, grid, scheduler, warps, blocks, role, vector, vectors, rows, form, atom,
    storage, slot, prefetch, pipelined, mma_m, rescaling, ping_pong, warpgroup, precision, piece, overhead, issue, turns, units, cluster,
    band, any,
    machine,  ///< the one that the schedule is for
    kernel,   ///< `kernel NAME` below which nothing stands: it names the kernel and fixes nothing
};
// clang-format on

/// What follows the kind of a choice: an axis or another name with a number, and the like.
enum class ChoiceOperand : std::uint8_t { size, optional_size, named_number, named_word, number, word, clauses, list };

/// The words for the tile scheduler (TileScheduler), for the mode of conditional rescaling (RescaleMode), and for
/// whether warpgroups ping-pong at the tensor cores. A word's index is its value.
inline constexpr std::string_view tile_scheduler_words[] = {"static", "dynamic", "stream_k"};
inline constexpr std::string_view rescale_words[] = {"always", "rescale"};
inline constexpr std::string_view ping_pong_words[] = {"off", "on"};

struct ChoiceField {
    std::string_view name;
    ChoiceOperand operand;
    /// Bounds its number, or the numbers behind the names of a list, which has none where it is negative. A size is at
    /// most its axis'.
    std::int64_t most = limits::max_size_product;
    std::span<const std::string_view> words = {};  ///< none: any name
};
/// By ChoiceKind. Blocks of a cluster: CUDA C++ Programming Guide, thread block clusters: 8 on every GPU that has them,
/// 16 where a kernel may ask for more.
inline constexpr ChoiceField choice_fields[] = {
    {"group", ChoiceOperand::size},
    {"stream", ChoiceOperand::optional_size},
    {"split", ChoiceOperand::size},
    {"subloop", ChoiceOperand::size},
    {"threads", ChoiceOperand::number, 4096},
    {"grid", ChoiceOperand::number, (std::int64_t{1} << 31) - 1},
    {"scheduler", ChoiceOperand::word, 0, tile_scheduler_words},
    {"warps", ChoiceOperand::number, 32},
    {"blocks", ChoiceOperand::number, 32},
    {"role", ChoiceOperand::named_number, 4096},
    {"vector", ChoiceOperand::word},
    {"vectors", ChoiceOperand::number, 1024},
    {"rows", ChoiceOperand::number, 1024},
    {"form", ChoiceOperand::word},
    {"atom", ChoiceOperand::clauses},
    {"storage", ChoiceOperand::clauses},
    {"slot", ChoiceOperand::clauses},
    {"prefetch", ChoiceOperand::clauses},
    {"pipelined", ChoiceOperand::clauses},
    {"mma_m", ChoiceOperand::word},
    {"rescaling", ChoiceOperand::word, 0, rescale_words},
    {"ping_pong", ChoiceOperand::word, 0, ping_pong_words},
    {"warpgroup", ChoiceOperand::size},
    {"precision", ChoiceOperand::named_word},
    {"piece", ChoiceOperand::clauses},
    {"overhead", ChoiceOperand::named_number},
    {"issue", ChoiceOperand::list, 8},
    {"turns", ChoiceOperand::list, -1},
    {"units", ChoiceOperand::list, -1},
    {"cluster", ChoiceOperand::size, 16},
    {"band", ChoiceOperand::number},
    {"any", ChoiceOperand::size},
};
constexpr std::string_view name(ChoiceKind kind) {
    return kind == ChoiceKind::machine  ? "machine"
           : kind == ChoiceKind::kernel ? "kernel"
                                        : choice_fields[at(kind)].name;
}

/// What follows the word of a clause. The numbers of a block's vectors and rows are those of which the rules know
/// better how many fit.
enum class ClauseOperand : std::uint8_t { nothing, number, axis_number, axes, index, name };
struct ClauseField {
    ChoiceKind of;
    std::string_view word;
    ClauseOperand operand = ClauseOperand::nothing;
    std::int64_t least = 1, most = 4096;
    bool alone = false;  ///< of those that are, a line has one: of two, one would be dropped
};
inline constexpr ClauseField clause_fields[] = {
    {.of = ChoiceKind::atom, .word = "scalar", .alone = true},
    {.of = ChoiceKind::atom, .word = "fragment", .alone = true},
    {.of = ChoiceKind::atom, .word = "mma", .alone = true},
    {.of = ChoiceKind::atom, .word = "tile", .alone = true},
    {ChoiceKind::atom, "vectors", ClauseOperand::axis_number, 1, 1 << 15, true},
    {ChoiceKind::atom, "rows", ClauseOperand::axis_number, 1, 1 << 15},
    {ChoiceKind::atom, "points", ClauseOperand::axes},
    {ChoiceKind::atom, "over", ClauseOperand::axes},
    {ChoiceKind::atom, "cut", ClauseOperand::axis_number, 1, limits::max_size_product},
    {ChoiceKind::atom, "terms", ClauseOperand::number},
    {ChoiceKind::atom, "column_parts", ClauseOperand::number},
    {ChoiceKind::atom, "fusion", ClauseOperand::number, 0},
    {ChoiceKind::atom, "fused"},
    {.of = ChoiceKind::storage, .word = "buffer", .alone = true},
    {.of = ChoiceKind::storage, .word = "register_panel", .alone = true},
    {.of = ChoiceKind::storage, .word = "packed_panel", .alone = true},
    {.of = ChoiceKind::storage, .word = "global", .alone = true},
    {.of = ChoiceKind::storage, .word = "registers", .alone = true},
    {.of = ChoiceKind::storage, .word = "operand", .alone = true},
    {.of = ChoiceKind::storage, .word = "lanes", .alone = true},
    {.of = ChoiceKind::storage, .word = "written", .alone = true},
    {.of = ChoiceKind::storage, .word = "accumulators", .alone = true},
    {ChoiceKind::storage, "inner", ClauseOperand::index},
    {ChoiceKind::storage, "dimension", ClauseOperand::number},
    {ChoiceKind::storage, "stages", ClauseOperand::number, 1, 64},
    {ChoiceKind::storage, "staging", ClauseOperand::number},
    {ChoiceKind::storage, "nontemporal"},
    {ChoiceKind::slot, "order", ClauseOperand::number, 0},
    {ChoiceKind::slot, "role", ClauseOperand::name},
    {ChoiceKind::slot, "stage_offset", ClauseOperand::number, 0},
    {ChoiceKind::prefetch, "tiles", ClauseOperand::number, 0, 4096, true},
    {ChoiceKind::prefetch, "blocks", ClauseOperand::number, 0, 4096, true},
    {ChoiceKind::prefetch, "cache", ClauseOperand::number},
    {ChoiceKind::prefetch, "in", ClauseOperand::name},
    {ChoiceKind::pipelined, "tiles", ClauseOperand::number, 0},
    {ChoiceKind::pipelined, "in", ClauseOperand::name},
};

/// Another word for a kind of line, or for a word on lines of a kind. It is read and never printed, but for the two
/// that a GPU's schedule has in place of a CPU's.
struct ScheduleAlias {
    std::string_view of;  ///< the kind; empty: the alias is of a kind
    std::string_view alias, word;
};
inline constexpr std::string_view gpu_threads = "ctas", gpu_rows = "register_budget";
inline constexpr ScheduleAlias schedule_aliases[] = {
    {"", gpu_threads, "threads"},
    {"", gpu_rows, "rows"},
    {"", "groups", "scheduler"},
    {"scheduler", "fixed", "static"},
    {"scheduler", "queue", "dynamic"},
    {"scheduler", "cut", "stream_k"},
    {"", "matrix", "ping_pong"},
    {"ping_pong", "free", "off"},
    {"ping_pong", "turns", "on"},
    {"", "maximum", "rescaling"},
    {"rescaling", "exact", "always"},
    {"rescaling", "rescaled", "rescale"},
    {"", "tensor", "mma_m"},
    {"atom", "matrix", "mma"},
    {"atom", "parts", "column_parts"},
    {"atom", "run", "fusion"},
    {"atom", "follows", "fused"},
    {"", "place", "storage"},
    {"storage", "panel", "register_panel"},
    {"storage", "packed", "packed_panel"},
    {"storage", "view", "global"},
    {"storage", "boxes", "staging"},
    {"slot", "position", "order"},
    {"slot", "ahead", "stage_offset"},
    {"prefetch", "groups", "tiles"},
    {"", "defer", "pipelined"},
    {"pipelined", "groups", "tiles"},
};
/// The word itself, or that for which it is an alias.
constexpr std::string_view without_alias(std::string_view of, std::string_view word) {
    for (const ScheduleAlias& a : schedule_aliases)
        if (a.of == of && a.alias == word) return a.word;
    return word;
}

/// A part of what is said of an atom or a storage: `vectors q 3 inner`, `over k`, `global`.
struct ScheduleClause {
    struct Name {
        std::string text;
        SourceRange range;
        friend bool operator==(const Name& a, const Name& b) { return a.text == b.text; }
    };
    std::string word;
    std::vector<Name> names;
    std::optional<std::int64_t> number;
    SourceRange range, operand;  ///< the operand: all after the word
    friend bool operator==(const ScheduleClause& a, const ScheduleClause& b) {
        return a.word == b.word && a.names == b.names && a.number == b.number;
    }
};

/// One line of a schedule, a degree of freedom fixed by hand: `group q=192`, `stream x=128`, `stream x`, `atom S
/// vectors q 3, over k`.
struct ScheduleItem {
    ChoiceKind kind;
    std::string axis;  ///< or the name of what is meant: of an atom's statement, of a storage's variable
    std::optional<std::int64_t> value;  ///< of a word of its kind: which one
    std::string word = {};              ///< e.g. form=auxiliary
    SourceRange range = {};
    std::vector<ScheduleClause> clauses = {};
    std::string kernel = {};  ///< empty: of every kernel that has what is meant
    std::string reason = {};  ///< of an overhead in a file: its source, which stands behind it
    friend bool operator==(const ScheduleItem&, const ScheduleItem&) = default;
};
inline bool fixes_the_same(const ScheduleItem& a, const ScheduleItem& b) {
    return a.kind == b.kind && a.axis == b.axis && a.kernel == b.kernel;
}
/// What is said beside no kernel's name is said of all of them. A kernel's cluster lies along one axis.
inline bool fixes_all_of(const ScheduleItem& a, const ScheduleItem& b) {
    return a.kind == b.kind && (a.axis == b.axis || a.kind == ChoiceKind::cluster) &&
           (a.kernel.empty() || a.kernel == b.kernel);
}
/// The items of two places, of which the second one stands before the first: what it fixes of a kernel is not also as
/// the first one has it.
std::vector<ScheduleItem> with_items_over(std::vector<ScheduleItem> items, const std::vector<ScheduleItem>& over);

}  // namespace napkin
