// Kernels whose last groups are cut along their stream, run on the CPU against their definition, whichever of two
// blocks comes first.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "numeric/planned_on_cpu.hpp"
#include "schedule/stream_k.hpp"

namespace napkin::test_cut_groups_numbers {
namespace {

using cpu_case::Planned;
using cpu_case::Timing;

Planned on_hopper(const std::string& text, const std::string& schedule, const std::string& prefix = "k") {
    return cpu_case::planned(text, schedule, load_machine("h200").value(), prefix);
}
std::string cut(int threads, int chunk = 16, const std::string& axis = "x", int warps = 4) {
    return fmt::format("warps {}\nrole copies 4\nstream {} = {}\ngroups cut\nthreads {}\n", warps, axis, chunk, threads);
}

/// Attention of logits that are made of S[h, q, x], k being 32; ragged along q and x as the sizes say.
std::string attention(const std::string& type, const std::string& sizes,
                      const std::string& logits = "S[h, q, x] * k^-0.5") {
    return fmt::format(
        "f(Q[h, q, k]: {0}, K[h, x, k]: {0}, V[h, x, d]: {0}) -> O[h, q, d]: {0}\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    A[h, q, x] = {1}\n"
        "    P[h, q, x] = softmax(x) A[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes k = 32, {2}\n",
        type, logits, sizes);
}

const StreamK& cut_of(const Planned& p) {
    static std::vector<StreamK> kept;
    const auto found = chosen_stream_k(p.plan.kernels.front().scheduled);
    if (!found) throw std::runtime_error("no groups are cut");
    return kept.emplace_back(*found);
}

std::vector<std::string> bytes_of(const std::vector<Tensor>& tensors) {
    std::vector<std::string> out;
    for (const Tensor& t : tensors)
        out.emplace_back(static_cast<const char*>(t.data()), static_cast<std::size_t>(t.size_bytes()));
    return out;
}

/// Every block begins and ends what it should, whoever comes first, and all launches make the same bits.
void expect_right(const std::vector<Planned>& all, const std::vector<Probe>& probes) {
    const auto module = cpu_case::compiled_for_cpu(cpu_case::in_one_source(all));
    const auto count = [&](const char* which) { return reinterpret_cast<long (*)()>(module->symbol(which))(); };
    for (const Planned& p : all) {
        const std::string& name = p.source.entries.front().name;
        EXPECT_TRUE(p.source.entries.front().keeps_scratch) << name;
        ASSERT_GT(cut_of(p).num_split_tiles(), 0) << name;
        // Each case meets all probes, and one of them, another in each case, in either order of its blocks and in a
        // second launch. The others are compared with the definition in one order, and meet the other one.
        const std::size_t thrice = static_cast<std::size_t>(&p - all.data()) % probes.size();
        for (std::size_t n = 0; n < probes.size(); ++n) {
            const cpu_case::Reference reference = reference_of(p, probes[n]);
            std::vector<std::string> first;
            const std::vector<bool> orders = n == thrice ? std::vector<bool>{false, true, false} : std::vector<bool>{true};
            for (const bool late : orders) {
                Timing timing;
                timing.copies_late = timing.results_late = timing.backwards = late;
                const long left = count("emulated_values_left"), taken = count("emulated_values_taken");
                const auto outputs = outputs_of(p, reference, *module, timing);
                ASSERT_TRUE(outputs.has_value()) << name;
                EXPECT_EQ(count("emulated_values_left") - left, stream_k_values(p.plan.kernels.front().scheduled, cut_of(p)))
                    << name;
                EXPECT_EQ(count("emulated_values_taken") - taken, stream_k_values(p.plan.kernels.front().scheduled, cut_of(p)))
                    << name;
                if (first.empty()) first = bytes_of(*outputs);
                EXPECT_TRUE(first == bytes_of(*outputs)) << name << ": the bits depend on which block comes first";
            }
            EXPECT_EQ(fault_of(p, reference, *module, {}), "") << name << ", " << napkin::name(probes[n]);
        }
    }
}

/// Maxima that stay, that move, of one part alone, of masked rows, and none.
const std::vector<Probe> some_probes{Probe::normal, Probe::growing, Probe::one_key, Probe::masked, Probe::infinite};

TEST(StreamK, OfAttentionAreRight) {
    expect_right(
        {
            on_hopper(attention("f16", "h = 3, q = 150, x = 136, d = 24"), "mma_m q\n" + cut(2), "a"),
            on_hopper(attention("bf16", "h = 5, q = 113, x = 203, d = 16"), "mma_m q\n" + cut(3), "b"),
            // Fewer groups than two rounds: every group but the first may be cut.
            on_hopper(attention("f16", "h = 5, q = 64, x = 80, d = 40"), "mma_m q\n" + cut(4), "c"),
            on_hopper(attention("bf16", "h = 7, q = 200, x = 100, d = 16"), "mma_m q\n" + cut(3, 16, "x", 8), "d"),
            on_hopper(attention("f16", "h = 3, q = 150, x = 136, d = 24"), "mma_m q\nmaximum exact\n" + cut(2), "e"),
            // Logits that rise and fall by more than the exponentials' range, so that one part's states count for
            // nothing.
            on_hopper(attention("f16", "h = 3, q = 64, x = 112, d = 16", "S[h, q, x] * 64"), "mma_m q\n" + cut(2), "g"),
        },
        some_probes);
}

TEST(StreamK, OfSeveralOutputsAreRight) {
    expect_right(
        {on_hopper("f(Q[h, q, k]: f16, K[h, x, k]: f16, V[h, x, d]: f16) -> O[h, q, d]: f16, L[h, q]: f32\n"
                   "    S[h, q, x] = k^-0.5 * sum(k) Q[h, q, k] * K[h, x, k]\n"
                   "    P[h, q, x] = softmax(x) S[h, q, x]\n    L[h, q] = logsumexp(x) S[h, q, x]\n"
                   "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes h = 3, q = 100, x = 90, k = 32, d = 16\n",
                   "mma_m q\n" + cut(4), "a")},
        some_probes);
}

TEST(StreamK, OfFoldsThatOnlyAddAreRight) {
    expect_right(
        {
            on_hopper("f(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n"
                      "sizes m = 300, n = 96, k = 400\n",
                      "mma_m m\ngroup n = 48\n" + cut(4, 64, "k"), "a"),
            on_hopper("f(A[m, k]: bf16, B[n, k]: bf16, b[n]: bf16) -> C[m, n]: bf16\n"
                      "    C[m, n] = gelu((sum(k) A[m, k] * B[n, k]) + b[n])\nsizes m = 200, n = 80, k = 248\n",
                      "mma_m m\ngroup n = 40\n" + cut(3, 64, "k"), "b"),
            // Two running products.
            on_hopper("f(A[m, k]: bf16, B[n, k]: bf16, G[n, k]: bf16) -> C[m, n]: bf16\n"
                      "    C[m, n] = silu(sum(k) A[m, k] * B[n, k]) * (sum(k) A[m, k] * G[n, k])\nsizes m = 300, n = "
                      "64, k = 320\n",
                      "mma_m m\ngroup n = 32\n" + cut(4, 64, "k"), "c"),
        },
        {Probe::normal});
}

// Nobody sees what a warp leaves behind no fence. A part that counts twice is seen. A flag that is not reset tells the
// next launch that a part has arrived. States that refer to different maxima are not added up as they are.
TEST(StreamK, FaultsAreSeen) {
    const Planned p = on_hopper(attention("f16", "h = 3, q = 150, x = 136, d = 24"), "mma_m q\n" + cut(2));
    const cpu_case::Reference reference = reference_of(p);
    const auto outcomes = [&](const std::string& a, const std::string& b) {
        Planned faulty = p;
        bool found = false;
        for (std::size_t at = 0; (at = faulty.source.text.find(a, at)) != std::string::npos; at += b.size())
            faulty.source.text.replace(at, a.size(), b), found = true;
        if (!found) throw std::runtime_error("nothing to replace: " + a);
        const auto module = cpu_case::compiled_for_cpu(faulty.source);
        std::vector<std::string> out;
        std::vector<std::string> first;
        bool same = true;
        for (const bool late : {false, true}) {
            Timing timing;
            timing.copies_late = timing.results_late = timing.backwards = late;
            out.push_back(fault_of(faulty, reference, *module, timing));
            const auto outputs = outputs_of(faulty, reference, *module, timing);
            if (!outputs) continue;
            if (first.empty()) first = bytes_of(*outputs);
            same &= first == bytes_of(*outputs);
        }
        out.emplace_back(same ? "the same bits" : "other bits");
        return out;
    };
    EXPECT_EQ(outcomes("publish_partial(word_)", "publish_partial(word_)"),
              (std::vector<std::string>{"", "", "the same bits"}));
    const auto unfenced = outcomes("publish_partial(word_)",
                                   "__syncwarp(); if (lane_of_thread() == 0) atomicAdd(word_, 2u)");
    EXPECT_NE(unfenced[1], "");
    const auto unsaid = outcomes("publish_partial(word_)", "__threadfence()");
    EXPECT_THAT(unsaid[0], testing::HasSubstr("for ever"));
    const auto left = outcomes("wait_partial(word_);", "wait_partial(word_); if (lane_of_thread() == 0) *word_ = 1;");
    EXPECT_NE(left[1], "");
    EXPECT_NE(outcomes("const float other_ = ", "const float other_ = 2 * ")[0], "");
    const auto uncorrected = outcomes("P_M_other_[r_] - ", "P_M_own_[r_] - ");
    EXPECT_NE(uncorrected[0], "");
    const auto short_share = outcomes("StreamKSchedule{unsigned(2), unsigned(3), unsigned(3), unsigned(9), 16}",
                                      "StreamKSchedule{unsigned(2), unsigned(3), unsigned(3), unsigned(8), 16}");
    EXPECT_NE(short_share[0], "");
}

}  // namespace
}  // namespace napkin::test_cut_groups_numbers
