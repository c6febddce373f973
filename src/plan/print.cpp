// The plan as text and back.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <vector>

#include "plan/plan.hpp"

namespace napkin {
namespace {

constexpr std::string_view hand_mark = "[by hand]";

/// The text on one line, without blanks at its ends and not beginning like a mark; unescaped() gives it back.
std::string escaped(const std::string& text, bool word = false) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool at_end = i == 0 || i + 1 == text.size();
        if (c == '\\')
            out += "\\\\";
        else if (c == '\n')
            out += "\\n";
        else if (c == '\r')
            out += "\\r";
        else if (c == '\t')
            out += "\\t";
        else if (c == ' ' && (at_end || word))
            out += "\\s";
        else if (c == '[' && i == 0)
            out += "\\[";
        else
            out += c;
    }
    return out;
}

std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
            out += text[i];
            continue;
        }
        switch (text[++i]) {
            case 'n': out += '\n'; break;
            case 'r': out += '\r'; break;
            case 't': out += '\t'; break;
            case 's': out += ' '; break;
            default: out += text[i];
        }
    }
    return out;
}

struct Row {
    std::string key, value, rest;
};

Row row_of(const std::string& key, const Choice& choice) {
    std::string rest = choice.by_hand ? std::string(hand_mark) : "";
    if (!choice.reason.empty()) rest += (rest.empty() ? "" : " ") + escaped(choice.reason);
    return {key, fmt::format("{}", choice.value), rest};
}

std::vector<Row> rows_of(const KernelPlan& plan) {
    std::vector<Row> rows;
    for (const auto& [axis, choice] : plan.group) rows.push_back(row_of("group " + escaped(axis, true), choice));
    for (const auto& [axis, choice] : plan.stream) rows.push_back(row_of("stream " + escaped(axis, true), choice));
    rows.push_back(row_of("threads", plan.threads));
    rows.push_back({"vector axis",
                    plan.vector_axis.empty()  ? "-"
                    : plan.vector_axis == "-" ? "\\-"
                                              : escaped(plan.vector_axis, true),
                    escaped(plan.vector_axis_reason)});
    rows.push_back(row_of("block rows", plan.block_rows));
    rows.push_back(row_of("block vectors", plan.block_vectors));
    rows.push_back({"transfers H", fmt::format("{}", plan.transfers_values), "values"});
    rows.push_back({"memory M", fmt::format("{}", plan.memory_values), "values a core"});
    rows.push_back({"predicted", fmt::format("{}", plan.predicted_seconds),
                    plan.bound_by.empty() ? "s" : "s, bound by " + escaped(plan.bound_by)});
    return rows;
}

/// Reads one text line by line.
class Parser {
public:
    explicit Parser(const std::shared_ptr<const Source>& source) : source_(source) {}

    Result<Plan> run() {
        Plan plan;
        bool named = false;
        std::size_t begin = 0;
        while (begin < source_->text.size() && !error_) {
            std::size_t end = source_->text.find('\n', begin);
            if (end == std::string::npos) end = source_->text.size();
            line_ = std::string_view(source_->text).substr(begin, end - begin);
            begin_ = begin;
            begin = end + 1;
            if (line_.find_first_not_of(' ') == std::string_view::npos) continue;
            if (!named) {
                named = take(line_, "plan for ");
                plan.machine = unescaped(line_);
                if (!named) fail("the plan's first line", "plan for MACHINE");
            } else if (take(line_, "kernel ")) {
                plan.kernels.emplace_back();
                plan.kernels.back().kernel = unescaped(line_);
            } else if (line_ == "kernel") {
                plan.kernels.emplace_back();
            } else if (plan.kernels.empty()) {
                fail("a line before the first kernel", "kernel NAME");
            } else {
                parse_row(plan.kernels.back());
            }
        }
        if (!named && !error_) begin_ = 0, line_ = {}, fail("an empty plan", "plan for MACHINE");
        if (error_) return *error_;
        return plan;
    }

private:
    static bool take(std::string_view& text, std::string_view prefix) {
        if (!text.starts_with(prefix)) return false;
        text.remove_prefix(prefix.size());
        return true;
    }
    static std::string_view word(std::string_view& text) {
        text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
        const std::string_view result = text.substr(0, text.find(' '));
        text.remove_prefix(result.size());
        text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
        return result;
    }

    void fail(std::string message, std::string expected) {
        const auto begin = static_cast<std::uint32_t>(begin_);
        error_ = Diagnostic{"bad-plan",
                            {source_, begin, begin + static_cast<std::uint32_t>(line_.size())},
                            std::move(message),
                            std::move(expected),
                            "",
                            {},
                            ExitCode::bad_input};
    }

    template <class T>
    T number(std::string_view text) {
        T value{};
        const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (code != std::errc{} || end != text.data() + text.size())
            fail(fmt::format("'{}' is not a number", text), "a number");
        return value;
    }

    Choice choice(std::string_view rest) {
        Choice result;
        result.value = number<std::int64_t>(word(rest));
        result.by_hand = take(rest, hand_mark);
        if (result.by_hand) take(rest, " ");
        result.reason = unescaped(rest);
        return result;
    }

    void parse_row(KernelPlan& plan) {
        std::string_view rest = line_;
        rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
        if (take(rest, "group ")) {
            const std::string axis = unescaped(word(rest));
            plan.group[axis] = choice(rest);
        } else if (take(rest, "stream ")) {
            const std::string axis = unescaped(word(rest));
            plan.stream[axis] = choice(rest);
        } else if (take(rest, "threads ")) {
            plan.threads = choice(rest);
        } else if (take(rest, "vector axis ")) {
            const std::string_view axis = word(rest);
            plan.vector_axis = axis == "-" ? "" : unescaped(axis);
            plan.vector_axis_reason = unescaped(rest);
        } else if (take(rest, "block rows ")) {
            plan.block_rows = choice(rest);
        } else if (take(rest, "block vectors ")) {
            plan.block_vectors = choice(rest);
        } else if (take(rest, "transfers H ")) {
            plan.transfers_values = number<double>(word(rest));
        } else if (take(rest, "memory M ")) {
            plan.memory_values = number<double>(word(rest));
        } else if (take(rest, "predicted ")) {
            plan.predicted_seconds = number<double>(word(rest));
            if (take(rest, "s, bound by ")) plan.bound_by = unescaped(rest);
        } else {
            fail("an unknown choice",
                 "group, stream, threads, vector axis, block rows, block vectors, transfers H, memory M or predicted");
        }
    }

    std::shared_ptr<const Source> source_;
    std::string_view line_;
    std::size_t begin_ = 0;
    std::optional<Diagnostic> error_;
};

}  // namespace

std::string to_string(const Plan& plan) {
    std::string out = fmt::format("plan for {}\n", escaped(plan.machine));
    for (const KernelPlan& kernel : plan.kernels) {
        out += fmt::format("\nkernel {}\n", escaped(kernel.kernel));
        const std::vector<Row> rows = rows_of(kernel);
        std::size_t key_width = 0, value_width = 0;
        for (const Row& row : rows)
            key_width = std::max(key_width, row.key.size()), value_width = std::max(value_width, row.value.size());
        for (const Row& row : rows) {
            std::string line = fmt::format("  {:<{}}  {:>{}}  {}", row.key, key_width, row.value, value_width, row.rest);
            line.erase(line.find_last_not_of(' ') + 1);
            out += line + "\n";
        }
    }
    return out;
}

Result<Plan> parse_plan(const std::string& text) {
    return Parser(std::make_shared<const Source>(Source{"<plan>", text})).run();
}

}  // namespace napkin
