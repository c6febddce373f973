#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "machine/builtin.hpp"
#include "machine/machine.hpp"
#include "machine/measured.hpp"
#include "machine/processor.hpp"
#include "support/limits.hpp"
#include "support/text.hpp"

namespace napkin {

Result<Machine> load_machine(const std::string& name_or_path) {
    if (name_or_path.empty()) return load_machine(default_machine());
    for (int bytes = 0; bytes <= native_vector_bytes(); bytes = std::max(16, 2 * bytes))
        if (name_or_path == host_name(bytes)) return measured_host(host_machine(bytes));
    for (const EmbeddedText& text : builtin_machine_texts())
        if (text.name == name_or_path)
            return read_machine(
                std::make_shared<Source>(Source{fmt::format("machines/{}.toml", text.name), std::string(text.text)}));

    Diagnostic diagnostic;
    const bool is_path = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".toml");
    if (!is_path) {
        const std::vector<std::string> names = machine_names();
        diagnostic.code = "unknown-machine";
        diagnostic.message = fmt::format("there is no machine '{}'", name_or_path);
        diagnostic.expected = fmt::format("one of {}, or the path of a .toml file", join(names, ", "));
        diagnostic.hint = did_you_mean(name_or_path, names);
        return diagnostic;
    }
    std::error_code code;
    const auto size = std::filesystem::file_size(name_or_path, code);
    std::ifstream file(name_or_path, std::ios::binary);
    std::ostringstream content;
    if (code || size > limits::max_file_bytes || !file || !(content << file.rdbuf())) {
        diagnostic.code = "unreadable-file";
        diagnostic.message = fmt::format("cannot read the machine file '{}'{}{}", name_or_path, code ? ": " : "",
                                         code ? code.message() : "");
        diagnostic.expected = fmt::format("a TOML file of at most {} bytes", limits::max_file_bytes);
        return diagnostic;
    }
    return read_machine(std::make_shared<Source>(Source{name_or_path, content.str()}));
}

}  // namespace napkin
