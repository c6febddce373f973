#pragma once
// A drawing's data as JSON: its circuits, and where everything of them stands.
#include <nlohmann/json_fwd.hpp>

#include "draw/diagram_picture.hpp"

namespace napkin::draw {

/// {"title", "circuits": [{"caption", "values", "operations", "brackets", …}], "picture": {"width", "height", "wires",
/// "texts", "boxes"}}
nlohmann::ordered_json drawing_json(const Drawing& drawing, const Picture& picture);

}  // namespace napkin::draw
