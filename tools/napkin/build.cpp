// `napkin build`: a library of C, which runs without napkin.
#include "export/library.hpp"
#include "napkin/command.hpp"
#include "support/text.hpp"

namespace napkin::cli {
namespace {

struct BuildCommand {
    Options common;
    std::string folder;
};

ExitCode build(const BuildCommand& c) {
    const auto source = read_source(c.common.file);
    if (!source) return fail(source.errors(), c.common);
    PipelineOptions options = pipeline_options(c.common, Pass::emit);
    if (const Status read = read_schedule(c.common, options); !read) return fail(read.errors(), c.common);
    const auto program = exported_program(*source, options);
    if (!program) return fail(program.errors(), c.common);
    const auto written = write_library(*program, c.folder);
    if (!written) return fail(written.errors(), c.common);
    if (c.common.json) {
        Json document = json_document("build");
        document["diagram"] = program->name;
        document["machine"] = program->first().machine.name;
        document["arguments"] = program->arguments;
        document["classes"] = program->classes.size();
        document["files"] = *written;
        print(document);
    } else {
        print(join(*written, "\n") + "\n");
    }
    return ExitCode::success;
}

}  // namespace

void add_build(CLI::App& app, Main& main) {
    const auto c = std::make_shared<BuildCommand>();
    c->folder = ".";
    Command command(app, main, "build", "Write a library for C, which needs no napkin to run",
                    "napkin build examples/attention.nk --machine h200 -o build", [c] { return build(*c); });
    command.file(c->common);
    command.text("-o,--output", "DIR", c->folder,
                 "Where NAME.h and the code are written; it is made where it is missing");
    command.any_sizes(c->common);
    command.pipeline(c->common);
}

}  // namespace napkin::cli
