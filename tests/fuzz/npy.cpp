// No bytes make the reader of .npy files do anything but give a tensor or an error; what it gives can be written and
// read again.
#include "run/npy.hpp"

#include <cstdlib>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace napkin;
    const auto tensor = parse_npy(std::as_bytes(std::span(data, size)), "fuzz");
    if (!tensor.ok()) return 0;
    const std::string file = npy_bytes(*tensor);
    const auto again = parse_npy(std::as_bytes(std::span(file.data(), file.size())), "again", tensor->type());
    if (!again.ok() || again->sizes() != tensor->sizes() || again->type() != tensor->type()) std::abort();
    if (tensor->count() > 0 &&
        std::memcmp(again->data(), tensor->data(), static_cast<std::size_t>(tensor->size_bytes())) != 0)
        std::abort();
    return 0;
}
