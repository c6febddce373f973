// Random diagrams as pictures: nothing stands on anything else, and every axis, array and statement is there.
#include <gtest/gtest.h>

#include <set>

#include "derive/derive.hpp"
#include "draw/diagram_picture.hpp"
#include "draw/drawings.hpp"
#include "draw/readings.hpp"
#include "support/random_diagram.hpp"

namespace napkin::draw {
namespace {

std::string missing_from(const Diagram& d, const Picture& picture) {
    std::set<std::string> axes, arrays, statements;
    for (const PlacedWire& w : picture.wires) axes.insert(w.axis), arrays.insert(w.array);
    for (const PlacedBox& b : picture.boxes) statements.insert(b.statement);
    for (const Array& array : d.arrays) {
        if (!arrays.contains(array.name)) return "array " + array.name;
        for (const AxisId axis : array.axes)
            if (!axes.contains(d.axis(axis).name)) return "axis " + d.axis(axis).name;
    }
    for (const Equation& e : d.equations)
        if (!statements.contains(d.array(e.target).name)) return "statement " + d.array(e.target).name;
    return "";
}

TEST(RandomPictures, HaveEverythingAndNothingOnAnythingElse) {
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        const Diagram d = random_diagram(seed);
        Drawing definition;
        definition.circuits.push_back(definition_circuit(d, false));
        const Picture picture = picture_of(definition);
        ASSERT_EQ(missing_from(d, picture), "") << "seed " << seed << "\n" << describe(d);
        for (const std::string& fault : faults_of(picture)) FAIL() << fault << ", seed " << seed << "\n" << describe(d);
    }
}

TEST(RandomPictures, OfEveryStep) {
    for (std::uint64_t seed = 0; seed < 120; ++seed) {
        const Diagram d = random_diagram(seed);
        const auto derived = derive(d);
        if (!derived) continue;
        const Subject subject{d, &*derived, nullptr, "memory", {}};
        for (const StepName& step : step_names(subject)) {
            const Picture picture = picture_of(drawing_of(subject, step.name));
            for (const std::string& fault : faults_of(picture))
                FAIL() << fault << ", step " << step.name << ", seed " << seed << "\n" << describe(d);
        }
    }
}

}  // namespace
}  // namespace napkin::draw
