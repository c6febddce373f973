#pragma once
// The parts of a report's page that depend on the setting. They are made here for the page as it is written and for
// every setting of its grid. Compiled to WebAssembly, the same code makes them for the settings that its sliders
// choose. So a live figure is drawn by what drew the first one.
#include <string>
#include <vector>

#include "draw/figures.hpp"
#include "draw/html.hpp"

namespace napkin::draw {

/// A part of the page: what the element with this id holds.
struct Fragment {
    std::string id;
    std::vector<svg::Element> content;
};

/// "heading", "summary", "numbers", "plan-content", "steps", "roofline", "tiles", "machine-chart", in this order.
/// `costs`: costs_of the figures.
std::vector<Fragment> setting_fragments(const Figures& figures, const std::vector<KernelFigures>& costs);

/// Bytes that the pictures of a derivation, and those of the steps on a machine, may take, of a page's three megabytes.
inline constexpr std::size_t most_picture_bytes = 600'000;

/// "step-pictures": the paper's steps on the machine, each as a picture that is opened. They are too large for every
/// setting of a grid. `room` is the number of bytes that they may take. The last picture, which shows what all before
/// it do, is always drawn.
Fragment step_pictures(const Figures& figures, std::size_t room = most_picture_bytes);

/// The names that a page tells apart in what it shows.
html::KnownNames known_names(const Diagram& diagram);

/// {"errors": [text]}, each with its hint.
std::string errors_answer(const std::vector<Diagnostic>& errors);
/// An answer as text, whatever bytes are in it.
std::string answer_text(const nlohmann::ordered_json& answer);
/// What `napkin_figures` answers: {"figures": …, "fragments": {id: HTML}}, or {"errors": [text]}.
std::string answer(const std::string& request);
/// The same of figures that are there.
nlohmann::ordered_json answer_of(const Figures& figures);

}  // namespace napkin::draw
