#include "export/library.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "export/code.hpp"
#include "machine/processor.hpp"
#include "run/gpu/compiler.hpp"
#include "run/jit.hpp"
#include "support/files.hpp"

namespace napkin {

Result<std::vector<std::string>> write_library(const ExportedProgram& program, const std::string& directory) {
    const Compilation& first = program.first();
    const bool on_gpu = first.machine.kind == MachineKind::gpu;
    std::vector<std::string> cubins;
    for (std::size_t k = 0; on_gpu && k < program.classes.size(); ++k) {
        cubins.emplace_back();
        if (class_of_code(program, k) != k) continue;
        auto cubin = gpu::compile_cuda(complete(class_source(program, k)), first.machine.architecture);
        if (!cubin) return cubin.errors();
        cubins.back() = std::move(cubin->code);
    }
    const auto code = exported_code(program, cubins);
    if (!code) return code.errors();
    std::error_code why;
    std::filesystem::create_directories(directory, why);
    if (why) return file_error(why.value(), "unwritable-file", "cannot make the folder " + directory);
    const std::string path = directory + "/" + exported_names(program).program;
    const std::string source = path + (on_gpu ? ".c" : ".cpp");
    std::vector<std::string> written{path + ".h", source};
    if (const Status done = replace_file(written[0], exported_header(program)); !done) return done.errors();
    if (const Status done = replace_file(source, *code); !done) return done.errors();
    if (on_gpu) return written;
    JitOptions options;
    options.flags = flags_for_vectors(std::get<cpu::CpuSource>(first.code).vector_bytes);
    options.flags.insert(options.flags.end(), {"-fvisibility=hidden", "-pthread", "-I" + directory});
    const auto object = compiled_object(*code, options);
    if (!object) return object.errors();
    written.push_back(fmt::format("{}/lib{}.so", directory, exported_names(program).program));
    if (const Status done = replace_file(written.back(), *object); !done) return done.errors();
    return written;
}

}  // namespace napkin
