#include "numeric/block_on_cpu.hpp"

#include <fmt/format.h>

#include <regex>
#include <stdexcept>

#include "diagram/array_sizes.hpp"
#include "schedule/fragments.hpp"

namespace napkin::cpu_case {
namespace {

/// What kernels are compiled with, and what stands for the GPU that runs them.
constexpr const char* kernel_words =
#include "numeric/kernel_on_cpu.inc"
    ;
constexpr const char* stand_ins =
#include "numeric/block_on_cpu.inc"
#include "numeric/matrix_unit_on_cpu.inc"
    ;

constexpr std::int64_t scratch_bytes = 1 << 20;  // as kernel_on_cpu.inc has them

/// Instructions by a word of their text, and what stands for the statement.
struct StandIn {
    const char *word, *statement;
};
constexpr StandIn instructions[] = {
    {"max.NaN.f32", "c = a != a || a > b ? a : b;"},
    {"min.NaN.f32", "c = a != a || a < b ? a : b;"},
    {"cvt.f32.f16", "x = emulated::number(emulated::f16, h);"},
    {"cvt.rn.f16.f32", "h = emulated::to_f16(x);"},
    {"cvt.rn.bf16.f32", "h = emulated::to_bf16(x);"},
    {"cvt.rn.f16x2.e4m3x2",
     "halves = emulated::to_f16(emulated::number(emulated::e4m3, h & 0xff)) | "
     "emulated::to_f16(emulated::number(emulated::e4m3, h >> 8)) << 16;"},
    {"cvt.rn.satfinite.e4m3x2",
     "both = with_sign_of(x, x != x ? 0x7f : pack<3, 7>(round_narrow<3, -6>(x, 448.0f, 448.0f)));"},
    {"cvt.rn.satfinite.e5m2x2",
     "both = with_sign_of(x, x != x ? 0x7f : pack<2, 15>(round_narrow<2, -14>(x, 57344.0f, 57344.0f)));"},
    {"cvt.rn.f16x2", "both = emulated::to_f16(low) | emulated::to_f16(high) << 16;"},
    {"cvt.rn.bf16x2", "both = emulated::to_bf16(low) | emulated::to_bf16(high) << 16;"},
    {"ex2.approx", "y = exp2f(x);"},
    {"prefetch.global.L2", "static_cast<void>(*static_cast<const volatile char*>(static_cast<const void*>(at)));"},
    {"%laneid", "lane = emulated::current % 32;"},
    {"bar.sync 1,", "emulated::meet_in_block(1, num_threads());"},
    {"rcp.approx.ftz", "reciprocal = 1 / divisor;"},
    {"rcp.approx.f32", "reciprocal = 1 / b;"},
    {"mul.f32", "quotient = a * reciprocal;"},
    {"(place), \"l\"(from) :", "emulated::copy(place, from, true);"},
    {"cp.async.ca", "memcpy(emulated::at(place), from, bytes);"},
    {"cp.async.wait_all", "emulated::commit_copies(), emulated::wait_copies(0);"},
    {"cp.async.mbarrier.arrive.noinc", "emulated::arrive_with_copies(barrier);"},
    {"cp.async.cg", "emulated::copy(to, from, inside);"},
    {"cp.async.commit_group", "emulated::commit_copies();"},
    {"cp.async.wait_group", "emulated::wait_copies(behind);"},
    {"ldmatrix.sync", "emulated::load_matrices(to, from, how);"},
    {"stmatrix.sync", "emulated::store_matrices(to, from);"},
    {"st.shared.v2.f32", "const float both[2] = {a, b}; emulated::write(to, both, 8);"},
    {"mbarrier.init.shared", "emulated::init_barrier(barrier, arrivals);"},
    {"fence.mbarrier_init", ";"},
    {"mbarrier.arrive.expect_tx", "emulated::arrive(barrier, bytes);"},
    {"mbarrier.arrive.shared::cluster", "emulated::arrive_in_cluster(emulated::in_cluster(barrier, block), 0);"},
    {"mbarrier.arrive.shared", "emulated::arrive(barrier, 0);"},
    {"barrier.cluster.arrive", "emulated::cluster_sync();"},
    {"mbarrier.try_wait.parity", "emulated::wait_phase(barrier, parity);"},
    {"barrier.cta.sync", "emulated::meet_in_block(6 + warpgroup, 256);"},
    {"barrier.cta.arrive", "emulated::pass_in_block(6 + warpgroup, 256);"},
    {"setmaxnreg", ";"},
    {"im2col.mbarrier::complete_tx::bytes.multicast",
     "emulated::bring_windows_to_all(blocks, to, map, barrier, COORDINATES_##rank, OFFSETS_##rank);"},
    {"global.im2col.mbarrier", "emulated::bring_windows(to, map, barrier, COORDINATES_##rank, OFFSETS_##rank);"},
    {".multicast::cluster", "emulated::bring_box_to_all(blocks, to, map, barrier, COORDINATES_##rank);"},
    {".mbarrier::complete_tx::bytes", "emulated::bring_box(to, map, barrier, COORDINATES_##rank);"},
    {".bulk_group [%1", "emulated::store_staging(from, map, COORDINATES_##rank);"},
    {"cp.async.bulk.commit_group", "emulated::commit_boxes();"},
    {"cp.async.bulk.wait_group.read", "emulated::wait_staging(behind);"},
    {"fence.proxy.async", "emulated::publish();"},
    {"ld.acquire.gpu", "now = emulated::acquired(word);"},
    {"wgmma.fence", ";"},
    {"wgmma.commit_group", "emulated::commit_products();"},
    {"wgmma.wait_group", "emulated::wait_products(pending);"},
    {"asm volatile(\"\" :", ";"},  // what is pinned has been given to products, which the compiler does not see into
};

/// Stand-in for a wgmma: its sizes and types, and which operands run along m or n. With types of 8 bits there are no
/// flags for that and no operand does. With two flags, the last is B's. A single flag is B's, too. Only real numbers
/// have flags for signs.
std::string product_of_four_warps(const std::string& statement) {
    static const std::regex instruction(
        R"(wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)\.([fs])32\.(\w+)\.(\w+) [^;]*, p(, 1, 1)?(?:, ([01]))?(?:, ([01]))?;)");
    std::smatch found;
    if (!std::regex_search(statement, found, instruction) || found[6].matched != (found[3] == "f"))
        throw std::runtime_error("an instruction that none stands for: " + statement);
    const bool has_two = found[8].matched;
    const std::string a = has_two ? found[7].str() : "0", b = has_two            ? found[8].str()
                                                              : found[7].matched ? found[7].str()
                                                                                 : "0";
    return fmt::format("emulated::multiply_together({}, {}, emulated::{}, emulated::{}, {}, {}, d, a, b, adds);",
                       found[1].str(), found[2].str(), found[4].str(), found[5].str(), a, b);
}

/// Stand-in for an mma, of which one form has no sums so far.
std::string product_of_one_warp(const std::string& statement) {
    static const std::regex instruction(R"(mma\.sync\.aligned\.m16n8k(\d+)\.row\.col\.[fs]32\.(\w+)\.(\w+)\.)");
    std::smatch found;
    if (!std::regex_search(statement, found, instruction))
        throw std::runtime_error("an instruction that none stands for: " + statement);
    return fmt::format("emulated::multiply({}, emulated::{}, emulated::{}, d, a, b, adds);", found[1].str(),
                       found[2].str(), found[3].str());
}

/// What stands for a statement; "" where nothing does.
std::string stand_in(const std::string& statement) {
    if (statement.find("wgmma.mma_async") != std::string::npos) return product_of_four_warps(statement);
    if (statement.find("mma.sync.aligned") != std::string::npos) return product_of_one_warp(statement);
    for (const StandIn& s : instructions)
        if (statement.find(s.word) != std::string::npos) return s.statement;
    return "";
}

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
        const std::string instead = stand_in(text.substr(at, end + 2 - at));
        if (instead.empty()) continue;
        out += text.substr(done, at - done) + instead;
        done = end + 2;
    }
    return out + text.substr(done);
}

std::shared_ptr<const JitModule> compiled(const std::string& text, const JitOptions& options) {
    auto module = jit_compile(text, options);
    if (!module) throw std::runtime_error(render(module.errors()));
    return *module;
}

/// What all kernels call, compiled once: they are linked with it.
const JitModule& stand_in_for_gpu() {
    static const std::shared_ptr<const JitModule> module = [] {
        JitOptions options;
        options.optimization = "-O2";
        // a fortified longjmp takes another stack for a fault
        options.flags = {"-fno-semantic-interposition", "-U_FORTIFY_SOURCE"};
        return compiled("#define __CUDA_ARCH__ 900\n" + std::string(kernel_words) + stand_ins, options);
    }();
    return *module;
}

}  // namespace

std::shared_ptr<const JitModule> compiled_for_cpu(const cuda::CudaSource& source, int architecture) {
    std::string text = fmt::format("#define __CUDA_ARCH__ {}\n", architecture) + kernel_words +
                       without_instructions(cuda::complete(source));
    // The memory of the block that runs is one array, which has the name that kernels declare.
    static const std::regex declaration("extern __shared__ __align__\\([0-9]+\\) char shared_memory\\[\\];");
    text = std::regex_replace(text, declaration, "char* const shared_memory = emulated::own_memory();");
    std::int64_t kept = scratch_bytes / 2;
    for (const cuda::KernelEntry& entry : source.entries) {
        const std::int64_t scratch = entry.keeps_scratch ? kept : 0;
        if (scratch + entry.scratch_bytes > (entry.keeps_scratch ? scratch_bytes : scratch_bytes / 2))
            throw std::runtime_error("kernels need more scratch memory than stands in for a GPU's");
        if (entry.keeps_scratch) kept += (entry.scratch_bytes + 255) / 256 * 256;
        const std::string place = fmt::format("napkin_gpu::{}_code", entry.name);
        const auto add = [&](const std::string& name, std::int64_t blocks, int threads, int rows, std::int64_t joined) {
            text += fmt::format(
                "extern \"C\" bool run_{0}(const void* arguments, const void* maps, bool copies_late, bool "
                "results_late, "
                "bool "
                "backwards) {{\n"
                "    return emulated::run_blocks({{arguments, maps, {2}, {3}, {4}, {6}, copies_late, results_late, "
                "backwards, "
                "{5}}}, "
                "&emulated::run_thread_of<&{1}::{0}>);\n}}\n",
                name, place, blocks, threads, rows, scratch, joined);
        };
        add(entry.name, entry.blocks, entry.threads, entry.rows, entry.cluster);
        if (entry.before) add(entry.before->name, entry.before->blocks, entry.before->threads, 1, 1);
    }
    JitOptions options;
    options.optimization = "-O0";  // kernels are run once, and what takes their time is compiled already
    options.flags = {"-Wl,--no-as-needed", stand_in_for_gpu().path};  // it comes before the source that calls it
    return compiled(text, options);
}

BulkMap bulk_map(const void* array, DType type, const std::vector<std::int64_t>& sizes, const cuda::TensorMap& map) {
    if (map.box.back() * bytes(type) != operand_row_bytes)
        throw std::runtime_error(fmt::format("a box with rows of {} {} values: its swizzle takes {} bytes",
                                             map.box.back(), name(type), operand_row_bytes));
    BulkMap out;
    out.array = array, out.value_bytes = static_cast<std::int16_t>(bytes(type));
    out.rank = static_cast<std::int16_t>(sizes.size()), out.has_windows = map.windows.has_value();
    const std::vector<std::int64_t> strides = row_major_strides(sizes);
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        const std::size_t from = sizes.size() - 1 - d;
        out.sizes[d] = static_cast<std::int32_t>(sizes[from]), out.strides[d] = strides[from] * bytes(type);
        out.box[d] = static_cast<std::int32_t>(map.box[from]);
        if (!map.windows || d == 0 || from == 0) continue;
        out.lower[d - 1] = static_cast<std::int16_t>(map.windows->lower[from]);
        out.upper[d - 1] = static_cast<std::int16_t>(map.windows->upper[from]);
        out.stride[d - 1] = static_cast<std::int16_t>(map.windows->stride[from]);
    }
    return out;
}

bool run_on_cpu(const JitModule& module, const cuda::KernelEntry& entry, const std::vector<std::uint64_t>& arguments,
                Timing timing, const std::vector<BulkMap>& maps) {
    // As kernels have them.
    struct alignas(64) Whole {
        BulkMap map;
        char rest[128 - sizeof(BulkMap)];
    };
    std::vector<Whole> whole;
    for (const BulkMap& map : maps) whole.push_back({map, {}});
    using Run = bool (*)(const void*, const void*, bool, bool, bool);
    const auto run = [&](const std::string& name) {
        return reinterpret_cast<Run>(module.symbol("run_" + name))(arguments.data(), whole.data(), timing.copies_late,
                                                                   timing.results_late, timing.backwards);
    };
    return (!entry.before || run(entry.before->name)) && run(entry.name);
}

}  // namespace napkin::cpu_case
