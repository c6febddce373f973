// The core in a page: figures and the plan of a setting for a request as JSON, by the functions of the command line.
// There is no machine at hand here, nothing to run and nothing to emit.
#include <cstdlib>
#include <string>

#include "draw/setting_fragments.hpp"
#include "machine/machine.hpp"
#include "support/result.hpp"

namespace napkin {

Machine host_machine(int) { throw InternalError("a page knows no machine at hand"); }

}  // namespace napkin

extern "C" {

__attribute__((export_name("napkin_allocate"))) char* napkin_allocate(unsigned bytes) {
    return static_cast<char*>(std::malloc(bytes));
}

__attribute__((export_name("napkin_free"))) void napkin_free(char* text) { std::free(text); }

/// The answer as text that ends with a zero, valid until the next call. A fault is one of ours and says so.
__attribute__((export_name("napkin_figures"))) const char* napkin_figures(const char* request) {
    static std::string kept;
    try {
        kept = napkin::draw::answer(request);
    } catch (const std::exception&) {
        kept = R"({"errors": ["napkin: a fault of its own at this setting"]})";
    }
    return kept.c_str();
}
}
