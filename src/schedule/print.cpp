// A schedule as text. read.cpp reads it back.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/schedule.hpp"
#include "support/ids.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

struct Row {
    std::string key, value, rest;
};

class Printer {
public:
    Printer(const Diagram& diagram, const TileKernel& kernel, const KernelSchedule& schedule)
        : diagram_(diagram), kernel_(kernel), s_(schedule) {}

    std::string run() {
        for (const FieldRow& field : schedule_fields)
            std::visit([&](auto member) { print(field, s_.*member, KernelSchedule{}.*member); }, field.member);
        const std::vector<std::string> atoms = atom_names(kernel_);
        for (const AtomId i : s_.atoms.ids()) rows_.push_back({"atom " + atoms[i], "", text(s_.atoms[i])});
        for (const VariableId v : s_.places.ids())
            rows_.push_back({"storage " + kernel_.variables[v].name, "", text(s_.places[v], kernel_.variables[v])});
        for (const Prefetch& p : s_.prefetches)
            if (p.ahead.value > 0 || p.ahead.by_user)
                rows_.push_back({"prefetch " + kernel_.variables[p.variable].name, "",
                                 in_loops_of(p.fetched == Fetched::blocks ? "blocks" : "tiles", p.ahead,
                                             atoms[at(p.atom)], p.cache == 1 ? "" : fmt::format(", cache {}", p.cache))});
        for (const TilePipelining& d : s_.tile_pipelining)
            if (d.groups.value > 0 || d.groups.by_user)
                rows_.push_back({"pipelined " + atoms[at(d.atom)], "", in_loops_of("tiles", d.groups, atoms[at(d.in)])});
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

    void print(const FieldRow& field, const SizesByAxis& sizes, const SizesByAxis&) {
        for (const auto& [axis, size] : sizes) row(word(field) + " " + name(axis), std::to_string(size.value), size);
    }
    void print(const FieldRow& field, const std::vector<Role>& roles, const std::vector<Role>&) {
        for (const Role& role : roles)
            rows_.push_back({word(field) + " " + role.name, std::to_string(role.workers), why(role.reason, role.by_user)});
    }
    template <class T>
    void print(const FieldRow& field, const Chosen<T>& choice, const Chosen<T>& otherwise) {
        if (field.kind == ChoiceKind::split) {  // the kernel's program says of which axis
            if (kernel_.parts.any())
                row(word(field) + " " + name(kernel_.parts.axis), text(field, choice.value), choice);
        } else if (field.is_always_printed || choice.by_user || choice.value != otherwise.value || !choice.reason.empty()) {
            std::string key = word(field);
            if constexpr (std::is_same_v<T, CtaCluster>) key += " " + name(choice.value.axis);
            row(key, text(field, choice.value), choice);
        }
    }
    [[nodiscard]] std::string word(const FieldRow& field) const {
        const bool is_on_gpu = s_.warps.value > 0 && !field.printed_on_gpu.empty();
        return std::string(is_on_gpu               ? field.printed_on_gpu
                           : field.printed.empty() ? napkin::name(field.kind)
                                                   : field.printed);
    }
    template <class T>
    [[nodiscard]] std::string text(const FieldRow& field, const T& value) const {
        if constexpr (std::is_same_v<T, AxisId>)
            return value < 0 ? "-" : name(value);
        else if constexpr (std::is_same_v<T, CtaCluster>)
            return std::to_string(value.ctas);
        else if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>)
            return std::string(choice_fields[at(field.kind)].words[static_cast<std::size_t>(value)]);
        else
            return std::to_string(value);
    }

    template <class T>
    void row(const std::string& key, const std::string& value, const Chosen<T>& choice) {
        rows_.push_back({key, value, why(choice.reason, choice.by_user)});
    }
    static std::string why(const std::string& reason, bool by_user) {
        if (!by_user) return reason;
        return std::string(override_mark) + (reason.empty() ? "" : " ") + reason;
    }
    /// A clause ends with the line; the reason behind it is a comment.
    static std::string comment(const std::string& reason, bool by_user) {
        return reason.empty() && !by_user ? "" : "  # " + why(reason, by_user);
    }

    [[nodiscard]] std::string text(const Atom& a) const {
        std::string out = a.kind != AtomKind::block ? std::string(napkin::name(a.kind))
                          : a.vector_axis < 0       ? "scalar"
                                                    : fmt::format("vectors {} {}", name(a.vector_axis), a.vectors);
        if (a.across) out += " across";
        if (a.shared) out += " shared";
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
        if (a.terms > 1) out += fmt::format(", terms {}", a.terms);
        if (a.parts > 1) out += fmt::format(", column_parts {}", a.parts);
        if (a.run >= 0) out += fmt::format(", fusion {}", a.run);
        if (a.follows) out += ", fused";
        return out + comment(a.reason, a.by_user);
    }

    /// What runs `choice.value` tiles or blocks from the one at hand, in the loops of a statement.
    [[nodiscard]] static std::string in_loops_of(std::string_view word, const Choice& choice,
                                                 const std::string& statement, const std::string& rest = "") {
        return fmt::format("{} {}, in {}{}", word, choice.value, statement, rest) + comment(choice.reason, choice.by_user);
    }

    [[nodiscard]] std::string text(const Slot& slot) const {
        std::string out = fmt::format("order {}", slot.order);
        if (slot.role >= 0) out += fmt::format(", role {}", s_.roles.at(at(slot.role)).name);
        if (slot.stage_offset != 0) out += fmt::format(", stage_offset {}", slot.stage_offset);
        return out;
    }

    [[nodiscard]] std::string text(const Place& p, const Variable& v) const {
        std::string out(napkin::name(p.holding));
        if (p.innermost >= 0) {
            const Index& inner = v.dims[at(p.innermost)];
            out += fmt::format(", inner {}", to_string(inner, diagram_.names()));
            // The index alone does not name a dimension of D[q, q].
            if (find(v.dims, inner) != v.dims.begin() + p.innermost)
                out += fmt::format(", dimension {}", p.innermost + 1);
        }
        if (p.stages != 1) out += fmt::format(", stages {}", p.stages);
        if (p.non_temporal) out += ", nontemporal";
        if (p.staging_tiles > 0) out += fmt::format(", staging {}", p.staging_tiles);
        return out + comment("", p.by_user);
    }

    const Diagram& diagram_;
    const TileKernel& kernel_;
    const KernelSchedule& s_;
    std::vector<Row> rows_;
};

}  // namespace

std::vector<std::string> atom_names(const TileKernel& kernel) {
    std::vector<std::string> names;
    std::map<VariableId, int> times;
    for_each_statement(kernel.body, [&](const TileStatement& s) {
        const auto* compute = std::get_if<Compute>(&s);
        if (!compute) return;
        const int n = ++times[compute->variable];
        const std::string& name = kernel.variables[compute->variable].name;
        names.push_back(n == 1 ? name : fmt::format("{}#{}", name, n));
    });
    return names;
}

std::vector<std::string> statement_names(const TileKernel& kernel) {
    std::vector<std::string> names;
    std::map<std::string, int> times;
    for_each_statement(kernel.body, [&](const TileStatement& s) {
        std::string name;
        const auto of = [&](VariableId v) { return kernel.variables[v].name; };
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

std::string to_string(const TileProgram& program, const TileKernel& kernel, const KernelSchedule& schedule) {
    return Printer(program.diagram, kernel, schedule).run();
}

}  // namespace napkin
