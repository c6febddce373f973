// The front end on any input: errors or a diagram that verifies, and whose text reads back as the same diagram.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "diagram/sizes.hpp"
#include "diagram/verifier.hpp"
#include "syntax/parse.hpp"
#include "syntax/print.hpp"

namespace {

[[noreturn]] void fail(const char* what, const std::string& detail) {
    std::fprintf(stderr, "%s\n%s\n", what, detail.c_str());
    std::abort();
}

std::shared_ptr<const napkin::Source> source(std::string text) {
    return std::make_shared<const napkin::Source>(napkin::Source{"<fuzz>", std::move(text)});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace napkin;
    const auto text = source(std::string(reinterpret_cast<const char*>(data), size));
    const auto diagram = parse_diagram(text);
    (void)list_diagrams(text);
    if (!diagram.ok()) {
        (void)render(diagram.errors(), true);
        return 0;
    }
    for (const std::string& line : verify(*diagram))
        fail("a parsed diagram does not verify", line + "\n" + print(*diagram));
    const std::string printed = print(*diagram);
    const auto again = parse_diagram(source(printed));
    if (!again.ok()) fail("a printed diagram does not parse", printed + render(again.errors()));
    if (!(*again == *diagram)) fail("a printed diagram reads back as another", printed + print(*again));
    (void)bind_sizes(*diagram);
    return 0;
}
