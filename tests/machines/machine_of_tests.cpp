// The machine that tests are on where they name none: one of a file, so that no result depends on the processor at
// hand. NAPKIN_MACHINE of the environment names another one, as scripts/check_widths.sh does.
#include <cstdlib>

#include "support/paths.hpp"

namespace napkin {
namespace {

[[maybe_unused]] const int is_set = ::setenv("NAPKIN_MACHINE", in_sources("tests/machines/cpu-256.toml").c_str(), 0);

}  // namespace
}  // namespace napkin
