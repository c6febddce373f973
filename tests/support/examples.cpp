#include "support/examples.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "support/paths.hpp"
#include "syntax/parse.hpp"

namespace napkin {

std::vector<ExampleDiagram> example_diagrams() {
    std::vector<ExampleDiagram> all;
    for (const auto& file : std::filesystem::directory_iterator(in_sources("examples"))) {
        if (file.path().extension() != ".nk") continue;
        std::ifstream in(file.path());
        std::stringstream text;
        text << in.rdbuf();
        auto diagram = parse_diagram(std::make_shared<const Source>(Source{file.path().filename(), text.str()}));
        if (!diagram) throw std::runtime_error(render(diagram.errors()));
        all.push_back({file.path().stem(), std::move(diagram).value()});
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return all;
}

}  // namespace napkin
