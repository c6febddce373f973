// A schedule as text and back.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "schedule/schedule.hpp"
#include "support/ids.hpp"
#include "support/limits.hpp"
#include "support/text.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

constexpr std::string_view hand_mark = "[by hand]";
constexpr std::string_view holdings[] = {"buffer", "panel", "packed", "view"};

struct Row {
    std::string key, value, rest;
};

class Printer {
public:
    Printer(const Diagram& diagram, const TileKernel& kernel, const KernelSchedule& schedule)
        : diagram_(diagram), kernel_(kernel), s_(schedule) {}

    std::string run() {
        for (const auto& [axis, choice] : s_.group) row("group " + name(axis), choice);
        for (const auto& [axis, choice] : s_.stream) row("stream " + name(axis), choice);
        for (const auto& [axis, choice] : s_.subloop) row("subloop " + name(axis), choice);
        if (kernel_.parts.any()) row("split " + name(kernel_.parts.axis), s_.split);
        row("threads", s_.threads);
        for (const Role& role : s_.roles) rows_.push_back({"role " + role.name, std::to_string(role.workers), ""});
        rows_.push_back({"vector axis", s_.vector_axis < 0 ? "-" : name(s_.vector_axis), s_.vector_axis_reason});
        rows_.push_back({"panel vectors", std::to_string(s_.panel_vectors), ""});
        row("rows", s_.rows);
        const std::vector<std::string> atoms = atom_names(kernel_);
        for (std::size_t i = 0; i < s_.atoms.size(); ++i) rows_.push_back({"atom " + atoms[i], "", text(s_.atoms[i])});
        for (std::size_t v = 0; v < s_.places.size(); ++v)
            rows_.push_back({"place " + kernel_.variables[v].name, "", text(s_.places[v], kernel_.variables[v])});
        const std::vector<std::string> statements = statement_names(kernel_);
        for (const auto& [statement, slot] : s_.slots)
            rows_.push_back({"slot " + statements.at(static_cast<std::size_t>(statement)), "", text(slot)});
        std::size_t key = 0, value = 0;
        for (const Row& r : rows_) key = std::max(key, r.key.size()), value = std::max(value, r.value.size());
        std::string out = fmt::format("kernel {}\n", kernel_.name);
        for (const Row& r : rows_) {
            std::string line = r.value.empty() ? fmt::format("  {:<{}}  {}", r.key, key, r.rest)
                                               : fmt::format("  {:<{}}  {:>{}}  {}", r.key, key, r.value, value, r.rest);
            line.erase(line.find_last_not_of(' ') + 1);
            out += line + "\n";
        }
        return out;
    }

private:
    [[nodiscard]] const std::string& name(AxisId axis) const { return diagram_.axis(axis).name; }

    void row(const std::string& key, const Choice& choice) {
        std::string rest = choice.by_hand ? std::string(hand_mark) : "";
        if (!choice.reason.empty()) rest += (rest.empty() ? "" : " ") + choice.reason;
        rows_.push_back({key, std::to_string(choice.value), rest});
    }

    [[nodiscard]] std::string text(const Atom& a) const {
        std::string out = a.vector_axis < 0 ? "scalar" : fmt::format("vectors {} {}", name(a.vector_axis), a.vectors);
        if (a.across) out += " across";
        if (a.vector_inner) out += " inner";
        if (a.row_axis >= 0) out += fmt::format(", rows {} {}", name(a.row_axis), a.rows);
        const auto list = [&](const char* word, const std::vector<AxisId>& axes) {
            if (axes.empty()) return;
            out += fmt::format(", {}", word);
            for (const AxisId axis : axes) out += " " + name(axis);
        };
        list("points", a.points);
        list("over", a.reduced);
        if (a.cut_axis >= 0) out += fmt::format(", cut {} {}", name(a.cut_axis), a.cut);
        if (a.run >= 0) out += fmt::format(", run {}", a.run);
        if (a.follows) out += ", follows";
        return out;
    }

    [[nodiscard]] std::string text(const Slot& slot) const {
        std::string out = fmt::format("position {}", slot.position);
        if (static_cast<std::size_t>(slot.role) < s_.roles.size())
            out += fmt::format(", role {}", s_.roles[static_cast<std::size_t>(slot.role)].name);
        if (slot.ahead != 0) out += fmt::format(", ahead {}", slot.ahead);
        return out;
    }

    [[nodiscard]] std::string text(const Place& p, const Variable& v) const {
        std::string out(holdings[static_cast<std::size_t>(p.holding)]);
        if (p.innermost >= 0)
            out += fmt::format(", inner {}", to_string(v.dims[static_cast<std::size_t>(p.innermost)], diagram_.names()));
        if (p.stages != 1) out += fmt::format(", stages {}", p.stages);
        return out;
    }

    const Diagram& diagram_;
    const TileKernel& kernel_;
    const KernelSchedule& s_;
    std::vector<Row> rows_;
};

/// Reads one text line by line.
class Parser {
public:
    Parser(const std::shared_ptr<const Source>& source, const TileProgram& program)
        : source_(source), program_(program), out_(program.kernels.size()) {
        for (std::size_t k = 0; k < out_.size(); ++k) out_[k].kernel = program.kernels[k].name;
    }

    Result<std::vector<KernelSchedule>> run() {
        for (std::size_t begin = 0; begin < source_->text.size() && !error_;) {
            const std::size_t end = std::min(source_->text.find('\n', begin), source_->text.size());
            line_ = std::string_view(source_->text).substr(begin, end - begin);
            begin_ = begin;
            begin = end + 1;
            rest_ = line_;
            rest_.remove_prefix(std::min(rest_.size(), rest_.find_first_not_of(' ')));
            if (rest_.empty() || rest_.starts_with("#") || rest_.starts_with("plan for ")) continue;
            if (line_.starts_with("kernel "))
                parse_kernel(std::string(line_.substr(7)));
            else if (at_ < 0)
                fail("bad-schedule", "a line before the first kernel", "kernel NAME");
            else
                parse_row();
        }
        if (error_) return *error_;
        return std::move(out_);
    }

private:
    KernelSchedule& schedule() { return out_[static_cast<std::size_t>(at_)]; }
    [[nodiscard]] const TileKernel& kernel() const { return program_.kernels[static_cast<std::size_t>(at_)]; }

    void fail(const std::string& code, std::string message, std::string expected, std::string hint = "") {
        if (error_) return;
        const auto begin = static_cast<std::uint32_t>(begin_);
        error_ = Diagnostic{code,
                            {source_, begin, begin + static_cast<std::uint32_t>(line_.size())},
                            std::move(message),
                            std::move(expected),
                            std::move(hint),
                            {},
                            ExitCode::bad_input};
    }

    void parse_kernel(const std::string& name) {
        std::vector<std::string> names = names_of(program_.kernels);
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end())
            return fail("unknown-kernel", fmt::format("there is no kernel '{}'", name), "a kernel of the diagram",
                        did_you_mean(name, names));
        at_ = static_cast<int>(found - names.begin());
    }

    std::string word() {
        rest_.remove_prefix(std::min(rest_.size(), rest_.find_first_not_of(' ')));
        const std::string result(rest_.substr(0, rest_.find_first_of(" ,")));
        rest_.remove_prefix(result.size());
        return result;
    }
    bool take(std::string_view expected) {
        std::string_view ahead = rest_;
        ahead.remove_prefix(std::min(ahead.size(), ahead.find_first_not_of(' ')));
        if (!ahead.starts_with(expected)) return false;
        const std::string_view after = ahead.substr(expected.size());
        if (expected != "," && !after.empty() && after[0] != ' ' && after[0] != ',') return false;
        rest_ = after;
        return true;
    }
    [[nodiscard]] bool at_end() const { return rest_.find_first_not_of(' ') == std::string_view::npos; }

    std::int64_t number(std::int64_t least = 1) {
        const std::string text = word();
        std::int64_t value = 0;
        const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
        const char* wanted = least > 0 ? "positive whole number" : "whole number from 0";
        if (code != std::errc{} || end != text.data() + text.size() || value < least || value > limits::max_size_product)
            fail("bad-schedule", fmt::format("'{}' is no {}", text, wanted), fmt::format("a {}", wanted));
        return value;
    }
    /// One that a field of a statement may have.
    int small(std::int64_t least) {
        const std::int64_t value = number(least);
        if (value > 4096) fail("bad-schedule", fmt::format("{} is too large", value), "at most 4096");
        return static_cast<int>(value);
    }

    AxisId axis() {
        const std::string name = word();
        if (const auto found = program_.diagram.find_axis(name)) return *found;
        fail("unknown-axis", fmt::format("there is no axis '{}'", name), "an axis of the diagram",
             did_you_mean(name, names_of(program_.diagram.axes)));
        return -1;
    }

    std::vector<AxisId> axes() {
        std::vector<AxisId> list;
        while (!at_end() && !error_ && !rest_.starts_with(",")) list.push_back(axis());
        return list;
    }

    std::size_t named(const std::vector<std::string>& names, const char* code, const char* what) {
        const std::string name = word();
        const auto found = std::find(names.begin(), names.end(), name);
        if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
        fail(code, fmt::format("the kernel has no {} '{}'", what, name),
             fmt::format("a {} of kernel {}", what, kernel().name), did_you_mean(name, names));
        return 0;
    }

    Choice choice() {
        Choice c{number(), "", true};
        if (take(hand_mark)) {
        }
        c.reason = rest_.substr(std::min(rest_.size(), rest_.find_first_not_of(' ')));
        return c;
    }

    void parse_row() {
        if (take("group")) {
            const AxisId a = axis();
            schedule().group[a] = choice();
        } else if (take("stream")) {
            const AxisId a = axis();
            schedule().stream[a] = choice();
        } else if (take("subloop")) {
            const AxisId a = axis();
            schedule().subloop[a] = choice();
        } else if (take("split")) {
            const AxisId a = axis();
            schedule().split = choice();
            const StreamParts& parts = kernel().parts;
            if (schedule().split.value > 1 && !error_ && !parts.cut(a))
                fail("bad-schedule",
                     fmt::format("kernel {} has no parts of {}", kernel().name, program_.diagram.axis(a).name),
                     parts.any() ? fmt::format("split {}", program_.diagram.axis(parts.axis).name)
                                 : "the axis that the kernel streams");
        } else if (take("role")) {
            Role role{word(), 1};
            role.workers = small(1);
            schedule().roles.push_back(std::move(role));
        } else if (take("slot")) {
            parse_slot();
        } else if (take("threads")) {
            schedule().threads = choice();
        } else if (take("vector axis")) {
            schedule().vector_axis = take("-") ? -1 : axis();
            schedule().vector_axis_reason = "by hand";
            schedule().vector_axis_by_hand = true;
        } else if (take("panel vectors")) {
            schedule().panel_vectors = static_cast<int>(number());
            schedule().panel_by_hand = true;
        } else if (take("rows")) {
            schedule().rows = choice();
        } else if (take("atom")) {
            parse_atom(named(atom_names(kernel()), "unknown-statement", "statement"));
        } else if (take("place")) {
            parse_place(named(names_of(kernel().variables), "unknown-variable", "variable"));
        } else if (!take("transfers H") && !take("memory M") && !take("arena") && !take("predicted")) {
            fail("bad-schedule", "an unknown field",
                 "group, stream, subloop, split, threads, role, vector axis, panel vectors, rows, atom, place or slot");
        }
    }

    void parse_atom(std::size_t index) {
        if (error_) return;
        schedule().atoms.resize(atom_names(kernel()).size());
        Atom a;
        a.by_hand = true;
        do {
            if (take("scalar")) {
            } else if (take("vectors")) {
                a.vector_axis = axis();
                a.vectors = static_cast<int>(number());
                a.across = take("across");
                a.vector_inner = take("inner");
            } else if (take("rows")) {
                a.row_axis = axis();
                a.rows = static_cast<int>(number());
            } else if (take("points")) {
                a.points = axes();
            } else if (take("over")) {
                a.reduced = axes();
            } else if (take("cut")) {
                a.cut_axis = axis();
                a.cut = number();
            } else if (take("run")) {
                a.run = take("0") ? 0 : static_cast<int>(number());
            } else if (take("follows")) {
                a.follows = true;
            } else {
                fail("bad-schedule", "an atom cannot be read here",
                     "scalar, vectors, rows, points, over, cut, run or follows");
            }
        } while (!error_ && take(","));
        if (!at_end()) fail("bad-schedule", "the line goes on where it should end", "a comma");
        schedule().atoms[index] = std::move(a);
    }

    /// Which statement it is may take two words, as in `load K`.
    void parse_slot() {
        const std::vector<std::string> names = statement_names(kernel());
        std::string name = word();
        if (name == "load" || name == "store" || name == "init") name += " " + word();
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end())
            return fail("unknown-statement", fmt::format("the kernel has no statement '{}'", name),
                        fmt::format("a statement of kernel {}", kernel().name), nearest_name(name, names));
        Slot slot;
        do {
            if (take("position")) {
                slot.position = small(0);
            } else if (take("ahead")) {
                slot.ahead = small(0);
            } else if (take("role")) {
                std::vector<std::string> roles;
                for (const Role& role : schedule().roles) roles.push_back(role.name);
                slot.role = static_cast<int>(named(roles, "unknown-role", "role"));
            } else {
                fail("bad-schedule", "a slot cannot be read here", "position, role or ahead");
            }
        } while (!error_ && take(","));
        if (!error_ && !at_end()) fail("bad-schedule", "the line goes on where it should end", "a comma");
        schedule().slots[static_cast<int>(found - names.begin())] = slot;
    }

    void parse_place(std::size_t index) {
        if (error_) return;
        schedule().places.resize(kernel().variables.size());
        Place p;
        p.by_hand = true;
        const std::string holding = word();
        const auto found = std::find(std::begin(holdings), std::end(holdings), holding);
        if (found == std::end(holdings))
            return fail("bad-schedule", fmt::format("'{}' is no way to hold a variable", holding),
                        "buffer, panel, packed or view");
        p.holding = static_cast<Holding>(found - std::begin(holdings));
        while (!error_ && take(",")) {
            if (take("stages")) {
                p.stages = static_cast<int>(number());
            } else if (take("inner")) {
                std::string_view dim = rest_.substr(0, rest_.find(','));
                rest_.remove_prefix(dim.size());
                dim.remove_prefix(std::min(dim.size(), dim.find_first_not_of(' ')));
                const auto& dims = kernel().variables[index].dims;
                for (std::size_t d = 0; d < dims.size(); ++d)
                    if (to_string(dims[d], program_.diagram.names()) == dim) p.innermost = static_cast<int>(d);
                if (p.innermost < 0)
                    fail("bad-schedule", fmt::format("'{}' is no dimension of {}", dim, kernel().variables[index].name),
                         "one of its indices");
            } else {
                fail("bad-schedule", "a place cannot be read here", "inner or stages");
            }
        }
        schedule().places[index] = p;
    }

    std::shared_ptr<const Source> source_;
    const TileProgram& program_;
    std::vector<KernelSchedule> out_;
    int at_ = -1;
    std::string_view line_, rest_;
    std::size_t begin_ = 0;
    std::optional<Diagnostic> error_;
};

}  // namespace

std::vector<std::string> atom_names(const TileKernel& kernel) {
    std::vector<std::string> names;
    std::map<VariableId, int> times;
    for_each_statement(kernel.body, [&](const TileStatement& s) {
        const auto* compute = std::get_if<Compute>(&s);
        if (!compute) return;
        const int n = ++times[compute->variable];
        const std::string& name = kernel.variables[at(compute->variable)].name;
        names.push_back(n == 1 ? name : fmt::format("{}#{}", name, n));
    });
    return names;
}

std::vector<std::string> statement_names(const TileKernel& kernel) {
    std::vector<std::string> names;
    std::map<std::string, int> times;
    for_each_statement(kernel.body, [&](const TileStatement& s) {
        std::string name;
        const auto of = [&](VariableId v) { return kernel.variables[at(v)].name; };
        if (const auto* load = std::get_if<Load>(&s)) name = "load " + of(load->variable);
        if (const auto* store = std::get_if<Store>(&s)) name = "store " + of(store->variable);
        if (const auto* init = std::get_if<Init>(&s)) name = "init " + of(init->variable);
        if (const auto* compute = std::get_if<Compute>(&s)) name = of(compute->variable);
        if (name.empty()) return;
        const int n = ++times[name];
        names.push_back(n == 1 ? name : fmt::format("{}#{}", name, n));
    });
    return names;
}

FileSplits splits_of(const Source& text) {
    FileSplits out;
    for (std::size_t begin = 0; begin < text.text.size();) {
        const std::size_t end = std::min(text.text.find('\n', begin), text.text.size());
        std::istringstream line(text.text.substr(begin, end - begin));
        std::string key, name;
        std::int64_t parts = 0;
        if (line >> key >> name && key == "kernel") out.kernels.push_back(name);
        if (key == "split" && !out.kernels.empty() && line >> parts)
            out.splits.push_back(
                {out.kernels.back(), parts, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
        begin = end + 1;
    }
    return out;
}

std::string to_string(const TileProgram& program, const TileKernel& kernel, const KernelSchedule& schedule) {
    return Printer(program.diagram, kernel, schedule).run();
}

Result<std::vector<KernelSchedule>> parse_schedules(const std::shared_ptr<const Source>& text, const TileProgram& program) {
    return Parser(text, program).run();
}

}  // namespace napkin
