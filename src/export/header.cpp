// The header of an exported program, and its names.
#include <fmt/format.h>

#include <algorithm>

#include "emit/emit_text.hpp"
#include "export/code.hpp"
#include "export/rules.hpp"
#include "export/runtime_texts.hpp"
#include "run/gpu/callers_kernel.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

std::string rule_text(const ArrayRule& rule) {
    if (rule.strides == StrideRule::any) return "any strides";
    if (rule.strides == StrideRule::row_major)
        return rule.has_map ? "row-major, rows are multiples of 16 bytes" : "row-major";
    return rule.has_map ? "the last stride is 1, the others are multiples of 16 bytes" : "the last stride is 1";
}

/// What is said of arrays: name, sizes, type and strides, in columns.
std::string arrays_text(const ExportedProgram& program, const ExportedNames& names) {
    const Compilation& first = program.first();
    const Diagram& diagram = first.diagram;
    const std::vector<ArrayRule> rules = array_rules(program);
    std::vector<std::string> shapes;
    std::vector<const Array*> arrays;
    for (const auto* list : {&diagram.inputs, &diagram.outputs})
        for (const ArrayId id : *list) {
            arrays.push_back(&diagram.array(id));
            shapes.push_back(join(mapped<std::string>(arrays.back()->axes,
                                                      [&](AxisId axis) {
                                                          const std::string& name = diagram.axis(axis).name;
                                                          return contains(program.arguments, name)
                                                                     ? name
                                                                     : fmt::format("{}={}", name, first.extents[axis]);
                                                      }),
                                  " x "));
        }
    std::size_t wide_name = 0, wide_shape = 0;
    for (std::size_t i = 0; i < arrays.size(); ++i)
        wide_name = std::max(wide_name, names.arrays[i].size()), wide_shape = std::max(wide_shape, shapes[i].size());
    std::string out;
    for (std::size_t i = 0; i < arrays.size(); ++i)
        out += fmt::format(" *     {:<{}}  {}  {:<{}}  {:<4}  {}\n", names.arrays[i], wide_name,
                           i < diagram.inputs.size() ? "input " : "output", shapes[i], wide_shape,
                           name(arrays[i]->type), rule_text(rules[i]));
    return out;
}

std::string sizes_text(const ExportedProgram& program, const ExportedNames& names) {
    if (program.arguments.empty()) return " * All sizes are numbers.\n";
    const std::string all = join(names.sizes, ", ");
    std::string out = fmt::format(" * {} from 1 to {}. {} kernels:\n", all, program.classes.back().to,
                                  names.sizes.size() == 1 ? "Its size says which" : "The largest of them says which");
    for (const ExportedClass& one : program.classes)
        out += fmt::format(" *     from {} to {}, planned at {}\n", one.from, one.to, one.planned_at);
    return out;
}

std::string joined(const std::vector<std::string>& parameters) { return join(parameters, ", "); }

}  // namespace

ExportedNames exported_names(const ExportedProgram& program) {
    const Diagram& diagram = program.first().diagram;
    // A parameter hides no function that the code calls.
    writers::Names names(std::string(shared_runtime()) + std::string(gpu_runtime()));
    for (const char* const own : {"workspace", "stream", "status", "length", "used", "at", "addresses", "given",
                                  "functions", "arenas", "NULL", "driver", "calls"})
        names.add(own);
    ExportedNames out{.program = writers::Names("").add(program.name), .sizes = {}, .arrays = {}};
    for (const std::string& axis : program.arguments) out.sizes.push_back(names.add(axis));
    for (const auto* list : {&diagram.inputs, &diagram.outputs})
        for (const ArrayId array : *list) out.arrays.push_back(names.add(diagram.array(array).name));
    return out;
}

std::string exported_header(const ExportedProgram& program) {
    const ExportedNames names = exported_names(program);
    const Diagram& diagram = program.first().diagram;
    const bool on_gpu = program.first().machine.kind == MachineKind::gpu;
    const std::string& p = names.program;
    std::vector<std::string> sizes, arrays;
    for (const std::string& size : names.sizes) sizes.push_back("int64_t " + size);
    for (std::size_t i = 0; i < names.arrays.size(); ++i)
        arrays.push_back(fmt::format("{}void* {}, const int64_t* {}_strides", i < diagram.inputs.size() ? "const " : "",
                                     names.arrays[i], names.arrays[i]));
    std::string equations;
    for (const Equation& e : diagram.equations) equations += " *     " + to_string(diagram, e) + "\n";
    std::vector<std::string> all = sizes;
    append(all, arrays);
    return fmt::format(
        R"(/* {0}, exported by napkin for the machine {1}.
 *
{2} *
 * Arrays:
{3} *
{4} *
 * Strides are in values, one for each dimension; NULL: row-major without gaps. Arrays that are written share no memory
 * with others.{5}
 *
 * Integers by which others are read are not looked at. */
#ifndef NAPKIN_EXPORTED_{0}_H
#define NAPKIN_EXPORTED_{0}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

enum {{
    {0}_ok = 0,
    {0}_bad_size = 1,     /* no kernels are for these sizes */
    {0}_null = 2,         /* a pointer to an array is NULL */
    {0}_bad_strides = 3,  /* kernels do not take an array with these strides, or sizes that make them */
    {0}_misaligned = 4,   /* an array, or the workspace, does not begin at a multiple of its alignment */
    {0}_no_workspace = 5, /* memory is needed, and the workspace is NULL */
    {0}_no_driver = 6,    /* CUDA's driver is not found, or is older than CUDA 12 */
    {0}_no_context = 7,   /* the thread has no context of CUDA */
    {0}_failed = 8        /* of CUDA's driver; the message has its words */
}};

/* Bytes of the workspace{6}. -1: no kernels are for these sizes. */
int64_t {0}_workspace_bytes({7});
/* {8} */
int {0}_run({9}, void* workspace, void* stream);
/* What a status says. That of {0}_failed is about the thread's last call. */
const char* {0}_message(int status);

#ifdef __cplusplus
}}
#endif

#endif
)",
        p, program.first().machine.name, equations, arrays_text(program, names), sizes_text(program, names),
        on_gpu ? fmt::format(
                     " They begin at multiples of {} bytes,\n * and lie where the thread's context has its memory.",
                     gpu::array_alignment)
               : "",
        fmt::format(", which begins at a multiple of {}", gpu::workspace_alignment), sizes.empty() ? "void" : joined(sizes),
        on_gpu ? "Launches on the stream, a CUstream, and returns before the kernels have run. Runs that overlap have\n"
                 " * workspaces of their own. A stream that is being captured takes it, once it was called before."
               : "Has run when it returns. One call runs at a time. The stream is NULL.",
        joined(all));
}

}  // namespace napkin
