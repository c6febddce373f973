// Reads the fields of a schedule that the user overrides, and matches them to the statements and variables of a tile
// program.
#include <fmt/format.h>

#include <array>

#include "schedule/schedule.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "syntax/parse.hpp"
#include "syntax/parser.hpp"
#include "syntax/plain_expression.hpp"

namespace napkin {
namespace {

class ScheduleReader {
public:
    ScheduleReader(const TileProgram& program, bool as_printed)
        : program_(program), as_printed_(as_printed), out_(program.kernels.size()) {
        for (std::size_t k = 0; k < out_.size(); ++k) out_[k].kernel = program.kernels[k].name;
    }

    Result<std::vector<KernelSchedule>> run(const std::vector<ScheduleItem>& items) {
        for (const ScheduleItem& item : items) read(item);
        if (!diagnostics_.empty()) return diagnostics_.take();
        return std::move(out_);
    }

private:
    void fail(const char* code, const SourceRange& range, std::string message, std::string expected,
              std::string hint = "") {
        diagnostics_.error(code, range, std::move(message), std::move(expected), std::move(hint));
    }

    void read(const ScheduleItem& item) {
        // A warpgroup's rows are said by the axis M and the warps.
        if (is_of_views(item) || is_of_steps(item) || item.kind == ChoiceKind::warpgroup) return;
        const std::vector<std::string> names = names_of(program_.kernels);
        if (!item.kernel.empty() && !contains(names, item.kernel))
            return fail("unknown-kernel", item.range, fmt::format("there is no kernel '{}'", item.kernel),
                        "one of " + join(names, ", "), hint_for_kernel(item.kernel, names));
        std::vector<std::string> meant;
        std::size_t found = 0;
        for (std::size_t k = 0; k < names.size(); ++k) {
            if (!item.kernel.empty() && item.kernel != names[k]) continue;
            const TileKernel& kernel = program_.kernels[k];
            if (item.clauses.empty()) {
                read_choice(item, kernel, out_[k]);
                ++found;
                continue;
            }
            const std::vector<std::string> own = item.kind == ChoiceKind::atom || item.kind == ChoiceKind::pipelined
                                                     ? atom_names(kernel)
                                                 : item.kind == ChoiceKind::slot ? statement_names(kernel)
                                                                                 : names_of(kernel.variables);
            const auto place = find(own, item.axis);
            append(meant, own);
            if (place == own.end()) continue;
            const auto index = static_cast<std::size_t>(place - own.begin());
            if (item.kind == ChoiceKind::atom) read_atom(item, AtomId::of(index), own.size(), out_[k]);
            if (item.kind == ChoiceKind::slot) read_slot(item, StepId::of(index), out_[k]);
            if (item.kind == ChoiceKind::storage) read_place(item, VariableId::of(index), kernel, out_[k]);
            if (item.kind == ChoiceKind::prefetch) read_prefetch(item, VariableId::of(index), kernel, out_[k]);
            if (item.kind == ChoiceKind::pipelined) read_tile_pipelining(item, AtomId::of(index), kernel, out_[k]);
            ++found;
        }
        const bool variable = item.kind == ChoiceKind::storage || item.kind == ChoiceKind::prefetch;
        // Kernels may have statements of one name.
        std::vector<std::string> once;
        for (std::string& name : meant)
            if (!contains(once, name)) once.push_back(std::move(name));
        meant = std::move(once);
        if (found == 0)
            fail(variable ? "unknown-variable" : "unknown-statement", item.range,
                 fmt::format("no kernel has a {} '{}'", variable ? "variable" : "statement", item.axis),
                 "one of " + join(meant, ", "), did_you_mean(item.axis, meant));
    }

    /// Kernels named `…_part…` exist only where the stream of a kernel is split.
    static std::string hint_for_kernel(const std::string& name, const std::vector<std::string>& names) {
        const auto whole = find_if(names, [&](const std::string& kernel) { return name.starts_with(kernel + "_part"); });
        return whole == names.end()
                   ? did_you_mean(name, names)
                   : fmt::format("parts of the kernel {} are made where its stream is split, as `split AXIS = 2` says",
                                 *whole);
    }

    /// The value of an item, with its reason.
    [[nodiscard]] Choice choice(const ScheduleItem& item, std::int64_t value) const {
        if (!as_printed_) return {value, "", true};
        std::string why = reason_behind(item);
        const auto mark = find_if(override_marks, [&](std::string_view m) { return why.starts_with(m); });
        const bool by_user = mark != std::end(override_marks);
        if (by_user) why.erase(0, why.find_first_not_of(' ', mark->size()));
        return {value, std::move(why), by_user};
    }

    AxisId axis(const std::string& name, const SourceRange& range) {
        if (const auto found = program_.diagram.find_axis(name)) return *found;
        fail("unknown-axis", range, fmt::format("there is no axis '{}'", name), "an axis of the diagram",
             did_you_mean(name, names_of(program_.diagram.axes)));
        return -1;
    }

    void read_choice(const ScheduleItem& item, const TileKernel& kernel, KernelSchedule& s) {
        const auto row = find_if(schedule_fields, [&](const FieldRow& field) { return field.kind == item.kind; });
        if (row == std::end(schedule_fields)) return;
        if (item.kind == ChoiceKind::split) return read_split(item, kernel, s);
        // A role has a name of its own.
        const bool is_axis = item.kind == ChoiceKind::vector || item.kind == ChoiceKind::mma_m;
        const std::string& name = is_axis && item.axis.empty() ? item.word : item.axis;
        const bool has_axis = !name.empty() && name != "none" && item.kind != ChoiceKind::role;
        set_field(s, *row, item, has_axis ? axis(name, item.range) : AxisId(), choice(item, item.value.value_or(0)));
    }

    /// The kernel's program already has its parts, so the item must agree with it. A split without a kernel's name is
    /// for all kernels that have parts of the axis.
    void read_split(const ScheduleItem& item, const TileKernel& kernel, KernelSchedule& s) {
        const Choice said = choice(item, item.value.value_or(1));
        const AxisId cut = axis(item.axis, item.range);
        const StreamParts& parts = kernel.parts;
        if (parts.cut(cut) || said.value == 1)
            s.split = said;
        else if (cut >= 0 && !item.kernel.empty())
            fail("bad-schedule", item.range, fmt::format("kernel {} has no parts of {}", kernel.name, item.axis),
                 parts.any() ? fmt::format("split {}", program_.diagram.axis(parts.axis).name)
                             : "the axis that the kernel streams");
    }

    /// The axis that the clause names first.
    AxisId axis_of(const ScheduleClause& clause) { return axis(clause.names[0].text, clause.names[0].range); }
    std::vector<AxisId> axes_of(const ScheduleClause& clause) {
        return mapped<AxisId>(clause.names, [&](const auto& name) { return axis(name.text, name.range); });
    }

    void read_atom(const ScheduleItem& item, AtomId index, std::size_t count, KernelSchedule& s) {
        s.atoms.resize(count);
        Atom a;
        const Choice said = choice(item, 0);
        a.reason = said.reason, a.by_user = said.by_user;
        for (const ScheduleClause& c : item.clauses) {
            const auto number = static_cast<int>(c.number.value_or(0));
            const auto has = [&](std::string_view word) {
                return std::any_of(c.names.begin() + 1, c.names.end(), [&](const auto& n) { return n.text == word; });
            };
            for (const AtomKind kind : {AtomKind::fragment, AtomKind::mma, AtomKind::tile})
                if (c.word == name(kind)) a.kind = kind;
            if (c.word == "vectors") {
                a.vector_axis = axis_of(c), a.vectors = number;
                a.across = has("across"), a.shared = has("shared"), a.vector_inner = has("inner");
            }
            if (c.word == "rows") a.row_axis = axis_of(c), a.rows = number;
            if (c.word == "points") a.points = axes_of(c);
            if (c.word == "over") a.reduced = axes_of(c);
            if (c.word == "cut") a.cut_axis = axis_of(c), a.cut = *c.number;
            if (c.word == "terms") a.terms = number;
            if (c.word == "column_parts") a.parts = number;
            if (c.word == "fusion") a.run = number;
            if (c.word == "fused") a.follows = true;
        }
        s.atoms[index] = std::move(a);
    }

    void read_slot(const ScheduleItem& item, StepId index, KernelSchedule& s) {
        Slot slot;
        for (const ScheduleClause& c : item.clauses) {
            if (c.word == "order") slot.order = static_cast<int>(*c.number);
            if (c.word == "stage_offset") slot.stage_offset = static_cast<int>(*c.number);
            if (c.word != "role") continue;
            const std::vector<std::string> roles = names_of(s.roles);
            const std::string& name = c.names[0].text;
            const auto role = find(roles, name);
            if (role == roles.end())
                fail("unknown-role", c.range, fmt::format("the kernel has no role '{}'", name),
                     roles.empty() ? "a line `role` before it" : "one of " + join(roles, ", "), did_you_mean(name, roles));
            slot.role = static_cast<int>(role - roles.begin());
        }
        s.slots[index] = slot;
    }

    void read_place(const ScheduleItem& item, VariableId index, const TileKernel& kernel, KernelSchedule& s) {
        s.places.resize(kernel.variables.size());
        Place p;
        p.by_user = choice(item, 0).by_user;
        p.holding = static_cast<MemorySpace>(find(memory_space_names, item.clauses[0].word) -
                                             std::begin(memory_space_names));
        for (const ScheduleClause& c : item.clauses) {
            if (c.word == "stages") p.stages = static_cast<int>(*c.number);
            if (c.word == "staging") p.staging_tiles = static_cast<int>(*c.number);
            if (c.word == "inner") p.innermost = dimension(c, kernel, kernel.variables[index]);
            if (c.word == "dimension") p.innermost = dimension_like(c, p.innermost, kernel.variables[index]);
            if (c.word == "nontemporal") p.non_temporal = true;
        }
        s.places[index] = p;
    }

    /// "tiles 1, in E" fetches the tile for the next output tile, and "blocks 1, in X" the rows of the next register
    /// block. A 0 is no prefetch. "cache 2" names the second cache.
    void read_prefetch(const ScheduleItem& item, VariableId variable, const TileKernel& kernel, KernelSchedule& s) {
        std::erase_if(s.prefetches, [&](const Prefetch& other) { return other.variable == variable; });
        Prefetch p{variable, -1, {}};
        for (const ScheduleClause& c : item.clauses) {
            if (c.word == "in") p.atom = statement_of(c, kernel);
            if (c.word == "cache") p.cache = static_cast<int>(*c.number);
            if (c.word == "tiles" || c.word == "blocks") p.ahead = choice(item, *c.number);
            if (c.word == "blocks") p.fetched = Fetched::blocks;
        }
        s.prefetches.push_back(std::move(p));
    }

    /// "tiles 1, in E": the statement of the previous output tile runs in the loops of E. "tiles 0, in E": it runs
    /// with its own tile.
    void read_tile_pipelining(const ScheduleItem& item, AtomId atom, const TileKernel& kernel, KernelSchedule& s) {
        std::erase_if(s.tile_pipelining, [&](const TilePipelining& other) { return other.atom == atom; });
        TilePipelining d{atom, -1, {}};
        for (const ScheduleClause& c : item.clauses)
            if (c.word == "in")
                d.in = statement_of(c, kernel);
            else
                d.groups = choice(item, *c.number);
        s.tile_pipelining.push_back(std::move(d));
    }

    /// "in E": the statement of that name; -1 after an error.
    AtomId statement_of(const ScheduleClause& clause, const TileKernel& kernel) {
        const std::vector<std::string> statements = atom_names(kernel);
        const std::string& name = clause.names[0].text;
        const auto found = find(statements, name);
        if (found != statements.end()) return AtomId::of(found - statements.begin());
        fail("unknown-statement", clause.range, fmt::format("the kernel has no statement '{}'", name),
             "one of " + join(statements, ", "), did_you_mean(name, statements));
        return -1;
    }

    /// The dimension of the variable whose index is written in the clause.
    int dimension(const ScheduleClause& clause, const TileKernel& kernel, const Variable& variable) {
        Diagnostics wrong;
        const LogicalLine line = lex_line(clause.operand.source, clause.operand.begin, clause.operand.end, wrong);
        if (!line.tokens.empty()) {
            LineParser parser(clause.operand.source, line, wrong);
            const AstNode node = parser.expression();
            parser.finish();
            const NameTable names{names_of(program_.diagram.axes), names_of(kernel.variables)};
            const std::vector<Index> index = plain_indices({node}, names, wrong);
            const auto found = find(variable.dims, index[0]);
            if (wrong.empty() && found != variable.dims.end()) return static_cast<int>(found - variable.dims.begin());
        }
        std::vector<std::string> dims;
        for (const Index& dim : variable.dims) dims.push_back(to_string(dim, program_.diagram.names()));
        fail("bad-schedule", clause.range, fmt::format("this is no dimension of {}", variable.name),
             "one of its indices: " + join(dims, ", "));
        return -1;
    }

    /// Several dimensions may have the same index, as in D[q, q]. This one has the number that is written, counted from
    /// 1.
    int dimension_like(const ScheduleClause& clause, int inner, const Variable& variable) {
        const auto number = static_cast<int>(*clause.number);
        const auto is_like = [&](int d) { return inner >= 0 && variable.dims[at(d)] == variable.dims[at(inner)]; };
        const int rank = static_cast<int>(variable.dims.size());
        if (number >= 1 && number <= rank && is_like(number - 1)) return number - 1;
        std::vector<std::string> numbers;
        for (int d = 0; d < rank; ++d)
            if (is_like(d)) numbers.push_back(std::to_string(d + 1));
        fail("bad-schedule", clause.range,
             fmt::format("dimension {} of {} has not the index that is inner", number, variable.name),
             inner < 0 ? "'inner' and an index before it" : "one of dimensions " + join(numbers, ", "));
        return inner;
    }

    const TileProgram& program_;
    const bool as_printed_;
    std::vector<KernelSchedule> out_;
    Diagnostics diagnostics_;
};

}  // namespace

bool is_of_views(const ScheduleItem& item) {
    return item.kind == ChoiceKind::overhead || item.kind == ChoiceKind::units;
}

bool is_of_steps(const ScheduleItem& item) {
    using enum ChoiceKind;
    return contains(std::array{precision, piece, issue, turns}, item.kind);
}

const ScheduleItem* machine_line(const std::vector<ScheduleItem>& items) {
    const auto found = find_if(items, [](const ScheduleItem& item) { return item.kind == ChoiceKind::machine; });
    return found == items.end() ? nullptr : &*found;
}

void set_field(KernelSchedule& schedule, const FieldRow& field, const ScheduleItem& item, AxisId axis, const Choice& said) {
    const auto with = [&]<class T>(T value) { return Chosen<T>{std::move(value), said.reason, said.by_user}; };
    std::visit(
        [&]<class T>(T KernelSchedule::* member) {
            T& to = schedule.*member;
            if constexpr (std::is_same_v<T, SizesByAxis>) {
                // The line `stream x` alone asks for a loop, and has no size.
                if (item.value) to[axis] = said;
            } else if constexpr (std::is_same_v<T, std::vector<Role>>) {
                to.push_back({item.axis, static_cast<int>(said.value), said.reason, said.by_user});
            } else if constexpr (std::is_same_v<T, Chosen<AxisId>>) {
                to = with(axis);
            } else if constexpr (std::is_same_v<T, Chosen<CtaCluster>>) {
                to = with(CtaCluster{axis, said.value});
            } else {
                to = with(static_cast<decltype(to.value)>(said.value));
            }
        },
        field.member);
}

Result<std::vector<KernelSchedule>> schedule_overrides(const std::vector<ScheduleItem>& items, const TileProgram& program) {
    return ScheduleReader(program, false).run(items);
}

Result<std::vector<KernelSchedule>> schedules_as_printed(const std::vector<ScheduleItem>& items, const TileProgram& program) {
    return ScheduleReader(program, true).run(items);
}

}  // namespace napkin
