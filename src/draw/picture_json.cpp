#include "draw/picture_json.hpp"
#include "support/json.hpp"

#include "support/ids.hpp"

namespace napkin::draw {
namespace {

using Json = nlohmann::ordered_json;

Json value_json(const Value& value) {
    Json wires = Json::array();
    for (const Wire& wire : value.wires) wires.push_back({{"axis", wire.name}, {"label", plain_text(wire.label)}});
    return {{"array", value.name},         {"wires", wires},
            {"level", value.level},        {"maintained", value.maintained},
            {"cached", value.cached},      {"times", value.times},
            {"precision", value.precision}};
}

Json operation_json(const Circuit& circuit, const Operation& op) {
    Json inputs = Json::array();
    for (const Operand& operand : op.inputs) inputs.push_back(operand.value);
    Json consumed = Json::array();
    for (const Operand& operand : op.inputs)
        for (std::size_t w = 0; w < operand.axes.size(); ++w) {
            const std::string& axis = circuit.values[at(operand.value)].wires[w].name;
            if (contains(op.consumed, operand.axes[w]) && !contains(consumed, axis)) consumed.push_back(axis);
        }
    return {{"shape", name(op.shape)},    {"label", plain_text(op.label)},
            {"statement", op.statement},  {"equation", op.description},
            {"inputs", inputs},           {"output", op.output},
            {"consumed", consumed},       {"level", op.level},
            {"splittable", op.splittable}};
}

Json circuit_json(const Circuit& circuit) {
    Json out = {
        {"caption", circuit.caption}, {"values", Json::array()}, {"operations", Json::array()}, {"brackets", Json::array()}};
    for (const Value& value : circuit.values) out["values"].push_back(value_json(value));
    for (const Operation& op : circuit.operations) out["operations"].push_back(operation_json(circuit, op));
    for (const Bracket& b : circuit.brackets)
        out["brackets"].push_back(
            {{"first", b.first}, {"last", b.last}, {"label", plain_text(b.label)}, {"is_sub", b.is_sub}});
    out["inputs"] = circuit.inputs;
    out["outputs"] = circuit.outputs;
    out["notes"] = circuit.notes;
    return out;
}

}  // namespace

Json drawing_json(const Drawing& drawing, const Picture& picture) {
    Json out = {{"title", drawing.title}, {"description", picture.description}, {"circuits", Json::array()}};
    for (const Circuit& circuit : drawing.circuits) out["circuits"].push_back(circuit_json(circuit));
    Json wires = Json::array(), texts = Json::array(), boxes = Json::array();
    for (const PlacedWire& w : picture.wires)
        wires.push_back({{"axis", w.axis},
                         {"array", w.array},
                         {"statement", w.statement},
                         {"level", w.level},
                         {"from", {w.x0, w.y0}},
                         {"to", {w.x1, w.y1}}});
    for (const PlacedText& t : picture.texts) texts.push_back({{"text", plain_text(t.label)}, {"at", {t.x, t.y}}});
    for (const PlacedBox& b : picture.boxes)
        boxes.push_back(
            {{"statement", b.statement}, {"shape", name(b.shape)}, {"at", {b.x, b.y}}, {"size", {b.width, b.height}}});
    out["picture"] = {
        {"width", picture.width}, {"height", picture.height}, {"wires", wires}, {"texts", texts}, {"boxes", boxes}};
    return out;
}

}  // namespace napkin::draw
