// The text that says what the right side of a comparison changes, and the two sides that come of it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "diagram/hidden_axes.hpp"
#include "study/compare.hpp"
#include "support/ids.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {
const std::vector<std::string> item_forms = {"FILE",         "no-fuse",       "fuse",      "machine=NAME", "types=TYPE",
                                             "diagram=NAME", "set:AXIS=SIZE", "devices=N", "cluster=N",    "form=FORM"};
const std::vector<std::string> keys = {"machine", "types", "diagram", "devices", "cluster", "form"};

Diagnostic bad_against(std::string message, std::string expected, std::string hint = "") {
    return Diagnostic{.code = "bad-against",
                      .message = std::move(message),
                      .expected = std::move(expected),
                      .hint = std::move(hint),
                      .exit_code = ExitCode::usage};
}

std::string did_you_mean_one_of(const std::string& word, const std::vector<std::string>& candidates,
                                const char* after = "") {
    const std::string near = nearest_name(word, candidates);
    return near.empty() ? "" : fmt::format("did you mean {}{}?", near, after);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
    const auto value = parse_number<std::int64_t>(text);
    return value && *value >= 1 ? value : std::nullopt;
}

class SpecReader {
public:
    Result<Against> read(std::string_view spec) {
        while (errors_.empty()) {
            const std::size_t comma = spec.find(',');
            item(std::string(spec.substr(0, comma)));
            if (comma == std::string_view::npos) break;
            spec.remove_prefix(comma + 1);
        }
        if (!errors_.empty()) return std::move(errors_);
        return std::move(out_);
    }

private:
    void item(const std::string& text) {
        const std::size_t sign = text.find('=');
        const std::string key = text.substr(0, sign);
        if (text.empty()) {
            errors_.push_back(bad_against("an item of --against is empty", "one of " + join(item_forms, ", ")));
        } else if (text.starts_with("set:")) {
            size(text);
        } else if (text == "fuse" || text == "no-fuse") {
            once("fuse", text);
            out_.fuse = text == "fuse";
        } else if (contains(keys, key) && sign != std::string::npos) {
            once(key, text);
            value(key, text.substr(sign + 1));
        } else if (sign == std::string::npos && text.find_first_of("./") != std::string::npos) {
            once("a file", text);
            out_.file = text;
        } else {
            unknown(text, key, sign != std::string::npos);
        }
    }

    void value(const std::string& key, const std::string& word) {
        if (word.empty()) {
            errors_.push_back(bad_against(fmt::format("{}= has no value", key), "one of " + join(item_forms, ", ")));
        } else if (key == "machine") {
            out_.machine = word;
        } else if (key == "diagram") {
            out_.diagram = word;
        } else if (key == "types") {
            std::vector<std::string> types;
            for (const DType type : all_dtypes)
                if (is_float(type)) types.emplace_back(name(type));
            out_.types = dtype_from_name(word);
            if (!out_.types || !is_float(*out_.types))
                errors_.push_back(bad_against(fmt::format("{} is no type of floating point", word),
                                              "one of " + join(types, ", "), did_you_mean_one_of(word, types)));
        } else if (key == "form") {
            out_.form = word;
            if (word != "unscaled" && word != "auxiliary")
                errors_.push_back(bad_against(fmt::format("{} is no form", word), "unscaled or auxiliary",
                                              did_you_mean_one_of(word, {"unscaled", "auxiliary"})));
        } else {
            const auto number = whole_number(word);
            if (!number || *number > 1024)
                errors_.push_back(bad_against(fmt::format("{}={}", key, word), "a whole number from 1 to 1024"));
            (key == "devices" ? out_.devices : out_.cluster) = number;
        }
    }

    void size(const std::string& text) {
        const std::size_t sign = text.find('=');
        const std::string axis = text.substr(4, sign == std::string::npos ? sign : sign - 4);
        const auto number = sign == std::string::npos ? std::nullopt
                                                      : whole_number(std::string_view(text).substr(sign + 1));
        if (axis.empty() || !number) {
            errors_.push_back(bad_against(text, "set:AXIS=SIZE with a whole size of at least 1, as in set:q=512"));
        } else {
            once("the size of " + axis, text);
            out_.sizes[axis] = *number;
        }
    }

    void once(const std::string& what, const std::string& text) {
        if (!seen_.insert(what).second)
            errors_.push_back(bad_against(fmt::format("{}: --against gives {} twice", text, what), "each item once"));
    }

    void unknown(const std::string& text, const std::string& key, bool with_value) {
        std::vector<std::string> words = keys;
        if (!with_value) words.insert(words.end(), {"no-fuse", "fuse"});
        const std::string near = nearest_name(key, words);
        const bool takes_value = contains(keys, near);
        std::string hint = near.empty() ? "a file has a '.' or a '/' in its name"
                                        : did_you_mean_one_of(key, words, takes_value ? "=…" : "");
        errors_.push_back(
            bad_against(fmt::format("--against does not know {}", text), "one of " + join(item_forms, ", "), hint));
    }

    Against out_;
    std::set<std::string> seen_;
    std::vector<Diagnostic> errors_;
};

std::string form_of(const std::vector<std::string>& schedule) {
    for (const std::string& item : schedule)
        if (item.starts_with("form = ")) return item.substr(7);
    return "unscaled";
}

void set_form(std::vector<std::string>& schedule, const std::string& form) {
    std::erase_if(schedule, [](const std::string& item) { return item.starts_with("form = "); });
    if (form != "unscaled") schedule.push_back("form = " + form);
}

std::string sizes_label(const AxisSizes& sizes, const AxisSizes& keys_of) {
    std::vector<std::string> parts;
    for (const auto& [axis, size] : keys_of)
        if (const auto own = sizes.find(axis); own != sizes.end())
            parts.push_back(fmt::format("{} = {}", axis, own->second));
    return join(parts, " ");
}

/// What stands on this side of each thing in which the sides differ.
std::string label(const Subject& subject, const Against& against, const AxisSizes& extents, bool same_name) {
    const PipelineOptions& options = subject.query.pipeline;
    std::vector<std::string> parts;
    if (!against.file.empty() && same_name) parts.push_back(subject.query.source->name);
    if ((!against.file.empty() && !same_name) || !against.diagram.empty()) parts.push_back(subject.diagram.name);
    if (against.fuse) parts.emplace_back(options.fuse ? "fused" : "no fusion");
    if (!against.machine.empty()) parts.push_back(options.machine.empty() ? "host" : options.machine);
    if (against.types) parts.emplace_back(options.types ? std::string(name(*options.types)) : "types as written");
    if (!against.form.empty()) parts.push_back(form_of(options.schedule));
    if (against.devices)
        parts.push_back(
            fmt::format("{} device{}", subject.query.levels.devices, subject.query.levels.devices == 1 ? "" : "s"));
    if (against.cluster) parts.push_back(fmt::format("cluster of {}", subject.query.levels.cluster));
    if (!against.sizes.empty()) parts.push_back(sizes_label(extents, against.sizes));
    return join(parts, ", ");
}

AxisSizes sizes_of(const Diagram& diagram) {
    AxisSizes sizes;
    const auto extents = bind_sizes(diagram);
    if (!extents) return sizes;
    for (const AxisId i : axes_of_text(diagram)) sizes[diagram.axes[i].name] = (*extents)[i];
    return sizes;
}

}  // namespace

Result<Against> parse_against(std::string_view spec) { return SpecReader().read(spec); }

Result<std::vector<Subject>> sides(const CostQuery& left, const AxisSizes& sizes, const Against& against,
                                   std::shared_ptr<const Source> other) {
    CostQuery right = left;
    PipelineOptions& options = right.pipeline;
    if (other) {
        right.source = std::move(other);
        options.diagram = against.diagram;
    }
    if (!against.diagram.empty()) options.diagram = against.diagram;
    if (!against.machine.empty()) options.machine = against.machine;
    if (!against.form.empty()) set_form(options.schedule, against.form);
    if (against.types) options.types = against.types;
    if (against.fuse) options.fuse = *against.fuse;
    if (against.devices) right.levels.devices = *against.devices;
    if (against.cluster) right.levels.cluster = *against.cluster;
    options.sizes = against.sizes;
    auto made = make_subjects({{"", left, {}, {}}, {"", right, {}, against.sizes}}, sizes);
    if (!made) return made.errors();
    std::vector<Subject> out = std::move(made).value();
    AxisSizes extents = sizes_of(out[0].diagram);
    for (Axis& axis : out[1].diagram.axes) {
        const auto given = extents.find(axis.name);
        if (given == extents.end() || out[1].fixed.contains(axis.name) || (axis.size && !axis.size->as_constant()))
            continue;
        axis.size = Size(given->second);
        out[1].query.pipeline.sizes[axis.name] = given->second;
    }
    const bool same_name = out[0].diagram.name == out[1].diagram.name;
    out[0].label = label(out[0], against, extents, same_name);
    for (const auto& [axis, size] : against.sizes) extents[axis] = size;
    out[1].label = label(out[1], against, extents, same_name);
    if (out[0].label == out[1].label) out[0].label += " (left)", out[1].label += " (right)";
    return out;
}

}  // namespace napkin
