#pragma once
// Tables of figures in TOML, for the readers of machine files. Keys, units and sources are checked, and all errors are
// collected. The position of each figure is kept, so that checks of the whole machine can point at it.

// toml++ asserts conditions that a file can break ("[[" at a line's end) before it reports an error. Under NDEBUG it
// takes them for granted.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "machine/figures.hpp"

namespace napkin {

/// Where the figures of a machine stand, by the paths below: "clock", "level.2.capacity", "unit.0.f16",
/// "cross_transfer.1.4". A figure that was not given, or is no figure, has no place.
using Places = std::map<std::string, SourceRange>;

/// What a table that is being read is called in messages, and under what its figures are placed.
struct TableName {
    std::string shown;  ///< "level 'L2'"
    std::string path;   ///< "level.1."; empty for the file's own keys
};

/// Whether a figure may be zero. Times always may.
enum class Zero { impossible, possible };

class FigureReader {
public:
    explicit FigureReader(std::shared_ptr<const Source> source) : source_(std::move(source)) {}

    /// The file as a table; where it is no TOML, an empty one and the error bad-toml.
    toml::table parse();

    /// unknown-key for each key that is not known, with the nearest one.
    void check_keys(const toml::table& table, const std::vector<std::string>& known, const std::string& where);
    /// One missing-key, unless the key stands there misspelt.
    void missing(const toml::table& table, const std::string& key, const std::string& where, std::string expected);

    /// Whether the key stands there under a name near to its own, and that was told.
    [[nodiscard]] bool misspelt(const toml::table& table, const std::string& key) const {
        return misspelt_.contains({&table, key});
    }

    std::string text(const toml::table& table, const std::string& key, const std::string& where);
    /// A figure: the quantity itself, or { value = …, source = … }; the table's source holds where it has none of its
    /// own.
    Figure figure(const toml::table& table, const std::string& key, const TableName& where, Dimension dimension,
                  Zero zero = Zero::impossible);
    /// The same where the figure may be left out.
    std::optional<Figure> optional_figure(const toml::table& table, const std::string& key, const TableName& where,
                                          Dimension dimension, Zero zero = Zero::impossible);
    /// The same of a node that stands somewhere in the table.
    std::optional<Figure> figure_of(const toml::node& given, const toml::table& table, const std::string& key,
                                    const TableName& where, Dimension dimension, Zero zero = Zero::impossible);
    /// A whole number from low to high.
    Figure count(const toml::table& table, const std::string& key, const TableName& where, double low, double high);
    /// The figures of a table of keys into the owner.
    template <class Owner>
    void figures(const toml::table& table, const TableName& where, std::span<const FigureKey<Owner>> keys, Owner& owner,
                 MachineKind kind) {
        for (const FigureKey<Owner>& k : keys) {
            const bool needed = k.need == Need::always || (k.need == Need::of_cpus && kind == MachineKind::cpu);
            if (!needed && !table.contains(k.key)) continue;
            const Zero zero = k.may_be_zero ? Zero::possible : Zero::impossible;
            owner.*k.figure = k.most > 0 ? count(table, k.key, where, k.least, k.most)
                                         : figure(table, k.key, where, k.dimension, zero);
        }
    }
    /// A whole number that needs no source of its own.
    std::optional<std::int64_t> integer(const toml::table& table, const std::string& key, const std::string& where,
                                        std::int64_t low, std::int64_t high);
    /// The tables of [[key]]; where there are none, an error if they are required.
    std::vector<const toml::table*> tables(const toml::table& root, const std::string& key, bool required);
    /// bad-value for a name that is not among the known ones, with the nearest one.
    void check_name(const toml::table& table, const std::string& key, const std::string& name,
                    const std::vector<std::string>& known, const std::string& what);

    void error(std::string code, SourceRange range, std::string message, std::string expected = "",
               std::string hint = "");
    void bad_value(const toml::node& node, std::string message, std::string expected, std::string hint = "") {
        error("bad-value", range_of(node.source()), std::move(message), std::move(expected), std::move(hint));
    }
    [[nodiscard]] SourceRange range_of(const toml::source_region& region) const;
    [[nodiscard]] SourceRange begin_of_file() const { return {source_, 0, 1}; }

    [[nodiscard]] const Places& places() const { return places_; }
    [[nodiscard]] std::vector<Diagnostic>& errors() { return errors_; }

private:
    /// bad-value for each text that could steer the terminal it is shown on.
    void check_texts(const toml::node& node);

    std::shared_ptr<const Source> source_;
    std::vector<Diagnostic> errors_;
    Places places_;
    /// keys that stand in the table under a name near to theirs
    std::set<std::pair<const toml::table*, std::string>> misspelt_;
    std::set<const toml::table*> unsourced_;  ///< tables that were told once that a source is missing
};

/// What check_keys is to know: the other keys and those of a table.
template <class Owner>
std::vector<std::string> with_keys(std::vector<std::string> others, std::span<const FigureKey<Owner>> keys) {
    for (const FigureKey<Owner>& k : keys) others.emplace_back(k.key);
    return others;
}

/// The parts of the file that GPUs have: [[cross_transfer]], [[instruction]], [[copy]], [threads]. Levels and units
/// have been read.
void read_cross_transfers(FigureReader& reader, const toml::table& root, Machine& machine);
void read_instructions(FigureReader& reader, const toml::table& root, Machine& machine);
void read_copies(FigureReader& reader, const toml::table& root, Machine& machine);
void read_threads(FigureReader& reader, const toml::table& root, Machine& machine);

}  // namespace napkin
