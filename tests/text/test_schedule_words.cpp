// docs/language.md: its tables of a schedule have each word of diagram/schedule_item.hpp and no other. A row has the
// word's values, its limit, what plans choose without it, and an example that parses as a line of that kind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "diagram/schedule_item.hpp"
#include "run/pipeline.hpp"
#include "steps/choices.hpp"
#include "support/paths.hpp"
#include "support/ranges.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

using Cells = std::vector<std::string>;

/// The rows of a document's tables between two marks, without their heads.
std::vector<Cells> rows_between(const std::string& document, const std::string& begin, const std::string& end) {
    std::ifstream file(in_sources(document));
    std::vector<Cells> rows;
    bool is_inside = false;
    for (std::string line; std::getline(file, line);) {
        if (line == begin || line == end) is_inside = line == begin;
        if (!is_inside || !line.starts_with("| `")) continue;
        rows.emplace_back();
        for (std::size_t at = 2, next = 0; (next = line.find(" | ", at)) != std::string::npos; at = next + 3)
            rows.back().push_back(line.substr(at, next - at));
        const std::size_t last = line.rfind(" | ");
        rows.back().push_back(line.substr(last + 3, line.size() - last - 5));
    }
    return rows;
}

/// What stands between backticks.
std::vector<std::string> code_in(const std::string& cell) {
    std::vector<std::string> code;
    std::istringstream parts(cell);
    bool is_code = false;
    for (std::string part; std::getline(parts, part, '`'); is_code = !is_code)
        if (is_code) code.push_back(part);
    return code;
}

std::string line_of(const Cells& row) { return code_in(row.back()).at(0); }

/// The one item of a line, as a file has it. A form is chosen in the text alone.
ScheduleItem item_of(const std::string& line) {
    const auto source = [](std::string text) {
        return std::make_shared<const Source>(Source{"example", std::move(text)});
    };
    if (line.starts_with("form"))
        return parse_diagram(source("f(X[q]) -> Y[q]\n    Y[q] = X[q]\nschedule\n    " + line + "\n")).value().schedule.at(0);
    const auto items = parse_schedule_file(source(line + "\n"));
    if (!items) throw std::runtime_error(render(items.errors()));
    return items->at(0);
}

struct Tables {
    std::map<std::string, Cells> words;  ///< by word
    std::vector<Cells> clauses;
};
Tables tables() {
    Tables out;
    for (Cells& row : rows_between("docs/language.md", "<!-- schedule words -->", "<!-- end of schedule words -->"))
        if (row.size() == 4)
            out.clauses.push_back(std::move(row));
        else if (!out.words.emplace(code_in(row[0]).at(0), row).second)
            ADD_FAILURE() << row[0] << " has two rows";
    return out;
}

/// A kernel of a plan in which nothing is an override.
struct PlannedKernel {
    std::string example;
    Machine machine;
    KernelPlan plan;
    [[nodiscard]] const KernelSchedule& schedule() const { return plan.schedule(); }
    [[nodiscard]] bool is_on_gpu() const { return machine.kind == MachineKind::gpu; }
    /// Tiles that run at once.
    [[nodiscard]] std::int64_t places() const {
        return static_cast<std::int64_t>(machine.cores.value) * std::max<std::int64_t>(1, plan.scheduled.unit.blocks_a_core);
    }
};
using PlannedKernels = std::vector<PlannedKernel>;

Compilation planned(const std::string& example, const std::string& machine, std::vector<std::string> items = {}) {
    PipelineOptions options;
    options.machine = machine, options.schedule = std::move(items), options.until = Pass::plan, options.keep_plan = false;
    std::ifstream file(in_sources(example));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    auto made = run_pipeline(std::make_shared<const Source>(Source{example, text}), options);
    if (!made) throw std::runtime_error(render(made.errors()));
    return std::move(made).value();
}

/// Kernels in which every field that plans choose has a value.
PlannedKernels planned_kernels() {
    PlannedKernels out;
    for (const auto& [example, machine] : {std::pair{"examples/attention_bf16.nk", "h200"},
                                           {"examples/schedules/matmul.nk", "h200"},
                                           {"docs/tutorial/gated.nk", "h200"},
                                           {"examples/softmax.nk", "h200"},
                                           {"examples/decode.nk", "h200"},
                                           {"examples/matmul.nk", "generic-cpu"},
                                           {"examples/softmax.nk", "generic-cpu"},
                                           {"examples/decode.nk", "generic-cpu"}}) {
        Compilation c = planned(example, machine);
        for (KernelPlan& kernel : c.plan.kernels) out.push_back({example, c.machine, std::move(kernel)});
    }
    return out;
}

/// What the column says of a word, and whether the kernels have it so.
struct Default {
    std::string_view text;
    bool (*holds)(const PlannedKernels&);
};

template <auto member>
bool is_searched(const PlannedKernels& kernels) {
    std::set<std::string> values;
    for (const PlannedKernel& k : kernels) {
        const auto& field = k.schedule().*member;
        if constexpr (requires { field.value; }) {
            values.insert(fmt::format("{}", static_cast<std::int64_t>(field.value)));
        } else {
            for (const auto& [axis, size] : field) values.insert(fmt::format("{}", size.value));
        }
    }
    return values.size() > 1;
}

/// Some kernels have it, and none on a GPU has.
template <class Has>
bool only_on_cpus(const PlannedKernels& kernels, const Has& has) {
    return any_of(kernels, has) && none_of(kernels, [&](const PlannedKernel& k) { return k.is_on_gpu() && has(k); });
}

template <class Holds>
bool all_kernels(const PlannedKernels& kernels, Holds holds) {
    return all_of(kernels, [&](const PlannedKernel& k) {
        if (!holds(k)) ADD_FAILURE() << k.example << " on " << k.machine.name << ", kernel " << k.schedule().kernel;
        return holds(k);
    });
}
bool is_of(const PlannedKernel& k, std::string_view example, bool on_gpu = true) {
    return k.example == example && k.is_on_gpu() == on_gpu;
}

/// The choices of the paper's steps where no line makes them.
StepChoices open_choices() {
    const Compilation c = planned("examples/attention_bf16.nk", "h200");
    return step_choices(c.diagram, c.machine, {}).value();
}

const std::map<std::string_view, Default>& defaults() {
    using Kernels = const PlannedKernels&;
    using Kernel = const PlannedKernel&;
    using Schedule = KernelSchedule;
    static const std::map<std::string_view, Default> all{
        {"group", {"search", is_searched<&Schedule::group>}},
        {"stream", {"search", is_searched<&Schedule::stream>}},
        {"split",
         {"search, where tiles are fewer than cores",
          [](Kernels kernels) {
              return any_of(kernels, [](Kernel k) { return k.schedule().split.value > 1; }) &&
                     all_kernels(kernels, [](Kernel k) {
                         return k.schedule().split.value == 1 ||
                                k.plan.time.groups / k.schedule().split.value < k.places();
                     });
          }}},
        {"subloop",
         {"whole",
          [](Kernels kernels) { return all_kernels(kernels, [](Kernel k) { return k.schedule().subloop.empty(); }); }}},
        {"any",
         {"none; of `sizes q = any` those that tiles cut",
          [](Kernels kernels) { return all_kernels(kernels, [](Kernel k) { return k.schedule().any.empty(); }); }}},
        {"form",
         {"`unscaled`",
          [](Kernels) {
              const char* example = "examples/attention_bf16.nk";
              return to_string(planned(example, "h200", {"form unscaled"}).plan) ==
                     to_string(planned(example, "h200").plan);
          }}},
        {"threads",
         {"CPU: all cores. GPU: as many as run at once",
          [](Kernels kernels) {
              return all_kernels(kernels, [](Kernel k) {
                  return k.schedule().threads.value == std::min(k.plan.time.groups, k.places());
              });
          }}},
        {"vector", {"search", is_searched<&Schedule::vector_axis>}},
        {"vectors", {"search", is_searched<&Schedule::panel_vectors>}},
        {"rows",
         {"what the registers hold",
          [](Kernels kernels) {
              return all_kernels(kernels,
                                 [](Kernel k) { return k.schedule().rows.value == k.plan.scheduled.unit.registers; });
          }}},
        {"warps", {"search", is_searched<&Schedule::warps>}},
        {"blocks", {"search", is_searched<&Schedule::blocks>}},
        {"grid",
         {"one for each tile, or as many as run at once, by simulated time",
          [](Kernels kernels) {
              return all_kernels(kernels, [](Kernel k) {
                  return contains(std::set{std::int64_t{0}, k.plan.time.groups, k.places()}, k.schedule().grid.value);
              });
          }}},
        {"band",
         {"the width that loads the fewest bytes",
          [](Kernels kernels) { return all_kernels(kernels, [](Kernel k) { return k.schedule().band.value == 0; }); }}},
        {"scheduler",
         {"`dynamic` where tiles differ, `stream_k` where it is 1.5% faster, else `static`",
          [](Kernels kernels) {
              return all_kernels(kernels, [](Kernel k) {
                  return (k.schedule().scheduler == TileScheduler::dynamic) == is_of(k, "docs/tutorial/gated.nk");
              });
          }}},
        {"cluster",
         {"none",
          [](Kernels kernels) {
              return all_kernels(kernels, [](Kernel k) { return k.schedule().cluster.value.ctas == 1; });
          }}},
        {"mma_m", {"search", is_searched<&Schedule::mma_m>}},
        {"rescaling",
         {"`rescale` where it can be",
          [](Kernels kernels) {
              return all_kernels(kernels, [](Kernel k) {
                  return (k.schedule().rescaling == RescaleMode::rescale) ==
                         (is_of(k, "docs/tutorial/gated.nk") || is_of(k, "examples/attention_bf16.nk"));
              });
          }}},
        {"ping_pong",
         {"`on` where it can be",
          [](Kernels kernels) {
              return all_kernels(kernels,
                                 [](Kernel k) { return k.schedule().ping_pong == is_of(k, "docs/tutorial/gated.nk"); });
          }}},
        {"role",
         {"search: 4 where bulk copies feed a loop, or none",
          [](Kernels kernels) {
              std::set<std::size_t> counts;
              return all_kernels(kernels,
                                 [&](Kernel k) {
                                     for (const Role& role : k.schedule().roles)
                                         if (role.workers != 4) return false;
                                     if (k.schedule().mma_m >= 0) counts.insert(k.schedule().roles.size());
                                     return k.schedule().mma_m >= 0 || k.schedule().roles.empty();
                                 }) &&
                     counts == std::set<std::size_t>{0, 1};
          }}},
        {"slot",
         {"the fastest order",
          [](Kernels kernels) {
              return any_of(kernels, [](Kernel k) {
                  return any_of(k.schedule().slots, [](const auto& slot) { return slot.second.stage_offset > 0; });
              });
          }}},
        {"atom",
         {"by rule",
          [](Kernels kernels) {
              return all_kernels(kernels, [](Kernel k) {
                  return !k.schedule().atoms.empty() &&
                         none_of(k.schedule().atoms, [](const Atom& a) { return a.by_user; });
              });
          }}},
        {"storage",
         {"by rule",
          [](Kernels kernels) {
              return all_kernels(kernels, [](Kernel k) {
                  return !k.schedule().places.empty() &&
                         none_of(k.schedule().places, [](const Place& p) { return p.by_user; });
              });
          }}},
        {"prefetch",
         {"where it saves simulated time",
          [](Kernels kernels) {
              return only_on_cpus(kernels, [](Kernel k) {
                  return any_of(k.schedule().prefetches, [](const Prefetch& p) { return p.ahead.value > 0; });
              });
          }}},
        {"pipelined",
         {"where it saves simulated time",
          [](Kernels kernels) {
              return only_on_cpus(kernels, [](Kernel k) { return !k.schedule().tile_pipelining.empty(); });
          }}},
        {"warpgroup", {"a row for each thread", [](Kernels) { return open_choices().warpgroup.empty(); }}},
        {"precision", {"as the text has it", [](Kernels) { return open_choices().precision.empty(); }}},
        {"piece", {"all of it", [](Kernels) { return open_choices().pieces.empty(); }}},
        {"overhead", {"0", [](Kernels) { return open_choices().overheads.empty(); }}},
        {"issue", {"search", [](Kernels) { return open_choices().issue.empty(); }}},
        {"turns", {"search", [](Kernels) { return open_choices().turns.empty(); }}},
        {"units", {"all", [](Kernels) { return open_choices().units.empty(); }}},
        {"machine", {"`--machine`", nullptr}},
        {"kernel", {"all kernels", nullptr}}};
    return all;
}

TEST(ScheduleWords, StandInTheTable) {
    const Tables documented = tables();
    std::set<std::string> words{std::string(name(ChoiceKind::machine)), std::string(name(ChoiceKind::kernel))};
    for (const ChoiceField& field : choice_fields) words.emplace(field.name);
    std::set<std::string> rows;
    for (const auto& [word, row] : documented.words) rows.insert(word);
    EXPECT_EQ(rows, words);

    for (const ChoiceField& field : choice_fields) {
        const auto row = documented.words.find(std::string(field.name));
        if (row == documented.words.end()) continue;
        const std::string& values = row->second[1];
        for (const std::string_view word : field.words)
            EXPECT_NE(values.find(fmt::format("`{}`", word)), std::string::npos) << word;
        if (field.most > 0 && field.most < limits::max_size_product) {
            EXPECT_TRUE(values.ends_with(fmt::format(" … {}", field.most))) << field.name;
        }
    }
    for (const auto& [word, row] : documented.words) EXPECT_EQ(name(item_of(line_of(row)).kind), word);
    for (const std::string_view on_gpu : {gpu_threads, gpu_rows})
        EXPECT_TRUE(contains(code_in(documented.words.at(std::string(without_alias("", on_gpu)))[2]), on_gpu)) << on_gpu;
}

TEST(ScheduleWords, ClausesStandInTheTable) {
    std::set<std::string> expected, rows;
    for (const ClauseField& field : clause_fields) expected.insert(fmt::format("{} {}", name(field.of), field.word));
    for (const Cells& row : tables().clauses) {
        const std::string line = code_in(row[0]).at(0);
        const ScheduleItem item = item_of(line_of(row));
        EXPECT_EQ(name(item.kind), line);
        for (const std::string& clause : code_in(row[1])) rows.insert(line + " " + clause);
        const std::vector<std::string> named = code_in(row[1]);
        EXPECT_TRUE(any_of(item.clauses, [&](const ScheduleClause& c) { return contains(named, c.word); })) << line_of(row);
    }
    EXPECT_EQ(rows, expected);
}

TEST(ScheduleWords, DefaultsAreThoseOfPlans) {
    const PlannedKernels kernels = planned_kernels();
    for (const auto& [word, row] : tables().words) {
        SCOPED_TRACE(word);
        const auto known = defaults().find(word);
        ASSERT_NE(known, defaults().end()) << "a word without a test of its default";
        EXPECT_EQ(row[3], known->second.text);
        if (known->second.holds) {
            EXPECT_TRUE(known->second.holds(kernels)) << row[3];
        }
    }
}

}  // namespace
}  // namespace napkin
