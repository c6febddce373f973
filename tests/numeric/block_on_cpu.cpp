#include "numeric/block_on_cpu.hpp"

#include <fmt/format.h>

#include <regex>
#include <stdexcept>

namespace napkin::cpu_case {
namespace {

constexpr const char* stand_ins =
#include "numeric/block_on_cpu.inc"
    ;

/// Instructions by a word of their text, and what stands for the statement.
struct StandIn {
    const char *word, *statement;
};
constexpr StandIn instructions[] = {
    {"max.NaN.f32", "c = a != a || a > b ? a : b;"},
    {"min.NaN.f32", "c = a != a || a < b ? a : b;"},
    {"cvt.f32.f16", "x = emulated::number(\"f16\", h);"},
    {"cvt.rn.f16.f32", "h = emulated::to_f16(x);"},
    {"cvt.rn.bf16.f32", "h = emulated::to_bf16(x);"},
    {"cvt.rn.f16x2", "both = emulated::to_f16(low) | emulated::to_f16(high) << 16;"},
    {"cvt.rn.bf16x2", "both = emulated::to_bf16(low) | emulated::to_bf16(high) << 16;"},
    {"ex2.approx", "y = exp2f(x);"},
    {"%laneid", "lane = emulated::current % 32;"},
    {"bar.sync", "__syncthreads();"},
    {"rcp.approx", "reciprocal = 1 / divisor;"},
    {"(place), \"l\"(from) :", "emulated::copy(place, from, true);"},
    {"cp.async.ca", "memcpy(emulated::in_memory(place), from, bytes);"},
    {"cp.async.wait_all", "emulated::commit(), emulated::wait(0);"},
    {"cp.async.cg", "emulated::copy(to, from, inside);"},
    {"cp.async.commit_group", "emulated::commit();"},
    {"cp.async.wait_group", "emulated::wait(behind);"},
    {"ldmatrix.sync", "emulated::load_matrices(to, from, how);"},
    {"stmatrix.sync", "emulated::store_matrices(to, from);"},
    {"st.shared.v2.f32", "const float both[2] = {a, b}; memcpy(emulated::in_memory(to), both, 8);"},
    {"mma.sync.aligned", "emulated::multiply(#shape, #type, d, a, b);"},
};

/// The text with C++ in place of the instructions that stand_ins has.
std::string without_instructions(const std::string& text) {
    std::string out;
    std::size_t done = 0;
    for (std::size_t at = text.find("asm"); at != std::string::npos; at = text.find("asm", at + 1)) {
        const std::size_t open = text.find('(', at);
        const std::string between = text.substr(at + 3, open - at - 3);
        if (between != "" && between != " volatile") continue;
        int depth = 0;
        bool quoted = false;
        std::size_t end = open;
        for (; end < text.size(); ++end) {
            if (text[end] == '"') quoted = !quoted;
            if (!quoted) depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
            if (depth == 0) break;
        }
        const std::string statement = text.substr(at, end + 2 - at);
        for (const StandIn& s : instructions) {
            if (statement.find(s.word) == std::string::npos) continue;
            out += text.substr(done, at - done) + s.statement;
            done = end + 2;
            break;
        }
    }
    return out + text.substr(done);
}

}  // namespace

std::shared_ptr<const JitModule> compiled_for_cpu(const cuda::CudaSource& source) {
    std::string text = stand_ins + without_instructions(cuda::complete(source));
    // The memory of the block that runs is one array, which has the name that kernels declare.
    static const std::regex declaration("extern __shared__ __align__\\([0-9]+\\) char shared_memory\\[\\];");
    text = std::regex_replace(text, declaration, "char* const shared_memory = emulated::memory;");
    for (const cuda::KernelEntry& entry : source.entries) {
        if (!entry.maps.empty()) throw std::runtime_error("a kernel has bulk copies: " + entry.name);
        const std::string place = fmt::format("napkin_gpu::{}_code", entry.name);
        text += fmt::format(
            "extern \"C\" bool run_{0}(const void* arguments, bool late, bool backwards) {{\n"
            "    return run_grid(&{1}::{0}, arguments, {2}, {3}, late, backwards);\n}}\n",
            entry.name, place, entry.blocks, entry.threads);
    }
    JitOptions options;
    options.optimization = "-O1";
    options.flags = {"-w"};
    auto module = jit_compile(text, options);
    if (!module) throw std::runtime_error(render(module.errors()));
    return *module;
}

bool run_on_cpu(const JitModule& module, const cuda::KernelEntry& entry, const std::vector<std::uint64_t>& arguments,
                Timing timing) {
    using Run = bool (*)(const void*, bool, bool);
    return reinterpret_cast<Run>(module.symbol("run_" + entry.name))(arguments.data(), timing.copies_late, timing.backwards);
}

}  // namespace napkin::cpu_case
