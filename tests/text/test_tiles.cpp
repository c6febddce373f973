// docs/tiles.md: attention as napkin plans it beside the tiles of FlashAttention-3 and of kernels by hand, all by the
// simulator. NAPKIN_UPDATE_GOLDEN=1 writes its table anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "derive/derive.hpp"
#include "plan/choose.hpp"
#include "plan/prove.hpp"
#include "schedule/fragment_registers.hpp"
#include "support/numbers.hpp"
#include "support/paths.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

const std::string folder = source_dir().string();

std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string text_of(int d, bool is_causal) {
    return "attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
           "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    M[h, q, x] = " +
           std::string(is_causal ? "where(x <= q, S[h, q, x] * k^-0.5, -inf)" : "S[h, q, x] * k^-0.5") +
           "\n    P[h, q, x] = softmax(x) M[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n" +
           fmt::format("sizes h = {}, q = x = 4096, k = d = {}\n", 4 * 2048 / d, d);
}

struct Row {
    std::string whose, tile, maximum, registers;
    double clocks = 0, seconds = 0;
    std::map<std::string, double> terms;  ///< clocks of 64 rows and 64 keys
};

/// The plan as the model has it, whatever an assembler says.
Row row_of(const std::string& whose, int d, bool is_causal, const std::string& schedule) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{whose, text_of(d, is_causal)})).value();
    const Derived derived = derive(diagram).value();
    const Extents extents = bind_sizes(diagram).value();
    const Machine machine = load_machine("h200").value();
    PlanOptions options;
    const std::string path = folder + "/examples/schedules/" + schedule + ".schedule";
    if (!schedule.empty()) options.file = std::make_shared<const Source>(Source{path, read(path)});
    const auto plan = choose_plan(derived, extents, machine, {}, options);
    if (!plan) throw std::runtime_error(render(plan.errors()));
    const ScheduledKernel& k = plan->kernels.at(0).scheduled;
    const auto proofs = prove_orders(derived, extents, machine, *plan);
    if (!proofs) throw std::runtime_error(render(proofs.errors()));
    const LoopProof& proof = proofs->at(0);
    const std::int64_t rows = k.schedule.warps.value * 16;
    int stages = 0;
    for (const ModuloCopy& c : proof.loop.body.copies) stages = std::max(stages, c.stages);
    Row out{whose,
            fmt::format("{} × {}, {} stages", rows, proof.chunk, stages),
            std::string(k.rescale ? "lags" : "exact") + (proof.scheduled.order.runs_ahead() ? ", ahead" : ", in turn"),
            fmt::format("{} of {}", most_registers(k), k.unit.registers),
            0,
            plan->kernels[0].time.seconds,
            {}};
    const double tiles = static_cast<double>(rows * proof.chunk) / 4096;
    for (const UnitBound& u : proof.units) out.terms[u.unit] = u.clocks / tiles;
    out.terms["pace"] = proof.scheduled.pace / tiles;
    out.clocks = proof.scheduled.interval / tiles;
    return out;
}

std::string percent(double ratio) { return fmt::format("{:+.0f}%", 100 * (ratio - 1)); }

/// The term of the interval that is larger by most clocks, or that nothing of a turn differs by as much as the rest of
/// the time.
std::string difference(const Row& ours, const Row& row) {
    const std::pair<std::string, double> none{"", 0};
    std::pair<std::string, double> most = none;
    for (const auto& [term, clocks] : row.terms)
        if (const double more = clocks - ours.terms.at(term); std::abs(more) > std::abs(most.second))
            most = {term, more};
    const double of_turn = row.clocks / ours.clocks, of_time = row.seconds / ours.seconds;
    std::string out = fmt::format("a turn {}", percent(of_turn));
    if (std::abs(most.second) >= 0.5)
        out += fmt::format(": {} {:.0f} for {:.0f}", most.first, row.terms.at(most.first), ours.terms.at(most.first));
    if (std::abs(of_time / of_turn - 1) > 0.02) out += fmt::format("; beside turns {}", percent(of_time / of_turn));
    return out;
}

std::string table_of_tiles() {
    const std::vector<std::pair<std::string, std::string>> columns = {{"the tensor cores", "matrix"},
                                                                      {"special functions", "special"},
                                                                      {"all else that threads issue", "else"},
                                                                      {"pace", "pace"}};
    std::string out =
        "| d | mask | whose | rows × keys | maximum, products | registers | matrix | special | else | pace | turn | "
        "predicted | beside napkin's |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
    for (const int d : {64, 128, 256})
        for (const bool is_causal : {false, true}) {
            const std::string kind = d == 256 ? "" : is_causal ? "-causal" : "-dense";
            const Row ours = row_of("napkin", d, is_causal, "");
            for (const Row& row :
                 {ours, row_of("FlashAttention-3", d, is_causal, fmt::format("flash-attention-3-{}{}", d, kind)),
                  row_of("by hand", d, is_causal, fmt::format("prototype-{}", d))}) {
                out += fmt::format("| {} | {} | {} | {} | {} | {} |", d, is_causal ? "causal" : "dense", row.whose,
                                   row.tile, row.maximum, row.registers);
                for (const auto& [unit, column] : columns) out += fmt::format(" {:.0f} |", row.terms.at(unit));
                out += fmt::format(
                    " {:.0f} | {} | {} |\n", row.clocks, seconds_text(row.seconds),
                    row.whose == ours.whose ? "" : percent(row.seconds / ours.seconds) + ": " + difference(ours, row));
            }
        }
    return out;
}

TEST(Tiles, TheDocumentHasWhatTheSimulatorSaysToday) {
    const std::string path = folder + "/docs/tiles.md", begin = "<!-- tiles -->\n", end = "<!-- end of tiles -->\n";
    std::string document = read(path);
    const std::size_t from = document.find(begin), to = document.find(end);
    ASSERT_TRUE(from != std::string::npos && to != std::string::npos && from < to);
    const std::string table = table_of_tiles();
    if (std::getenv("NAPKIN_UPDATE_GOLDEN")) {
        document.replace(from + begin.size(), to - from - begin.size(), table);
        std::ofstream(path, std::ios::binary) << document;
    }
    document = read(path);
    EXPECT_EQ(document.substr(from + begin.size(), document.find(end) - from - begin.size()), table);
}

}  // namespace
}  // namespace napkin
