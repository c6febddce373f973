#include "export/exported_sizes.hpp"

#include <fmt/format.h>

#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {

ExportedSizes::ExportedSizes(const ExportedProgram& program, const ExportedNames& names, std::size_t index,
                             const KernelSource& source)
    : program_(program),
      names_(names),
      index_(index),
      made_(program.classes[index].made),
      source_(source),
      diagram_(made_.program.diagram),
      extents_(extent_formulas(program, program.classes[index])) {
    int num_given = 0;
    for (const auto* list : {&diagram_.inputs, &diagram_.outputs})
        for (const ArrayId array : *list) places_[array] = {.given = num_given++};
    each_entry([&](const auto& entry) {
        for (const auto* list : {&entry.inputs, &entry.outputs})
            for (const ArrayId array : *list)
                if (used_.insert(array).second && !places_.contains(array)) places_[array] = {.offset = num_parts_++};
    });
}

Status ExportedSizes::can_be_written() const {
    bool can = true;
    const auto look = [&](const Expr& formula) {
        visit(formula, [&](const Expr& node) {
            if (const auto* size = as<AxisSize>(node)) can &= extents_[size->axis] != nullptr;
        });
    };
    each_entry([&](const auto& entry) {
        look(entry.formulas.groups);
        for (const lower::LaunchNumber& number : entry.formulas.numbers)
            look(number.formula), can &= !number.is_real || c::of_c(number.formula);
    });
    for (const ArrayId array : used_)
        for (const AxisId axis : diagram_.array(array).axes) can &= extents_[axis] != nullptr;
    if (can) return Done{};
    return Diagnostic{
        .code = "no-formula",
        .message = fmt::format("a number of {} follows from its sizes in a way that C does not compute", program_.name),
        .expected = "sizes that are numbers",
        .hint = "--set gives them"};
}

std::string ExportedSizes::name(const char* what) const { return fmt::format("class_{}_{}", index_, what); }

ExportedSizes::Body::Body(const ExportedSizes& of)
    : formulas([this, &of](AxisId axis) { return of.size_of(axis, formulas); },
               [this](const std::string& line) { add(line); }) {
    for (const std::string& size : of.names_.sizes) add(fmt::format("(void){};", size));
}

std::string ExportedSizes::Body::list(const std::vector<Expr>& all) {
    if (all.empty()) return "1";
    return join(mapped<std::string>(all, [&](const Expr& e) { return whole(e); }), ", ");
}

std::string ExportedSizes::size_of(AxisId axis, c::Formulas& formulas) const {
    const auto argument = find(program_.arguments, diagram_.axis(axis).name);
    if (argument != program_.arguments.end())
        return names_.sizes[static_cast<std::size_t>(argument - program_.arguments.begin())];
    return formulas.whole(extents_[axis]);
}

std::string ExportedSizes::parameters(const std::string& more) const {
    std::vector<std::string> all;
    for (const std::string& size : names_.sizes) all.push_back("int64_t " + size);
    if (!more.empty()) all.push_back(more);
    return all.empty() ? "void" : join(all, ", ");
}

std::string ExportedSizes::function(const std::string& type, const std::string& name, const std::string& parameters,
                                    const std::string& lines) {
    return fmt::format("static {} {}({}) {{\n{}}}\n", type, name, parameters, lines);
}

std::vector<Expr> ExportedSizes::sizes(ArrayId array) const {
    return mapped<Expr>(diagram_.array(array).axes, [&](AxisId axis) { return extents_[axis]; });
}
Expr ExportedSizes::product(const std::vector<Expr>& all, std::size_t from) {
    Expr out = integer_constant(1);
    for (std::size_t i = from; i < all.size(); ++i) out = lower::whole_formula(BinaryOp::mul, out, all[i]);
    return out;
}
std::vector<Expr> ExportedSizes::dense(const std::vector<Expr>& sizes) {
    std::vector<Expr> out;
    for (std::size_t d = 0; d < sizes.size(); ++d) out.push_back(product(sizes, d + 1));
    return out;
}
Expr ExportedSizes::bytes_of(ArrayId array) const {
    return lower::whole_formula(BinaryOp::mul, product(sizes(array)), integer_constant(bytes(diagram_.array(array).type)));
}

std::string ExportedSizes::address(ArrayId array) const {
    const Place& place = places_.at(array);
    return place.given >= 0 ? fmt::format("addresses[{}]", place.given)
                            : fmt::format("workspace + (uint64_t)at[{}]", place.offset);
}

}  // namespace napkin
