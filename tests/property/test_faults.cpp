// The verdict over every example. Programs that are right are never bad, whatever the seed, the sizes and the inputs.
// Each planted fault is bad on some inputs, or computes the same numbers on all of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <random>

#include "check/probe.hpp"
#include "check/reference.hpp"
#include "check/small_sizes.hpp"
#include "check/verdict.hpp"
#include "derive/derive.hpp"
#include "plan/plan.hpp"
#include "support/examples.hpp"
#include "support/fault.hpp"
#include "support/json.hpp"
#include "support/rounded.hpp"
#include "tile/expand.hpp"
#include "tile/interpret.hpp"

namespace napkin {
namespace {

constexpr double most_points = 60000;

struct DerivedExample {
    std::string name;
    Diagram diagram;
    Derived derived;
};

std::vector<DerivedExample> derived_examples() {
    std::vector<DerivedExample> all;
    for (ExampleDiagram& example : example_diagrams()) {
        auto derived = derive(example.diagram);
        if (!derived) throw std::runtime_error(render(derived.errors()));
        all.push_back({std::move(example.name), std::move(example.diagram), std::move(derived).value()});
    }
    return all;
}

/// An example at small random sizes, cut into random groups and chunks.
struct Sized {
    Extents extents, derived_extents;
    SizedProgram program;
    bool is_cut = true;  ///< every stream has several chunks
};

std::optional<Sized> sized(const DerivedExample& example, std::mt19937_64& random) {
    const auto sizes = small_sizes(example.diagram, random, most_points);
    if (!sizes) return std::nullopt;
    Sized s{extents_of(example.diagram, *sizes), extents_of(example.derived.diagram, *sizes), {}, true};
    std::vector<TileSizes> cuts;
    for (const Kernel& kernel : example.derived.kernels) {
        const std::size_t n = s.derived_extents.size();
        TileSizes cut{std::vector<std::int64_t>(n), std::vector<std::int64_t>(n)};
        const auto part = [&](AxisId axis) {
            const auto extent = static_cast<std::uint64_t>(s.derived_extents[axis]);
            return static_cast<std::int64_t>(1 + random() % extent);
        };
        for (const AxisId axis : kernel.group_axes) cut.group[axis] = part(axis);
        for (const Stage& stage : kernel.stages)
            if (const auto* loop = std::get_if<Loop>(&stage)) {
                const std::int64_t chunk = part(loop->axis);
                cut.stream[loop->axis] = chunk;
                s.is_cut = s.is_cut && chunk < s.derived_extents[loop->axis];
            }
        cuts.push_back(std::move(cut));
    }
    s.program = napkin::sized(expand(example.derived), s.derived_extents, std::move(cuts));
    return s;
}

/// The outputs of a program in the diagram's order; none where it touches what is not there.
std::optional<std::vector<Column>> made_by(const DerivedExample& example, const SizedProgram& program,
                                           const Values& inputs, Precision precision = Precision::stored) {
    Values values(program.diagram.arrays.size());
    for (const ArrayId id : example.diagram.inputs)
        values[*program.diagram.find_array(example.diagram.array(id).name)] = inputs[id];
    try {
        interpret(program, values, precision);
    } catch (const InternalError&) {
        return std::nullopt;
    }
    std::vector<Column> outputs;
    for (const ArrayId id : example.diagram.outputs)
        outputs.push_back(values[*program.diagram.find_array(example.diagram.array(id).name)]);
    return outputs;
}

/// About the first output that is bad; "" when none is.
std::string badness(const DerivedExample& example, const Extents& extents, const BoundedValues& reference,
                    const std::vector<Column>& outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const ArrayVerdict v = judge(example.diagram, example.diagram.outputs[i], extents, reference, outputs[i]);
        if (v.judgement == Judgement::bad) return describe(v);
    }
    return "";
}

Values changed(const DerivedExample& example, const Extents& extents, Probe probe,
               const std::function<double(double, std::size_t)>& change) {
    Values values = probe_inputs(example.diagram, extents, probe, 3);
    for (std::size_t i = 0; i < example.diagram.inputs.size(); ++i) {
        const ArrayId id = example.diagram.inputs[i];
        const DType type = example.diagram.array(id).type;
        if (!is_float(type)) continue;
        for (double& x : values[id].reals()) x = round_to(type, change(x, i));
    }
    return values;
}

/// The probes, and further inputs that show faults. Some have values or products that rise or fall along the streams by
/// more than the range of an exponential, for maxima that miss the largest. In others, values are so small that a small
/// constant counts.
std::vector<std::pair<std::string, Values>> inputs_that_show(const DerivedExample& example, const Extents& extents,
                                                             std::mt19937_64& random) {
    std::vector<std::pair<std::string, Values>> all;
    for (const Probe probe : all_probes)
        all.emplace_back(name(probe), probe_inputs(example.diagram, extents, probe, random()));
    for (const Probe probe : {Probe::falling, Probe::growing}) {
        for (const double level : {8.0, 30.0}) {
            const auto products = [&](double x, std::size_t i) {
                return i % 2 == 0 ? level + std::fmod(std::abs(x), 1) : probe == Probe::falling ? x - 8 : x;
            };
            all.emplace_back(fmt::format("{} against {}", name(probe), level), changed(example, extents, probe, products));
        }
        const double sign = probe == Probe::falling ? -1 : 1;
        all.emplace_back(fmt::format("steeply {}", name(probe)),
                         changed(example, extents, probe, [&](double x, std::size_t) { return 100 * (x + sign * 2); }));
    }
    all.emplace_back("small", changed(example, extents, Probe::normal, [](double x, std::size_t) { return x / 1000; }));
    return all;
}

bool same(const std::vector<Column>& a, const std::vector<Column>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t k = 0; k < a[i].size(); ++k)
            if (a[i][k] != b[i][k] && !(std::isnan(a[i][k]) && std::isnan(b[i][k]))) return false;
    return true;
}

/// Whether the outputs are the same but for the rounding of double precision, where the definition says what they are.
bool equal_over_the_reals(const DerivedExample& example, const BoundedValues& reference, const std::vector<Column>& a,
                          const std::vector<Column>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
        double scale = 0;
        for (const double x : b[i])
            if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
        for (std::size_t k = 0; k < a[i].size(); ++k) {
            const Bounded wanted = reference.at(example.diagram.outputs[i], k);
            if (is_unbounded(wanted) || wanted.may != 0) continue;
            if (a[i][k] == b[i][k] || (std::isnan(a[i][k]) && std::isnan(b[i][k]))) continue;
            if (!(std::abs(a[i][k] - b[i][k]) <= 1e-9 * scale)) return false;
        }
    }
    return true;
}

int from_environment(const char* name, int usual) {
    const char* given = std::getenv(name);
    return given ? std::atoi(given) : usual;
}

/// Adds a part to the record of a campaign, where one is asked for.
void keep_record(const char* part, const nlohmann::json& what) {
    const char* path = std::getenv("NAPKIN_VERDICT_RECORD");
    if (!path) return;
    nlohmann::json record = nlohmann::json::object();
    if (std::ifstream in(path); in) in >> record;
    record[part] = what;
    std::ofstream(path) << record.dump(1) << "\n";
}

TEST(Faults, RightProgramsAreNeverBad) {
    const int trials = from_environment("NAPKIN_VERDICT_TRIALS", 10), first = from_environment("NAPKIN_VERDICT_SEED", 0);
    int runs = 0;
    std::map<std::string, int> by_probe;
    for (const DerivedExample& example : derived_examples()) {
        for (int trial = first; trial < first + trials; ++trial) {
            std::mt19937_64 random(static_cast<std::uint64_t>(trial));
            const auto s = sized(example, random);
            if (!s) continue;
            const SizedProgram program = rounded(s->program);
            const Execution execution = execution_of(example.diagram, s->extents, s->program);
            for (const Probe probe : all_probes) {
                const Values inputs = probe_inputs(example.diagram, s->extents, probe, random());
                const auto outputs = made_by(example, program, inputs);
                ASSERT_TRUE(outputs) << example.name;
                const BoundedValues reference = evaluate_bounded(example.diagram, s->extents, inputs, execution);
                const std::string what = badness(example, s->extents, reference, *outputs);
                ++runs;
                if (what.empty()) continue;
                ++by_probe[fmt::format("{}, {}", example.name, name(probe))];
                ADD_FAILURE() << example.name << ", trial " << trial << ", " << name(probe) << ": " << what;
            }
        }
    }
    fmt::print("{} runs\n", runs);
    keep_record("right_programs", {{"runs", runs}, {"first_seed", first}, {"seeds", trials}, {"bad", by_probe}});
}

/// An example at some sizes with inputs and what it makes of them, to try faults on.
class Trial {
public:
    Trial(const DerivedExample& example, Sized sized, std::mt19937_64& random)
        : example_(example),
          sized_(std::move(sized)),
          execution_(execution_of(example.diagram, sized_.extents, sized_.program)) {
        const SizedProgram program = rounded(sized_.program);
        for (auto& [kind, values] : inputs_that_show(example, sized_.extents, random)) {
            auto reference = evaluate_bounded(example.diagram, sized_.extents, values, execution_);
            auto right = made_by(example, program, values).value();
            tried_.push_back({kind, std::move(values), std::move(reference), std::move(right)});
        }
    }
    [[nodiscard]] const SizedProgram& program() const { return sized_.program; }

    struct Found {
        std::string verdict, where;
    };
    [[nodiscard]] Found judged(const SizedProgram& fault) const {
        const SizedProgram wrong = rounded(fault);
        bool changes = false;
        for (const Tried& t : tried_) {
            const auto made = made_by(example_, wrong, t.inputs);
            if (!made) return {"bad", t.kind + ": touches what is not there"};
            if (const std::string bad = badness(example_, sized_.extents, t.reference, *made); !bad.empty())
                return {"bad", t.kind + ": " + bad};
            changes = changes || !same(*made, t.right);
        }
        // Whole numbers round nowhere on their way to an output of few bits, and others of them pick other places.
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
            const Values whole = probe_inputs(example_.diagram, sized_.extents, Probe::integers, seed);
            const auto made = made_by(example_, wrong, whole);
            if (!made) continue;
            const auto reference = evaluate_bounded(example_.diagram, sized_.extents, whole, execution_);
            if (const std::string bad = badness(example_, sized_.extents, reference, *made); !bad.empty())
                return {"bad", "integers: " + bad};
        }
        if (!changes) return {"changes nothing", ""};
        // Another reference of an exponential, say, cancels.
        const bool is_equal = std::all_of(tried_.begin(), tried_.end(), [&](const Tried& t) {
            const auto right = made_by(example_, sized_.program, t.inputs, Precision::exact),
                       made = made_by(example_, fault, t.inputs, Precision::exact);
            return right && made && equal_over_the_reals(example_, t.reference, *made, *right);
        });
        return {is_equal ? "equal over the reals" : "hidden within the bound", ""};
    }

private:
    struct Tried {
        std::string kind;
        Values inputs;
        BoundedValues reference;
        std::vector<Column> right;
    };
    const DerivedExample& example_;
    Sized sized_;
    Execution execution_;
    std::vector<Tried> tried_;
};

TEST(Faults, PlantedFaultsAreBadOrChangeNothing) {
    // What changes nothing at some sizes, as a mask that a chunk of one already keeps, may at others.
    const int rounds = from_environment("NAPKIN_FAULTS_SIZES", 2);
    std::map<std::string, int> count;
    nlohmann::json record = nlohmann::json::object();
    for (const DerivedExample& example : derived_examples()) {
        std::map<std::string, Trial::Found> found;
        std::mt19937_64 random(7);
        for (int round = 0; round < rounds; ++round) {
            // What is lost from chunk to chunk shows where there are several.
            auto s = sized(example, random);
            for (int again = 0; again < 100 && s && !s->is_cut; ++again) s = sized(example, random);
            if (!s) break;
            const Trial trial(example, std::move(*s), random);
            std::map<std::string, int> alike;
            for (const PlantedFault& fault : plant_faults(trial.program())) {
                std::string what = fmt::format("{}: {}", name(fault.kind), fault.what);
                if (const int nth = ++alike[what]; nth > 1) what += fmt::format(" ({})", nth);
                Trial::Found& known = found[what];
                if (known.verdict == "bad") continue;
                Trial::Found now = trial.judged(fault.program);
                const auto weight = [](const std::string& verdict) {
                    return verdict == "bad"                       ? 3
                           : verdict == "hidden within the bound" ? 2
                           : verdict == "equal over the reals"    ? 1
                                                                  : 0;
                };
                if (known.verdict.empty() || weight(now.verdict) > weight(known.verdict)) known = std::move(now);
            }
        }
        for (const auto& [what, f] : found) {
            ++count[f.verdict];
            record["verdicts"][example.name][what] = f.where.empty() ? f.verdict : f.verdict + ": " + f.where;
            EXPECT_NE(f.verdict, "hidden within the bound") << example.name << ", " << what;
        }
    }
    record["count"] = count;
    for (const auto& [verdict, n] : count) fmt::print("{}: {}\n", verdict, n);
    keep_record("planted_faults", record);
    EXPECT_GE(count["bad"], 200);
}

}  // namespace
}  // namespace napkin
