// The reader of machine files on any input. It gives errors, or a machine whose text reads back as the same machine,
// bit for bit. Everything that follows from such a machine can be asked.
#include "machine/machine.hpp"

#include <cstdio>
#include <cstdlib>

#include "machine/occupancy.hpp"
#include "machine/peaks.hpp"

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
    const auto machine = read_machine(source({reinterpret_cast<const char*>(data), size}));
    if (!machine.ok()) {
        if (render(machine.errors()).empty()) fail("an error without a text", "");
        return 0;
    }
    const std::string text = to_toml(*machine);
    const auto again = read_machine(source(text));
    if (!again.ok()) fail("what was written does not read", render(again.errors()) + text);
    if (*again != *machine) fail("what was written reads as another machine", text);
    (void)ridges(*machine);
    for (const std::int64_t stride : {0, 1, -7, 4096}) (void)warp_transactions(*machine, stride, 4);
    (void)occupancy(*machine, {96, 40, 1000});
    return 0;
}
