// The fields of a schedule that were fixed by hand, from what was written to the statements and variables of a tile program.
#include <fmt/format.h>

#include <array>

#include "schedule/schedule.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "syntax/parser.hpp"
#include "syntax/plain_expression.hpp"

namespace napkin {
namespace {

class ScheduleReader {
public:
    explicit ScheduleReader(const TileProgram& program) : program_(program), out_(program.kernels.size()) {
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
        if (is_of_readings(item) || is_of_steps(item)) return;
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
            const std::vector<std::string> own = item.kind == "atom" || item.kind == "defer" ? atom_names(kernel)
                                                 : item.kind == "slot"                       ? statement_names(kernel)
                                                                       : names_of(kernel.variables);
            const auto place = find(own, item.axis);
            append(meant, own);
            if (place == own.end()) continue;
            const auto index = static_cast<std::size_t>(place - own.begin());
            if (item.kind == "atom") read_atom(item, index, own.size(), out_[k]);
            if (item.kind == "slot") read_slot(item, index, out_[k]);
            if (item.kind == "place") read_place(item, VariableId::of(index), kernel, out_[k]);
            if (item.kind == "prefetch") read_prefetch(item, VariableId::of(index), kernel, out_[k]);
            if (item.kind == "defer") read_deferral(item, static_cast<int>(index), kernel, out_[k]);
            ++found;
        }
        const bool variable = item.kind == "place" || item.kind == "prefetch";
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

    /// A part of a kernel exists where its stream is split.
    static std::string hint_for_kernel(const std::string& name, const std::vector<std::string>& names) {
        const auto whole = find_if(names, [&](const std::string& kernel) { return name.starts_with(kernel + "_part"); });
        return whole == names.end()
                   ? did_you_mean(name, names)
                   : fmt::format("parts of the kernel {} are made where its stream is split, as `split AXIS = 2` says",
                                 *whole);
    }

    AxisId axis(const std::string& name, const SourceRange& range) {
        if (const auto found = program_.diagram.find_axis(name)) return *found;
        fail("unknown-axis", range, fmt::format("there is no axis '{}'", name), "an axis of the diagram",
             did_you_mean(name, names_of(program_.diagram.axes)));
        return -1;
    }

    void read_choice(const ScheduleItem& item, const TileKernel& kernel, KernelSchedule& s) {
        const Choice choice{item.value.value_or(0), "", true};
        const auto sized = [&](std::map<AxisId, Choice>& sizes) {
            if (item.value) sizes[axis(item.axis, item.range)] = choice;
        };
        if (item.kind == "group") sized(s.group);
        if (item.kind == "stream") sized(s.stream);
        if (item.kind == "subloop") sized(s.subloop);
        if (item.kind == "split") read_split(item, kernel, s);
        if (item.kind == "threads") s.threads = choice;
        if (item.kind == "grid") s.grid = choice;
        if (item.kind == "groups") s.dealing = {dealing_of(item.word), "", true};
        if (item.kind == "cluster") s.cluster_axis = axis(item.axis, item.range), s.cluster = choice;
        if (item.kind == "warps") s.warps = choice;
        if (item.kind == "blocks") s.blocks = choice;
        if (item.kind == "role") s.roles.push_back({item.axis, small(choice.value, item.range), "", true});
        if (item.kind == "rows") s.rows = choice;
        if (item.kind == "vectors") s.panel_vectors = static_cast<int>(choice.value), s.panel_by_hand = true;
        if (item.kind == "maximum") s.lazy = {lagging_of(item.word), "", true};
        if (item.kind == "matrix") s.turns = {item.word == turns_word ? 1 : 0, "", true};
        if (item.kind == "tensor") {
            const std::string& name = item.axis.empty() ? item.word : item.axis;
            s.tensor_axis = name == "none" ? AxisId() : axis(name, item.range);
            s.tensor_axis_reason = "by hand";
        }
        if (item.kind == "vector") {
            const std::string& name = item.axis.empty() ? item.word : item.axis;
            s.vector_axis = name == "none" ? AxisId() : axis(name, item.range);
            s.vector_axis_reason = "by hand", s.vector_axis_by_hand = true;
        }
    }

    /// A kernel's program says already which parts it has. A split beside no kernel's name is of those that have them.
    void read_split(const ScheduleItem& item, const TileKernel& kernel, KernelSchedule& s) {
        const Choice choice{item.value.value_or(1), "", true};
        const AxisId cut = axis(item.axis, item.range);
        const StreamParts& parts = kernel.parts;
        if (parts.cut(cut) || choice.value == 1)
            s.split = choice;
        else if (cut >= 0 && !item.kernel.empty())
            fail("bad-schedule", item.range, fmt::format("kernel {} has no parts of {}", kernel.name, item.axis),
                 parts.any() ? fmt::format("split {}", program_.diagram.axis(parts.axis).name)
                             : "the axis that the kernel streams");
    }

    /// Rows and vectors that are read, of which the rules know better how many fit.
    static constexpr std::int64_t most_of_block = 1 << 15;
    /// A number that a field of a statement may have.
    int small(std::int64_t number, const SourceRange& range, std::int64_t most = 4096) {
        if (number > most)
            fail("bad-schedule", range, fmt::format("{} is too large", number), fmt::format("at most {}", most));
        return static_cast<int>(std::min(number, most));
    }

    /// The clause's first name is an axis.
    AxisId axis_of(const ScheduleClause& clause) {
        if (!clause.names.empty()) return axis(clause.names[0].text, clause.names[0].range);
        fail("bad-schedule", clause.range, fmt::format("{} of which axis?", clause.word), "the name of an axis");
        return -1;
    }
    std::int64_t number_of(const ScheduleClause& clause, std::int64_t least = 1) {
        if (!clause.number || *clause.number < least)
            fail("bad-schedule", clause.range, fmt::format("{} takes a number", clause.word),
                 fmt::format("a whole number of at least {}", least));
        return clause.number.value_or(least);
    }
    int small_of(const ScheduleClause& clause, std::int64_t least = 1) {
        return small(number_of(clause, least), clause.range);
    }
    void check_no_number(const ScheduleClause& clause) {
        if (clause.number)
            fail("bad-schedule", clause.range, fmt::format("'{}' after {}", *clause.number, clause.word), "a comma");
    }
    std::vector<AxisId> axes_of(const ScheduleClause& clause) {
        check_no_number(clause);
        return mapped<AxisId>(clause.names, [&](const auto& name) { return axis(name.text, name.range); });
    }
    /// Nothing but the axis, the number and these words.
    void check_rest(const ScheduleClause& clause, std::size_t first, std::initializer_list<std::string_view> words) {
        for (std::size_t i = first; i < clause.names.size(); ++i)
            if (!contains(words, clause.names[i].text))
                fail("bad-schedule", clause.names[i].range,
                     fmt::format("'{}' after {}", clause.names[i].text, clause.word), "a comma");
    }

    /// Of words that say the same thing one clause may have one: of two, the one before the other would be dropped.
    void check_said_once(const ScheduleItem& item, const std::vector<std::vector<std::string_view>>& alike) {
        for (std::size_t i = 0; i < item.clauses.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) {
                const ScheduleClause &first = item.clauses[j], &again = item.clauses[i];
                const auto both = [&](const auto& words) {
                    return contains(words, first.word) && contains(words, again.word);
                };
                if (first.word != again.word && none_of(alike, both)) continue;
                fail("bad-schedule", again.range,
                     fmt::format("{} {} is said to be '{}' and '{}'", item.kind, item.axis, text_of(first), text_of(again)),
                     "one of the two");
                return;
            }
    }
    static std::string text_of(const ScheduleClause& clause) {
        return clause.range.source->text.substr(clause.range.begin, clause.range.end - clause.range.begin);
    }

    void read_atom(const ScheduleItem& item, std::size_t index, std::size_t count, KernelSchedule& s) {
        check_said_once(item, {{"vectors", "scalar", "fragment", "matrix", "column"}});
        s.atoms.resize(count);
        Atom a;
        a.by_hand = true;
        for (const ScheduleClause& c : item.clauses) {
            const auto has = [&](std::string_view word) {
                return any_of(c.names, [&](const auto& n) { return n.text == word; });
            };
            if (c.word == "vectors") {
                a.vector_axis = axis_of(c), a.vectors = small(number_of(c), c.range, most_of_block);
                a.across = has("across"), a.shared = has("shared"), a.vector_inner = has("inner");
                check_rest(c, 1, {"across", "shared", "inner"});
            } else if (c.word == "rows") {
                a.row_axis = axis_of(c), a.rows = small(number_of(c), c.range, most_of_block);
                check_rest(c, 1, {});
            } else if (c.word == "points") {
                a.points = axes_of(c);
            } else if (c.word == "over") {
                a.reduced = axes_of(c);
            } else if (c.word == "cut") {
                a.cut_axis = axis_of(c), a.cut = number_of(c);
                check_rest(c, 1, {});
            } else if (c.word == "parts") {
                a.parts = small_of(c);
                check_rest(c, 0, {});
            } else if (c.word == "polynomials") {
                a.polynomials = small_of(c);
                check_rest(c, 0, {});
            } else if (c.word == "of") {
                a.polynomials_of = small_of(c);
                check_rest(c, 0, {});
            } else if (c.word == "run") {
                a.run = small_of(c, 0);
                check_rest(c, 0, {});
            } else if (contains(std::array<std::string_view, 5>{"follows", "scalar", "fragment", "matrix", "column"},
                                c.word)) {
                a.follows |= c.word == "follows";
                for (const AtomKind kind : {AtomKind::fragment, AtomKind::matrix, AtomKind::column})
                    if (c.word == name(kind)) a.kind = kind;
                check_rest(c, 0, {});
                check_no_number(c);
            } else {
                fail("bad-schedule", c.range, "an atom cannot be read here",
                     "scalar, fragment, matrix, column, vectors, rows, points, over, cut, parts, polynomials, of, run "
                     "or follows");
            }
        }
        const auto has_clause = [&](std::string_view word) {
            return any_of(item.clauses, [&](const ScheduleClause& c) { return c.word == word; });
        };
        if (has_clause("polynomials") != has_clause("of"))
            fail("bad-schedule", item.range,
                 "polynomials take the place of some of so many exponentials, of which the atom gives one number alone",
                 "such as polynomials 1, of 8");
        s.atoms[index] = std::move(a);
    }

    void read_slot(const ScheduleItem& item, std::size_t index, KernelSchedule& s) {
        check_said_once(item, {});
        Slot slot;
        for (const ScheduleClause& c : item.clauses) {
            if (c.word == "position" || c.word == "ahead") {
                (c.word == "ahead" ? slot.ahead : slot.position) = small_of(c, 0);
                check_rest(c, 0, {});
            } else if (c.word == "role") {
                const std::vector<std::string> roles = names_of(s.roles);
                const std::string name = c.names.empty() ? "" : c.names[0].text;
                const auto role = find(roles, name);
                if (role == roles.end())
                    fail("unknown-role", c.range, fmt::format("the kernel has no role '{}'", name),
                         roles.empty() ? "a line `role` before it" : "one of " + join(roles, ", "),
                         did_you_mean(name, roles));
                slot.role = static_cast<int>(role - roles.begin());
                check_rest(c, 1, {});
                check_no_number(c);
            } else {
                fail("bad-schedule", c.range, "a slot cannot be read here", "position, role or ahead");
            }
        }
        s.slots[static_cast<int>(index)] = slot;
    }

    void read_place(const ScheduleItem& item, VariableId index, const TileKernel& kernel, KernelSchedule& s) {
        check_said_once(item, {});
        s.places.resize(kernel.variables.size());
        Place p;
        p.by_hand = true;
        const ScheduleClause& first = item.clauses[0];
        const auto holding = std::find(std::begin(holding_names), std::end(holding_names), first.word);
        if (holding == std::end(holding_names))
            return fail(
                "bad-schedule", first.range, fmt::format("'{}' is no way to hold a variable", first.word),
                "one of " + join(std::vector<std::string>(std::begin(holding_names), std::end(holding_names)), ", "));
        check_rest(first, 0, {});
        check_no_number(first);
        p.holding = static_cast<Holding>(holding - std::begin(holding_names));
        for (std::size_t i = 1; i < item.clauses.size(); ++i) {
            const ScheduleClause& c = item.clauses[i];
            if (c.word == "stages") {
                p.stages = small_of(c);
                check_rest(c, 0, {});
            } else if (c.word == "boxes") {
                p.boxes = small_of(c);
                check_rest(c, 0, {});
            } else if (c.word == "inner") {
                p.innermost = dimension(c, kernel, kernel.variables[index]);
            } else if (c.word == "dimension") {
                p.innermost = dimension_like(c, p.innermost, kernel.variables[index]);
                check_rest(c, 0, {});
            } else if (c.word == "nontemporal") {
                p.non_temporal = true;
                check_rest(c, 0, {});
                check_no_number(c);
            } else {
                fail("bad-schedule", c.range, "a place cannot be read here",
                     "inner, dimension, stages, boxes or nontemporal");
            }
        }
        s.places[index] = p;
    }

    /// "groups 1, in E": the tile of the next group; "blocks 1, in X": the rows of the next block; 0: none. "cache 2": into the second one.
    void read_prefetch(const ScheduleItem& item, VariableId variable, const TileKernel& kernel, KernelSchedule& s) {
        int cache = 1;
        const auto [by, word, in] = read_in_loops(item, kernel, {"groups", "blocks"}, &cache);
        std::erase_if(s.prefetches, [&](const Prefetch& other) { return other.variable == variable; });
        s.prefetches.push_back({variable, in, by, word == "blocks" ? Fetched::blocks : Fetched::groups, cache});
    }

    /// "groups 1, in E": the statement runs for the group before, in the loops of E; "groups 0, in E": in its own group.
    void read_deferral(const ScheduleItem& item, int atom, const TileKernel& kernel, KernelSchedule& s) {
        const auto [by, word, in] = read_in_loops(item, kernel, {"groups"});
        std::erase_if(s.deferrals, [&](const Deferral& other) { return other.atom == atom; });
        s.deferrals.push_back({atom, in, by});
    }

    /// By how many groups or blocks something is done elsewhere, and in which statement's loops; -1 after an error.
    struct InLoops {
        Choice by{0, "", true};
        std::string word;
        int in = -1;
    };
    InLoops read_in_loops(const ScheduleItem& item, const TileKernel& kernel, const std::vector<std::string>& words,
                          int* cache = nullptr) {
        check_said_once(item, {{"groups", "blocks"}});
        InLoops out;
        const std::vector<std::string> statements = atom_names(kernel);
        for (const ScheduleClause& c : item.clauses) {
            if (contains(words, c.word)) {
                out.word = c.word, out.by.value = small_of(c, 0);
                check_rest(c, 0, {});
            } else if (c.word == "in") {
                out.in = statement_of(c, statements);
            } else if (cache && c.word == "cache") {
                *cache = small_of(c, 1);
                check_rest(c, 0, {});
            } else {
                fail("bad-schedule", c.range, fmt::format("'{}' cannot be read in a line '{}'", c.word, item.kind),
                     fmt::format("{}{} or in", join(words, ", "), cache ? ", cache" : ""));
            }
        }
        if (diagnostics_.empty() && (out.word.empty() || out.in < 0))
            fail("bad-schedule", item.range,
                 fmt::format("a line '{}' says by how many {}, and in which statement's loops", item.kind,
                             join(words, " or ")),
                 fmt::format("{} {} groups 1, in {}", item.kind, item.axis, statements.empty() ? "S" : statements[0]));
        return out;
    }

    /// "in E": the statement of that name; -1 after an error.
    int statement_of(const ScheduleClause& clause, const std::vector<std::string>& statements) {
        const std::string name = clause.names.empty() ? "" : clause.names[0].text;
        const auto found = find(statements, name);
        check_rest(clause, 1, {});
        check_no_number(clause);
        if (found != statements.end()) return static_cast<int>(found - statements.begin());
        fail("unknown-statement", clause.range, fmt::format("the kernel has no statement '{}'", name),
             "one of " + join(statements, ", "), did_you_mean(name, statements));
        return -1;
    }

    /// The dimension of the variable with the index that is written.
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

    /// Of several dimensions with the same index, as of D[q, q], the one with the number that is written, counted from 1.
    int dimension_like(const ScheduleClause& clause, int inner, const Variable& variable) {
        const int number = small_of(clause);
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
    std::vector<KernelSchedule> out_;
    Diagnostics diagnostics_;
};

}  // namespace

bool is_of_readings(const ScheduleItem& item) { return item.kind == "overhead" || item.kind == "units"; }

bool is_of_steps(const ScheduleItem& item) {
    constexpr std::array<std::string_view, 5> kinds{"warpgroup", "precision", "piece", "issue", "turns"};
    return contains(kinds, item.kind);
}

const ScheduleItem* machine_line(const std::vector<ScheduleItem>& items) {
    const auto found = find_if(items, [](const ScheduleItem& item) { return item.kind == "machine"; });
    return found == items.end() ? nullptr : &*found;
}

Result<std::vector<KernelSchedule>> schedules_by_hand(const std::vector<ScheduleItem>& items, const TileProgram& program) {
    return ScheduleReader(program).run(items);
}

}  // namespace napkin
