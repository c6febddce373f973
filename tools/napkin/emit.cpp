// `napkin emit`: the C++ of the kernels, or the tile program that it is made from.
#include "napkin/command.hpp"
#include "tile/print.hpp"

namespace napkin::cli {

namespace {

struct EmitCommand {
    Options common;
    bool tile = false, complete = false;
};

ExitCode emit(const EmitCommand& c) {
    const auto compilation = compile(c.common, c.tile ? Pass::expand : Pass::emit);
    if (!compilation) return fail(compilation.errors(), c.common);
    const std::string text = c.tile       ? to_string(compilation->program)
                             : c.complete ? complete(compilation->code)
                                          : kernels_of(compilation->code);
    if (c.common.json) {
        Json document = json_document("emit");
        document["diagram"] = compilation->diagram.name;
        document["language"] = c.tile ? "tile" : "c++";
        document["text"] = text;
        print(document);
    } else {
        print(text);
    }
    return ExitCode::success;
}

}  // namespace

void add_emit(CLI::App& app, Main& main) {
    const auto c = std::make_shared<EmitCommand>();
    Command command(app, main, "emit", "Print the kernels' C++, or their tile program",
                    "napkin emit examples/attention.nk --tile", [c] { return emit(*c); });
    command.file(c->common);
    command.flag("--complete", c->complete, "With the prelude (vectors and their mathematics), as it is compiled");
    command.flag("--tile", c->tile, "The tile program (pseudocode with every transfer) instead of C++");
    command.any_sizes(c->common);
    command.pipeline(c->common);
}

}  // namespace napkin::cli
