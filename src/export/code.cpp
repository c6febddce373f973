#include "export/code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "diagram/array_sizes.hpp"
#include "export/exported_sizes.hpp"
#include "export/rules.hpp"
#include "export/runtime_texts.hpp"
#include "lower/size_formulas.hpp"
#include "run/gpu/callers_kernel.hpp"
#include "run/gpu/driver.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

std::string list_of(const std::vector<std::int64_t>& numbers) {
    return join(mapped<std::string>(numbers, [](std::int64_t n) { return std::to_string(n); }), ", ");
}

constexpr std::int64_t most_index = (std::int64_t{1} << 31) - 1;

/// The functions of one class. On a CPU they call the kernels, which stand before them.
class ClassCode : public ExportedSizes {
public:
    using ExportedSizes::ExportedSizes;

    std::string text() {
        std::string out = serves() + layout() + entry_names();
        return out + call();
    }

private:
    /// Whether the class is for these sizes: its positions have 32 bits unless it says otherwise.
    std::string serves() {
        Body body(*this);
        std::vector<std::string> conditions;
        const bool is_wide = on_gpu() == nullptr || on_gpu()->wide_index;
        std::set<AxisId> axes;
        for (const ArrayId array : used_) {
            const std::vector<Expr> all = sizes(array);
            if (as<Constant>(product(all))) continue;
            std::string values = "1.0";
            for (const Expr& size : all) values += fmt::format(" * (double){}", body.whole(size));
            conditions.push_back(fmt::format("{} <= {}", values, is_wide ? "0x1p58" : fmt::format("{}.0", most_index)));
            for (const AxisId axis : diagram_.array(array).axes) axes.insert(axis);
        }
        for (const AxisId axis : axes)
            if (!is_wide && !as<Constant>(extents_[axis]))
                conditions.push_back(fmt::format("{} <= {}", body.whole(extents_[axis]), most_index / 2));
        // Tiles are counted once the arrays are known not to be too large.
        body.add(fmt::format("if (!({})) return 0;", conditions.empty() ? "1" : join(conditions, " && ")));
        std::vector<std::string> counts;
        each_entry([&](const auto& entry) {
            if (!is_wide && !as<Constant>(entry.formulas.groups))
                counts.push_back(fmt::format("{} <= {}", body.whole(entry.formulas.groups), most_index / 2));
        });
        body.add(fmt::format("return {};", counts.empty() ? "1" : join(counts, " && ")));
        return function("int", name("serves"), parameters(""), body.lines);
    }

    /// Where the workspace has what, and how many bytes it has.
    std::string layout() {
        Body body(*this);
        body.add("int64_t used = 0;");
        const auto take = [&](int part, const Expr& formula) {
            body.add(fmt::format("at[{}] = take(&used, {});", part, body.whole(formula)));
        };
        for (const auto& [array, place] : places_)
            if (place.offset >= 0) take(place.offset, bytes_of(array));
        if (const auto* code = on_gpu()) {
            Expr shared = integer_constant(0);
            for (const cuda::KernelEntry& entry : code->entries)
                if (!entry.keeps_scratch)
                    shared = lower::whole_formula(BinaryOp::max, shared, entry.formulas.scratch_bytes);
            const int part = num_parts_++;
            take(part, shared);
            for (const cuda::KernelEntry& entry : code->entries) {
                scratch_.push_back(entry.keeps_scratch ? num_parts_++ : part);
                if (entry.keeps_scratch) take(scratch_.back(), entry.formulas.scratch_bytes);
            }
        } else {
            std::int64_t arena = 0;
            for (const cpu::KernelEntry& entry : std::get<cpu::CpuSource>(source_).entries)
                arena = std::max(arena, entry.arena_bytes);
            constexpr std::int64_t line = 64;
            arena_bytes_ = (arena + line - 1) / line * line;
            scratch_.push_back(num_parts_++);
            take(scratch_.front(), integer_constant(arena_bytes_ * made_.plan.threads()));
        }
        body.add("return used;");
        return function("int64_t", name("layout"), parameters("int64_t* at"), body.lines);
    }

    /// A GPU's kernels by name, and a CPU's declared.
    [[nodiscard]] std::string entry_names() const {
        std::string out;
        const auto* code = on_gpu();
        if (!code) return out;
        int count = 0;
        const auto add = [&](const std::string& kernel, std::int64_t shared) {
            out += fmt::format("    {{\"{}\", {}}},\n", kernel, shared), ++count;
        };
        for (const cuda::KernelEntry& entry : code->entries) {
            add(entry.name, entry.shared_bytes);
            if (entry.before) add(entry.before->name, 0);
        }
        return fmt::format(
            "static const struct kernel {0}[] = {{\n{1}}};\nstatic const struct code {2} = {{{3}, {0}, {4}}};\n",
            name("kernels"), out, name("code"), name("cubin"), count);
    }

    /// Sizes and strides of every array that a kernel has.
    void declare_arrays(Body& body) {
        const std::vector<ArrayRule> rules = array_rules(made_);
        const Diagram& callers = made_.diagram;
        std::vector<ArrayId> of_callers = callers.inputs;
        append(of_callers, callers.outputs);
        for (const ArrayId array : used_) {
            const std::vector<Expr> all = sizes(array);
            const std::size_t rank = all.size();
            body.add(fmt::format("const int64_t sizes_{}_[] = {{{}}}, dense_{}_[] = {{{}}};", at(array), body.list(all),
                                 at(array), body.list(dense(all))));
            body.add(fmt::format("(void)sizes_{}_;", at(array)));
            const Place& place = places_.at(array);
            std::string strides = fmt::format("dense_{}_", at(array));
            if (place.given >= 0) {
                const auto i = static_cast<std::size_t>(place.given);
                const std::string given = fmt::format("given[{}]", i);
                const std::vector<AxisId>& own = callers.array(of_callers[i]).axes;
                if (own.size() == rank) {
                    static constexpr const char* names[] = {"rule_any", "rule_last_is_one", "rule_row_major"};
                    body.add(
                        fmt::format("if (!are_taken({0}, sizes_{1}_, dense_{1}_, {2}, {3})) return status_bad_strides;",
                                    rank, at(array), given, names[static_cast<std::size_t>(rules[i].strides)]));
                    strides = fmt::format(
                        "{0} == NULL || are_row_major({1}, sizes_{2}_, dense_{2}_, {0}) ? dense_{2}_ : {0}", given,
                        rank, at(array));
                } else {
                    std::vector<Expr> theirs;
                    for (const AxisId axis : own)
                        theirs.push_back(extents_[*diagram_.find_axis(callers.axis(axis).name)]);
                    body.add(fmt::format("const int64_t whole_{0}_[] = {{{1}}}, rows_{0}_[] = {{{2}}};", at(array),
                                         body.list(theirs), body.list(dense(theirs))));
                    body.add(fmt::format(
                        "if (!are_taken({}, whole_{}_, rows_{}_, {}, rule_row_major)) return status_bad_strides;",
                        own.size(), at(array), at(array), given));
                }
            }
            body.add(fmt::format("const int64_t* const strides_{}_ = {};", at(array), strides));
        }
    }

    /// The strides of an entry's arrays, then its numbers.
    template <class Entry>
    std::string strides_and_numbers(Body& body, const Entry& entry, const char* type) {
        std::vector<std::string> out;
        for (const auto* list : {&entry.inputs, &entry.outputs})
            for (const ArrayId array : *list)
                for (std::size_t d = 0; d < diagram_.array(array).axes.size(); ++d)
                    out.push_back(fmt::format("({})strides_{}_[{}]", type, at(array), d));
        for (const lower::LaunchNumber& number : entry.formulas.numbers)
            out.push_back(fmt::format("({}){}", type, body.formulas.bits(number)));
        return out.empty() ? "0" : join(out, ", ");
    }

    std::string call() {
        Body body(*this);
        body.add(fmt::format("int64_t at[{}];", std::max(num_parts_, 1)));
        body.add(fmt::format("{}({}at);", name("layout"), names_.sizes.empty() ? "" : join(names_.sizes, ", ") + ", "));
        declare_arrays(body);
        if (const auto* code = on_gpu()) {
            body.add("void* const* functions = NULL;");
            body.add("int status = functions_of(&" + name("code") + ", &functions);");
            body.add("if (status != status_ok) return status;");
            int function = 0;
            for (std::size_t k = 0; k < code->entries.size(); ++k)
                launch(body, code->entries[k], scratch_[k], function);
            body.add("return status_ok;");
        } else {
            const int threads = made_.plan.threads();
            body.add(fmt::format("char* const arenas = (char*)(uintptr_t)(workspace + (uint64_t)at[{}]);",
                                 scratch_.front()));
            body.add("const std::lock_guard one_at_a_time(calls);");
            body.add(fmt::format("memset(arenas, 0, {});", arena_bytes_ * threads));
            body.add(fmt::format("Workers& workers = Workers::of({});", threads));
            body.add("(void)stream;");
            for (const cpu::KernelEntry& entry : std::get<cpu::CpuSource>(source_).entries) run(body, entry, threads);
            body.add("return status_ok;");
        }
        return function(
            "int", name("call"),
            parameters("const uint64_t* addresses, const int64_t* const* given, uint64_t workspace, void* stream"),
            body.lines);
    }

    void launch(Body& body, const cuda::KernelEntry& entry, int scratch, int& function) {
        const std::string blocks = body.whole(entry.formulas.blocks),
                          numbers = strides_and_numbers(body, entry, "uint64_t"),
                          before = entry.formulas.before_blocks ? body.whole(entry.formulas.before_blocks) : "";
        const std::string kept = entry.keeps_scratch ? body.whole(entry.formulas.scratch_bytes) : "";
        const auto pointers = [&](const std::vector<ArrayId>& arrays) {
            if (arrays.empty()) return std::string("0");
            return join(mapped<std::string>(arrays, [&](ArrayId array) { return address(array); }), ", ");
        };
        body.add("{");
        body.add(fmt::format("    uint64_t parameters[] = {{{}, {}, {}}};", pointers(entry.inputs),
                             pointers(entry.outputs), numbers));
        body.add(fmt::format("    uint64_t scratch = workspace + (uint64_t)at[{}];", scratch));
        body.add(fmt::format("    void* arguments[] = {{parameters, &scratch{}}};", entry.maps.empty() ? "" : ", NULL"));
        if (!entry.maps.empty()) {
            body.add(fmt::format("    struct map maps[{}];", entry.maps.size()));
            for (std::size_t m = 0; m < entry.maps.size(); ++m) {
                const cuda::TensorMap& map = entry.maps[m];
                const std::int64_t width = bytes(diagram_.array(map.array).type);
                body.add(fmt::format("    static const uint32_t box_{}[] = {{{}}};", m, list_of(map.box)));
                body.add(fmt::format("    if (!are_mapped({}, strides_{}_, {})) return status_bad_strides;",
                                     map.box.size(), at(map.array), width));
                std::string windows = "NULL";
                if (map.windows) {
                    windows = fmt::format("&windows_{}", m);
                    body.add(fmt::format("    static const struct windows windows_{} = {{{{{}}}, {{{}}}, {{{}}}}};", m,
                                         list_of(map.windows->lower), list_of(map.windows->upper),
                                         list_of(map.windows->stride)));
                }
                body.add(fmt::format(
                    "    status = encode(&maps[{0}], {1}, {2}, {3}, sizes_{4}_, strides_{4}_, box_{0}, {5});", m,
                    address(map.array), width, map.box.size(), at(map.array), windows));
                body.add("    if (status != status_ok) return status;");
            }
            body.add("    arguments[2] = maps;");
        }
        if (!kept.empty()) {
            body.add(fmt::format("    status = clear(scratch, {}, stream);", kept));
            body.add("    if (status != status_ok) return status;");
        }
        const int own = function++;
        if (entry.before) {
            body.add(fmt::format("    status = launch(functions[{}], {}, {}, 1, 0, stream, arguments);", function++,
                                 before, entry.before->threads));
            body.add("    if (status != status_ok) return status;");
        }
        body.add(fmt::format("    status = launch(functions[{}], most({}, 1), {}, {}, {}, stream, arguments);", own,
                             blocks, entry.threads, entry.rows, entry.shared_bytes));
        body.add("    if (status != status_ok) return status;");
        body.add("}");
    }

    void run(Body& body, const cpu::KernelEntry& entry, int threads) {
        const std::string groups = body.whole(entry.formulas.groups),
                          numbers = strides_and_numbers(body, entry, "int64_t");
        const auto pointers = [&](const std::vector<ArrayId>& arrays) {
            if (arrays.empty()) return std::string("NULL");
            return join(
                mapped<std::string>(arrays, [&](ArrayId array) { return "(void*)(uintptr_t)(" + address(array) + ")"; }),
                ", ");
        };
        body.add("{");
        body.add(fmt::format("    const void* const inputs[] = {{{}}};", pointers(entry.inputs)));
        body.add(fmt::format("    void* const outputs[] = {{{}}};", pointers(entry.outputs)));
        body.add(fmt::format("    const int64_t numbers[] = {{{}}};", numbers));
        body.add(fmt::format("    workers.deal({}, {}, [&](int worker, int64_t begin, int64_t end) {{", groups, threads));
        // Kernels stand in namespaces of their own.
        body.add(
            fmt::format("        napkin_cpu::{0}_code::{0}(inputs, outputs, numbers, begin, end, arenas + worker * "
                        "int64_t{{{1}}});",
                        entry.name, arena_bytes_));
        body.add("    });");
        body.add("}");
    }

    std::vector<int> scratch_;  ///< of the workspace's parts, by entry; on a CPU that of all threads
    std::int64_t arena_bytes_ = 0;
};

std::string bytes_text(const std::string& name, const std::string& cubin) {
    std::string out = fmt::format("static const _Alignas(64) unsigned char {}[] = {{", name);
    constexpr std::size_t bytes_a_line = 32;
    for (std::size_t i = 0; i < cubin.size(); ++i)
        out += fmt::format("{}{},", i % bytes_a_line == 0 ? "\n    " : "", static_cast<unsigned char>(cubin[i]));
    return out + "\n};\n";
}

/// The numbers that the runtime's text has names for.
std::string constants(const ExportedNames& names, bool on_gpu) {
    std::string out = "enum {\n";
    for (const char* const status :
         {"ok", "bad_size", "null", "bad_strides", "misaligned", "no_workspace", "no_driver", "no_context", "failed"})
        out += fmt::format("    status_{1} = {0}_{1},\n", names.program, status);
    for (const auto& [name, value] : {std::pair("rule_any", static_cast<int>(StrideRule::any)),
                                      {"rule_last_is_one", static_cast<int>(StrideRule::last_is_one)},
                                      {"rule_row_major", static_cast<int>(StrideRule::row_major)},
                                      {"workspace_alignment", static_cast<int>(gpu::workspace_alignment)},
                                      {"map_stride_bytes", static_cast<int>(gpu::map_stride_bytes)}})
        out += fmt::format("    {} = {},\n", name, value);
    for (const auto& [name, value] : {std::pair("array_alignment", static_cast<int>(gpu::array_alignment)),
                                      {"max_dynamic_shared_size", gpu::max_dynamic_shared_size},
                                      {"no_interleave", gpu::no_interleave},
                                      {"swizzle_128", gpu::swizzle_128},
                                      {"promote_128", gpu::promote_128},
                                      {"promote_256", gpu::promote_256},
                                      {"zeros_outside", gpu::zeros_outside},
                                      {"sector_bytes", static_cast<int>(gpu::sector_bytes)}})
        if (on_gpu) out += fmt::format("    {} = {},\n", name, value);
    return out + fmt::format("}};\n#define most_map_stride_bytes INT64_C({})\n\n", gpu::most_map_stride_bytes);
}

/// The public functions.
std::string public_functions(const ExportedProgram& program, const ExportedNames& names, bool on_gpu) {
    const std::string& p = names.program;
    const char* const is_public = on_gpu ? "" : "__attribute__((visibility(\"default\"))) ";
    std::vector<std::string> sizes, parameters, addresses, strides;
    for (const std::string& size : names.sizes) sizes.push_back("int64_t " + size);
    const std::size_t inputs = program.first().diagram.inputs.size();
    for (std::size_t i = 0; i < names.arrays.size(); ++i) {
        parameters.push_back(fmt::format("{}void* {}, const int64_t* {}_strides", i < inputs ? "const " : "",
                                         names.arrays[i], names.arrays[i]));
        addresses.push_back("(uint64_t)(uintptr_t)" + names.arrays[i]);
        strides.push_back(names.arrays[i] + "_strides");
    }
    std::vector<std::string> all = sizes;
    append(all, parameters);
    // The class of a call, or none.
    std::string length = "1", checked, in_class, workspaces, calls;
    for (const std::string& size : names.sizes) {
        length = length == "1" ? size : fmt::format("most({}, {})", length, size);
        checked += fmt::format("    if ({0} < 1 || {0} > {1}) return -1;\n", size, program.classes.back().to);
    }
    const std::string of = join(names.sizes, ", "), first = of.empty() ? "" : of + ", ";
    for (std::size_t k = 0; k < program.classes.size(); ++k) {
        const std::size_t own = class_of_code(program, k);
        in_class += fmt::format("    if (length <= {0}) return length >= {3} && class_{1}_serves({2}) ? {1} : -1;\n",
                                program.classes[k].to, own, of, program.classes[k].from);
        if (own != k) continue;
        workspaces += fmt::format("        case {0}: return class_{0}_layout({1}at);\n", k, first);
        calls += fmt::format(
            "        case {0}: return class_{0}_call({1}addresses, given, (uint64_t)(uintptr_t)workspace, stream);\n",
            k, first);
    }
    std::string out = fmt::format(
        "static int class_of({}) {{\n    const int64_t length = {};\n{}{}    return -1;\n}}\n",
        sizes.empty() ? "void" : join(sizes, ", "), length, checked, in_class);
    out += fmt::format(
        "\n{}int64_t {}_workspace_bytes({}) {{\n    int64_t at[most_parts];\n    switch (class_of({})) {{\n{}"
        "        default: return -1;\n    }}\n}}\n",
        is_public, p, sizes.empty() ? "void" : join(sizes, ", "), of, workspaces);
    out += fmt::format(
        R"(
{}int {}_run({}, void* workspace, void* stream) {{
    const uint64_t addresses[] = {{{}}};
    const int64_t* const given[] = {{{}}};
    const int64_t needed = {}_workspace_bytes({});
    if (needed < 0) return status_bad_size;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; ++i) {{
        if (addresses[i] == 0) return status_null;
{}    }}
    if (needed > 0 && workspace == NULL) return status_no_workspace;
    if ((uintptr_t)workspace % workspace_alignment != 0) return status_misaligned;
    switch (class_of({})) {{
{}        default: return status_bad_size;
    }}
}}
)",
        is_public, p, join(all, ", "), join(addresses, ", "), join(strides, ", "), p, of,
        on_gpu ? "        if (addresses[i] % array_alignment != 0) return status_misaligned;\n" : "", of, calls);
    out += fmt::format(R"(
{}const char* {}_message(int status) {{
    switch (status) {{
        case status_ok: return "it has run, or is launched";
        case status_bad_size: return "no kernels are for these sizes";
        case status_null: return "a pointer to an array is NULL";
        case status_bad_strides: return "kernels do not take an array with these strides";
        case status_misaligned: return "an array or the workspace begins at no multiple of its alignment";
        case status_no_workspace: return "memory is needed, and the workspace is NULL";
        case status_no_driver: return "CUDA's driver is not found, or is older than CUDA 12";
        case status_no_context: return "the thread has no context of CUDA";
        case status_failed: return {};
        default: return "no status";
    }}
}}
)",
                       is_public, p, on_gpu ? "words" : "\"a call has failed\"");
    return out;
}

}  // namespace

std::size_t class_of_code(const ExportedProgram& program, std::size_t index) {
    const std::string text = complete(program.classes[index].made.code);
    return static_cast<std::size_t>(
        find_if(program.classes, [&](const ExportedClass& one) { return complete(one.made.code) == text; }) -
        program.classes.begin());
}

KernelSource class_source(const ExportedProgram& program, std::size_t index) {
    const Compilation& made = program.classes[index].made;
    const std::string prefix = fmt::format("napkin_{}_", index);
    if (const auto* code = std::get_if<cuda::CudaSource>(&made.code)) {
        cuda::CudaSource out = cuda::emit(made.lowered, prefix);
        out.wide_index = code->wide_index;
        return out;
    }
    return cpu::emit(made.lowered, prefix);
}

Result<std::string> exported_code(const ExportedProgram& program, const std::vector<std::string>& cubins) {
    const ExportedNames names = exported_names(program);
    const bool on_gpu = program.first().machine.kind == MachineKind::gpu;
    std::string classes;
    int most_parts = 1;
    std::vector<KernelSource> sources;
    std::string kernels;
    for (std::size_t k = 0; k < program.classes.size(); ++k) {
        if (class_of_code(program, k) != k) continue;
        sources.push_back(class_source(program, k));
        ClassCode code(program, names, k, sources.back());
        if (const Status can = code.can_be_written(); !can) return can.errors();
        if (on_gpu)
            classes += bytes_text(code.name("cubin"), cubins.at(k));
        else
            kernels += kernels_of(sources.back()) + "\n";
        classes += code.text() + "\n";
        most_parts = std::max(most_parts, code.num_parts());
    }
    std::string out = fmt::format("/* {}, exported by napkin for the machine {}. */\n", names.program,
                                  program.first().machine.name);
    if (on_gpu) {
        out += "#define _POSIX_C_SOURCE 200809L\n";
        for (const char* const header :
             {"dlfcn.h", "math.h", "pthread.h", "stdint.h", "stdio.h", "stdlib.h", "string.h"})
            out += fmt::format("#include <{}>\n", header);
    } else {
        auto whole = std::get<cpu::CpuSource>(sources.front());
        whole.text = std::move(kernels);
        out += cpu::complete(whole) + "\n";
        for (const char* const header : {"atomic", "condition_variable", "functional", "mutex", "thread", "vector",
                                         "math.h", "stdint.h", "string.h"})
            out += fmt::format("#include <{}>\n", header);
    }
    out += fmt::format("\n#include \"{}.h\"\n\n", names.program) + constants(names, on_gpu);
    if (!on_gpu) out += "namespace {\n\n";
    out += std::string(shared_runtime()) + "\n" + std::string(on_gpu ? gpu_runtime() : cpu_runtime());
    out += fmt::format("\nenum {{ most_parts = {} }};\n\n", most_parts) + classes;
    if (!on_gpu) out += "}  // namespace\n\n";
    return out + public_functions(program, names, on_gpu);
}

}  // namespace napkin
