#include "lower/order_of_additions.hpp"

#include <fmt/format.h>

#include "lower/select_math.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

std::string order_of_product(const MmaProduct& product, const Atom& atom) {
    return fmt::format("{} of {} by {} along {} and {}{}, {} column parts", product.instruction->name,
                       name(product.type), product.instruction->k.at(product.type), product.m.place(),
                       product.k.place(), product.a_in_registers ? " from registers" : "", atom.parts);
}

std::string order_of_atom(const ScheduledKernel& kernel, const Step& step) {
    const Atom& atom = kernel.atom(step);
    if (atom.kind == AtomKind::mma)
        if (const auto product = mma_product(kernel, step)) return order_of_product(*product, atom);
    std::string out(name(atom.kind));
    if (!std::get<Compute>(*step.statement).reduce) return out;
    const auto& axes = kernel.program->diagram.axes;
    if (!atom.reduced.empty()) out += " over " + join(names_of(axes, atom.reduced), " ");
    if (atom.cut_axis >= 0) out += fmt::format(" cut {} {}", axes[atom.cut_axis].name, atom.cut);
    if (atom.terms > 1) out += fmt::format(" by {} terms", atom.terms);
    if (atom.across)
        out += fmt::format(" across {}, {} of {} lanes", axes[atom.vector_axis].name, atom.vectors, kernel.lanes);
    if (kernel.is_in_accumulators(variable_of(step))) out += " in accumulators";
    if (atom.shared) out += fmt::format(" of {} warps", kernel.schedule.warps.value);
    return out;
}

/// What multiplies by powers of two, or adds up whole numbers, rounds nothing.
bool is_exact(lower::MathForm form) {
    return form == lower::MathForm::plain || form == lower::MathForm::own_column || form == lower::MathForm::exact_quotient;
}

std::string functions_of(const lower::PointMath& point) {
    std::string out;
    for (const lower::MathChoice& choice : point.choices)
        if (!is_exact(choice.form))
            out += fmt::format(" {}:{}:{}", static_cast<int>(choice.form), choice.factor, choice.operand);
    return out;
}

std::string order_of(const ScheduledKernel& kernel, const lower::KernelMath* math) {
    const KernelSchedule& schedule = kernel.schedule;
    const auto& axes = kernel.program->diagram.axes;
    std::string out;
    for (const SizesByAxis* sizes : {&schedule.stream, &schedule.subloop})
        for (const auto& [axis, size] : *sizes) out += fmt::format("K block {} {}\n", axes[axis].name, size.value);
    if (const StreamParts& parts = kernel.kernel->parts; parts.any())
        out += fmt::format("parts of {} {}\n", axes[parts.axis].name, kernel.extent(parts.part));
    if (kernel.uses_stream_k()) out += "stream-K\n";
    if (kernel.rescale) out += "rescaling by warps\n";
    const std::vector<std::string> names = atom_names(*kernel.kernel);
    for (const Step& step : kernel.steps) {
        if (step.atom < 0) continue;
        out += fmt::format("{}: {}", names[at(step.atom)], order_of_atom(kernel, step));
        if (math) {
            const lower::StatementMath& of = math->statements.at(step.statement);
            out += functions_of(of.any);
        }
        out += "\n";
    }
    return out;
}

}  // namespace

std::string order_of_additions(const ScheduledKernel& kernel) {
    const lower::KernelMath math = lower::select_math(kernel);
    return order_of(kernel, &math);
}

std::string order_without_functions(const ScheduledKernel& kernel) { return order_of(kernel, nullptr); }

}  // namespace napkin
