// The kernel program: each of its kernels is in order, and each is out of order without any one of its synchronizing
// statements.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernel_subjects.hpp"
#include "lower/lower.hpp"
#include "lower/prove.hpp"

namespace napkin::test_kernel_program {
namespace {

/// What synchronizes some kernel of the subjects.
struct Features {
    int kernels = 0, statements = 0, producers = 0, clusters = 0, queues = 0, stream_k = 0, ping_pong = 0, own_blocks = 0;
    int staging = 0, by_threads = 0, inside = 0;

    void add(const lower::KernelProgram& program) {
        ++kernels;
        producers += program.producer.has_value(), clusters += program.kernel->in_cluster();
        bool turns = false, owns = false, stages = false, copies = false;
        lower::each_statement(program.consumer.body, [&](const lower::Statement& s) {
            if (const auto* tiles = std::get_if<lower::ForTiles>(&s.kind))
                queues += tiles->order == lower::TileOrder::queue, stream_k += tiles->order == lower::TileOrder::stream_k;
            turns |= std::holds_alternative<lower::NamedBarrier>(s.kind);
            owns |= std::holds_alternative<lower::Bounds>(s.kind) && std::get<lower::Bounds>(s.kind).is_own;
            stages |= std::holds_alternative<lower::ForStaging>(s.kind);
            copies |= std::holds_alternative<lower::WaitCopies>(s.kind);
            if (const auto* map = std::get_if<lower::Map>(&s.kind)) inside += map->has_barrier_inside;
        });
        ping_pong += turns, own_blocks += owns, staging += stages, by_threads += copies;
    }
};

/// Checks a kernel, and returns the statements without which nothing is out of order.
std::vector<std::string> redundant(const ScheduledKernel& kernel, const std::string& name, Features& features) {
    const lower::KernelProgram program = lower::lowered(std::make_shared<const ScheduledKernel>(kernel));
    features.add(program);
    EXPECT_EQ(lower::fault_of(program), "") << name << '\n' << to_string(program);
    std::vector<std::string> out;
    const std::vector<lower::Deletion> all = lower::deletions(program);
    features.statements += static_cast<int>(all.size());
    for (const lower::Deletion& deletion : all)
        if (deletion.fault.empty())
            out.push_back(fmt::format("{} {}: {}", name, kernel.kernel->name, to_string(program, *deletion.statement)));
    return out;
}

TEST(KernelProgram, NeedsEachOfItsSynchronizingStatements) {
    Features features;
    std::vector<std::string> unneeded;
    kernel_subjects::for_each_kernel([&](const std::string& name, const KernelPlan& kernel) {
        for (std::string& text : redundant(kernel.scheduled, name, features)) unneeded.push_back(std::move(text));
    });
    fmt::print(
        "{} kernels, {} synchronizing statements: producers {}, clusters {}, queues {}, stream-K {}, ping-pong {}, own "
        "K "
        "blocks {}, staging {}, copies by threads {}, barriers inside {}\n",
        features.kernels, features.statements, features.producers, features.clusters, features.queues, features.stream_k,
        features.ping_pong, features.own_blocks, features.staging, features.by_threads, features.inside);
    EXPECT_THAT(unneeded, testing::IsEmpty());
    EXPECT_GE(features.kernels, 60);
    for (const int seen : {features.producers, features.clusters, features.queues, features.stream_k, features.ping_pong,
                           features.own_blocks, features.staging, features.by_threads, features.inside})
        EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace napkin::test_kernel_program
