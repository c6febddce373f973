// machines/*.toml → Machine, the parts that GPUs have: links among the instances of a level, matrix instructions,
// limits of threads.
#include <fmt/format.h>

#include "machine/figure_reader.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// `bandwidth` of one instance or `total_bandwidth` of all, each a table by how many are joined.
void read_rates(FigureReader& reader, const toml::table& table, const TableName& where, const Machine& machine,
                CrossTransfer& out) {
    if (reader.misspelt(table, "total_bandwidth")) return;
    const bool total = table.contains("total_bandwidth");
    const std::string key = total ? "total_bandwidth" : "bandwidth";
    const std::string expected = "rates by how many are joined, such as { 2 = \"3.27 TB/s\", 4 = \"2.65 TB/s\" }";
    const toml::node* node = table.get(key);
    if (!node) return reader.missing(table, key, where.shown, expected);
    if (total && table.contains("bandwidth"))
        reader.bad_value(*node, fmt::format("{} has both 'bandwidth' and 'total_bandwidth'", where.shown),
                         "one of them");
    const toml::table* rates = node->as_table();
    if (!rates || rates->empty())
        return reader.bad_value(*node, fmt::format("'{}' of {} is not a table", key, where.shown), expected);
    double instances = 1;
    for (const Level& level : machine.levels)
        if (level.name == out.level && level.instances.value > 0) instances = level.instances.value;
    for (const auto& [joined, rate] : *rates) {
        const std::string text(joined.str());
        const auto members = parse_number<std::int64_t>(text);
        if (!members) {
            reader.error("unknown-key", reader.range_of(joined.source()),
                         fmt::format("unknown key '{}' in '{}' of {}", text, key, where.shown), expected);
            continue;
        }
        if (auto figure = reader.figure_of(rate, table, text, where, Dimension::bytes_per_s)) {
            if (total) figure->value /= instances;
            out.bandwidth_bytes_per_s[*members] = *figure;
        }
    }
}

/// A whole number, or { from, to, step }.
IntegerRange read_range(FigureReader& reader, const toml::table& table, const std::string& key, const std::string& where) {
    constexpr std::int64_t most = 65536;
    const toml::node* node = table.get(key);
    const toml::table* inner = node ? node->as_table() : nullptr;
    if (!inner) {
        const std::int64_t value = reader.integer(table, key, where, 1, most).value_or(1);
        return {value, value, 1};
    }
    const std::string inside = fmt::format("'{}' of {}", key, where);
    reader.check_keys(*inner, {"from", "to", "step"}, inside);
    const auto from = reader.integer(*inner, "from", inside, 1, most),
               to = reader.integer(*inner, "to", inside, 1, most), step = reader.integer(*inner, "step", inside, 1, most);
    if (!from || !to || !step) return {};
    if (*to < *from || (*to - *from) % *step != 0)
        reader.bad_value(*node, fmt::format("{} does not lead from {} to {} in steps of {}", inside, *from, *to, *step),
                         "from ≤ to, with a whole number of steps between");
    return {*from, *to, *step};
}

std::map<DType, std::int64_t> read_k(FigureReader& reader, const toml::table& table, const Machine& machine,
                                     const std::string& unit, const std::string& where) {
    std::map<DType, std::int64_t> out;
    const std::string expected = "a table by the operands' type, such as { f16 = 16, e4m3 = 32 }";
    const toml::node* node = table.get("k");
    if (!node) {
        reader.missing(table, "k", where, expected);
        return out;
    }
    const toml::table* inner = node->as_table();
    if (!inner || inner->empty()) {
        reader.bad_value(*node, fmt::format("'k' of {} is not a table", where), expected);
        return out;
    }
    std::vector<std::string> types;
    for (const DType type : all_dtypes) types.emplace_back(name(type));
    reader.check_keys(*inner, types, fmt::format("'k' of {}", where));
    for (const DType type : all_dtypes) {
        const std::string key(name(type));
        if (!inner->contains(key)) continue;
        if (const auto k = reader.integer(*inner, key, fmt::format("'k' of {}", where), 1, 65536)) out[type] = *k;
        for (const Unit& u : machine.units)
            if (u.name == unit && !u.per_clock.contains(type))
                reader.bad_value(*inner->get(key),
                                 fmt::format("{} takes {}, and unit '{}' has no rate for it", where, key, unit),
                                 fmt::format("'{}' among the unit's rates, or not here", key));
    }
    return out;
}

/// A type's name, or { type = …, bits = … }.
std::optional<Accumulator> read_accumulator(FigureReader& reader, const toml::node& node, const toml::table& table,
                                            const TableName& where) {
    const std::string expected =
        "a type, such as \"f32\", or { type = \"f32\", bits = { value = 14, source = \"…\" } }";
    const toml::table* inner = node.as_table();
    const toml::node* named = inner ? inner->get("type") : &node;
    if (inner) reader.check_keys(*inner, {"type", "bits"}, "an accumulator of " + where.shown);
    if (!named) {
        reader.missing(*inner, "type", "an accumulator of " + where.shown, expected);
        return std::nullopt;
    }
    const auto* text = named->as_string();
    const std::optional<DType> type = text ? dtype_from_name(text->get()) : std::nullopt;
    if (!type) {
        std::vector<std::string> types;
        for (const DType t : all_dtypes) types.emplace_back(name(t));
        reader.bad_value(*named,
                         text ? fmt::format("{} adds in no type '{}'", where.shown, text->get())
                              : fmt::format("an accumulator of {} is no type", where.shown),
                         expected, text ? did_you_mean(text->get(), types) : "");
        return std::nullopt;
    }
    Accumulator out{*type, {}};
    const toml::node* bits = inner ? inner->get("bits") : nullptr;
    if (!bits) return out;
    out.bits = reader.figure_of(*bits, table, "bits", where, Dimension::number).value_or(Figure{});
    // Those after the first one, which is not stored.
    if (const int most = 1 + format_range(*type).mantissa_bits; out.bits.known() && out.bits.value > most)
        reader.error("impossible-figure", reader.range_of(bits->source()),
                     fmt::format("impossible: sums of {} keep {} bits, and {} has {}", where.shown, out.bits.value,
                                 name(*type), most));
    return out;
}

/// For each type that the instruction multiplies, a list of those that it adds in.
std::map<DType, std::vector<Accumulator>> read_accumulators(FigureReader& reader, const toml::table& table,
                                                            const Instruction& instruction, const TableName& where) {
    std::map<DType, std::vector<Accumulator>> out;
    const std::string expected = "lists by the operands' type, such as { f16 = [\"f16\", \"f32\"], bf16 = [\"f32\"] }";
    const toml::node* node = table.get("accumulators");
    if (!node) {
        reader.missing(table, "accumulators", where.shown, expected);
        return out;
    }
    const auto error = [&](const toml::node& at, std::string message) {
        reader.error("bad-value", reader.range_of(at.source()), std::move(message), expected);
    };
    const toml::table* inner = node->as_table();
    if (!inner) {
        error(*node, fmt::format("'accumulators' of {} is not a table", where.shown));
        return out;
    }
    std::vector<std::string> types;
    for (const auto& [type, k] : instruction.k) types.emplace_back(name(type));
    reader.check_keys(*inner, types, fmt::format("'accumulators' of {}", where.shown));
    for (const auto& [type, k] : instruction.k) {
        const std::string key(name(type));
        const toml::node* list = inner->get(key);
        if (!list) {
            reader.missing(*inner, key, fmt::format("'accumulators' of {}", where.shown), expected);
            continue;
        }
        const toml::array* array = list->as_array();
        if (!array || array->empty()) {
            error(*list, fmt::format("'{}' in 'accumulators' of {} is no list of types", key, where.shown));
            continue;
        }
        for (const toml::node& element : *array) {
            const auto accumulator = read_accumulator(reader, element, table,
                                                      {where.shown, fmt::format("{}{}.", where.path, key)});
            if (!accumulator) continue;
            std::vector<Accumulator>& of_type = out[type];
            if (any_of(of_type, [&](const Accumulator& a) { return a.type == accumulator->type; }))
                error(element, fmt::format("'{}' in 'accumulators' of {} has {} twice", key, where.shown,
                                           name(accumulator->type)));
            else
                of_type.push_back(*accumulator);
        }
    }
    return out;
}

/// Layouts of A, B and D, where they are in registers.
void read_layouts(FigureReader& reader, const toml::table& table, const std::string& where, Instruction& out) {
    const std::string expected =
        "layouts of a, b and d, (lane, value) to row + rows · column, such as { d = \"((4,8),(2,2)):((32,1),(16,8))\" "
        "}";
    const toml::node* node = table.get("registers");
    if (!node) return;
    const toml::table* inner = node->as_table();
    if (!inner) return reader.bad_value(*node, fmt::format("'registers' of {} is not a table", where), expected);
    reader.check_keys(*inner, {"a", "b", "d"}, fmt::format("'registers' of {}", where));
    for (const auto& [key, layout] : {std::pair{"a", &out.a}, {"b", &out.b}, {"d", &out.d}}) {
        const toml::node* text = inner->get(key);
        if (!text) continue;
        auto parsed = layouts::parse_layout(text->value_or(std::string()));
        if (parsed && parsed->rank() == 2 && parsed->mode(0).size() <= out.threads)
            *layout = std::move(parsed).value();
        else
            reader.bad_value(*text, fmt::format("'{}' in 'registers' of {} is no layout of its lanes", key, where),
                             parsed ? expected : parsed.errors().front().message);
    }
    out.find_tile();
    if (const toml::node* d = inner->get("d"); d && out.d && !out.tile && table.contains("m"))
        reader.bad_value(*d, fmt::format("'d' in 'registers' of {} does not hold every value of its rows once", where),
                         expected);
}

/// A list of words, each one of the known ones.
std::vector<std::string> read_words(FigureReader& reader, const toml::table& table, const std::string& key,
                                    const std::vector<std::string>& known, const std::string& where) {
    std::vector<std::string> out;
    const toml::node* node = table.get(key);
    if (!node) return out;
    const std::string expected = fmt::format("a list of {}", join(known, ", "));
    const toml::array* list = node->as_array();
    if (!list) {
        reader.bad_value(*node, fmt::format("'{}' of {} is no list", key, where), expected);
        return out;
    }
    for (const toml::node& word : *list) {
        const std::string text = word.value_or(std::string());
        if (contains(known, text))
            out.push_back(text);
        else
            reader.bad_value(word, fmt::format("'{}' of {} has '{}'", key, where, text), expected,
                             did_you_mean(text, known));
    }
    return out;
}

}  // namespace

void read_cross_transfers(FigureReader& reader, const toml::table& root, Machine& machine) {
    for (const toml::table* table : reader.tables(root, "cross_transfer", false)) {
        reader.check_keys(*table, {"name", "level", "bandwidth", "total_bandwidth", "source"}, "a cross transfer");
        CrossTransfer cross;
        cross.name = reader.text(*table, "name", "a cross transfer");
        const TableName where{"cross transfer '" + cross.name + "'",
                              fmt::format("cross_transfer.{}.", machine.cross_transfers.size())};
        cross.level = reader.text(*table, "level", where.shown);
        reader.check_name(*table, "level", cross.level, names_of(machine.levels), "level");
        read_rates(reader, *table, where, machine, cross);
        machine.cross_transfers.push_back(std::move(cross));
    }
}

void read_instructions(FigureReader& reader, const toml::table& root, Machine& machine) {
    for (const toml::table* table : reader.tables(root, "instruction", false)) {
        reader.check_keys(*table,
                          {"name", "unit", "threads", "m", "n", "k", "accumulators", "registers", "shared",
                           "either_major", "mixed", "overhead", "sustained", "source"},
                          "an instruction");
        Instruction instruction;
        instruction.name = reader.text(*table, "name", "an instruction");
        const TableName where{"instruction '" + instruction.name + "'",
                              fmt::format("instruction.{}.", machine.instructions.size())};
        instruction.unit = reader.text(*table, "unit", where.shown);
        reader.check_name(*table, "unit", instruction.unit, names_of(machine.units), "unit");
        instruction.threads = reader.integer(*table, "threads", where.shown, 1, 1024).value_or(1);
        instruction.m = read_range(reader, *table, "m", where.shown);
        instruction.n = read_range(reader, *table, "n", where.shown);
        instruction.k = read_k(reader, *table, machine, instruction.unit, where.shown);
        instruction.accumulators = read_accumulators(reader, *table, instruction, where);
        read_layouts(reader, *table, where.shown, instruction);
        const auto shared = read_words(reader, *table, "shared", {"a", "b"}, where.shown);
        instruction.a_in_shared = contains(shared, "a"), instruction.b_in_shared = contains(shared, "b");
        std::vector<std::string> types;
        for (const auto& [type, k] : instruction.k) types.emplace_back(name(type));
        for (const auto& [key, list] : {std::pair{"either_major", &instruction.either_major}, {"mixed", &instruction.mixed}})
            for (const std::string& type : read_words(reader, *table, key, types, where.shown))
                list->push_back(*dtype_from_name(type));
        instruction.overhead_clocks =
            reader.optional_figure(*table, "overhead", where, Dimension::number, Zero::possible).value_or(Figure{});
        instruction.sustained = reader.optional_figure(*table, "sustained", where, Dimension::number).value_or(Figure{});
        instruction.source = reader.text(*table, "source", where.shown);
        machine.instructions.push_back(std::move(instruction));
    }
}

void read_copies(FigureReader& reader, const toml::table& root, Machine& machine) {
    for (const toml::table* table : reader.tables(root, "copy", false)) {
        reader.check_keys(*table,
                          {"name", "from", "to", "threads", "bytes", "dimensions", "box", "latency", "cached_latency",
                           "loaded_latency", "source"},
                          "a copy");
        CopyInstruction copy;
        copy.name = reader.text(*table, "name", "a copy");
        const TableName where{"copy '" + copy.name + "'", fmt::format("copy.{}.", machine.copies.size())};
        copy.from = reader.text(*table, "from", where.shown);
        copy.to = reader.text(*table, "to", where.shown);
        reader.check_name(*table, "from", copy.from, names_of(machine.levels), "level");
        reader.check_name(*table, "to", copy.to, names_of(machine.levels), "level");
        copy.threads = reader.integer(*table, "threads", where.shown, 1, 1024).value_or(1);
        copy.bytes = reader.integer(*table, "bytes", where.shown, 1, 1024).value_or(1);
        // Boxes have both, or there are none.
        if (table->contains("dimensions") || table->contains("box")) {
            copy.dimensions = reader.integer(*table, "dimensions", where.shown, 1, 16).value_or(1);
            copy.box = reader.integer(*table, "box", where.shown, 1, 65536).value_or(1);
        }
        copy.latency_clocks = reader.optional_figure(*table, "latency", where, Dimension::number).value_or(Figure{});
        copy.cached_latency_clocks = reader.optional_figure(*table, "cached_latency", where, Dimension::number).value_or(Figure{});
        copy.loaded_latency_clocks = reader.optional_figure(*table, "loaded_latency", where, Dimension::number).value_or(Figure{});
        copy.source = reader.text(*table, "source", where.shown);
        machine.copies.push_back(std::move(copy));
    }
}

void read_threads(FigureReader& reader, const toml::table& root, Machine& machine) {
    const toml::node* node = root.get("threads");
    const toml::table* table = node ? node->as_table() : nullptr;
    if (machine.kind == MachineKind::cpu) {
        if (node)
            reader.error("unknown-key", reader.range_of(node->source()), "a CPU has no [threads]", "no [threads] here",
                         "a GPU's file says kind = \"gpu\"");
        return;
    }
    if (!table)
        return reader.error(node ? "bad-value" : "missing-key",
                            node ? reader.range_of(node->source()) : reader.begin_of_file(),
                            "the machine has no [threads]", "one table [threads], as kind is \"gpu\"");
    reader.check_keys(*table, with_keys({"source"}, thread_figures()), "[threads]");
    ThreadLimits limits;
    reader.figures(*table, {"[threads]", "threads."}, thread_figures(), limits, machine.kind);
    machine.threads = limits;
}

}  // namespace napkin
