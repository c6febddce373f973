#include "export/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "diagram/flat_axes.hpp"
#include "lower/passes.hpp"
#include "lower/size_formulas.hpp"
#include "plan/other_sizes.hpp"
#include "study/size_classes.hpp"
#include "support/ranges.hpp"
#include "support/share_out.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

constexpr std::size_t most_classes = 16;
/// Lengths that are passed over where a class begins.
constexpr std::int64_t most_unserved = 16;

using Sizes = std::map<std::string, std::int64_t>;

PipelineOptions with(PipelineOptions options, const Sizes& sizes) {
    for (const auto& [axis, size] : sizes) options.sizes[axis] = size;
    return options;
}

/// The axes whose sizes may be arguments: of any size, and not said by others.
std::vector<std::string> open_to_arguments(const Diagram& diagram, const PipelineOptions& options) {
    std::vector<std::string> out;
    for (const AxisId id : diagram.axes.ids()) {
        const Axis& axis = diagram.axis(id);
        const bool is_fixed = (!options.any_sizes && options.sizes.contains(axis.name)) ||
                              (axis.size && !axis.size->as_constant()) || !parts_of_flat_axis(diagram, id).empty();
        if (axis.is_any && !is_fixed) out.push_back(axis.name);
    }
    return out;
}

/// A length that stands for a class. No tile divides it.
std::int64_t general_length(std::int64_t planned_at) {
    constexpr std::uint64_t shortest = 64;  // K blocks, and the rows of a warpgroup
    return static_cast<std::int64_t>(std::max(shortest, std::bit_ceil(static_cast<std::uint64_t>(planned_at) + 1))) - 1;
}

/// The lengths at which a class is tried: its ends, some powers of two, and what stands around the multiples of tiles.
std::vector<std::int64_t> tried_lengths(const ExportedClass& of) {
    std::set<std::int64_t> out{of.from, of.to};
    for (std::int64_t power = 1; power > 0 && power <= of.to; power *= 4)
        for (const std::int64_t length : {power, power + 1, power + power / 2, 3 * power - 1}) out.insert(length);
    const std::int64_t middle = std::min(of.to, std::max(of.from, of.planned_at));
    for (std::int64_t more = 0; more < 40; ++more) out.insert(middle - more);
    return {out.lower_bound(of.from), out.upper_bound(of.to)};
}

/// How many tiles a kernel copies where they would be read past the end of an array.
std::size_t num_copied(const Compilation& made) {
    std::size_t n = 0;
    for (const KernelPlan& kernel : made.plan.kernels)
        for (const Layout& layout : kernel.scheduled.layouts) n += layout.may_overrun ? 1 : 0;
    return n;
}

/// Whether the formulas of one length give the real numbers that are made for the other, such as bounds that a schedule
/// has for a length. Whole numbers are tile counts and orders, which are chosen anew and right in any order.
bool has_reals_of(const Compilation& one, const Compilation& other) {
    return std::visit(
        [&](const auto& code) {
            const auto& others = std::get<std::decay_t<decltype(code)>>(other.code);
            for (std::size_t k = 0; k < code.entries.size(); ++k) {
                const lower::LaunchFormulas& formulas = code.entries[k].formulas;
                const auto numbers = lower::numbers_at(formulas, other.program.extents);
                if (numbers.size() != others.entries[k].numbers.size()) return false;
                for (std::size_t i = 0; i < numbers.size(); ++i)
                    if (formulas.numbers[i].is_real && numbers[i] != others.entries[k].numbers[i]) return false;
            }
            return true;
        },
        one.code);
}

/// Whether the text of one length is that of the other. One whose positions have 64 bits serves where 32 are enough.
bool has_text_of(const Compilation& one, const Compilation& other) {
    const auto *made = std::get_if<cuda::CudaSource>(&one.code), *wanted = std::get_if<cuda::CudaSource>(&other.code);
    if (!made || !wanted) return complete(one.code) == complete(other.code);
    return made->text == wanted->text && (made->wide_index || !wanted->wide_index);
}

class Exporter {
public:
    Exporter(std::shared_ptr<const Source> source, PipelineOptions options)
        : source_(std::move(source)), options_(std::move(options)) {
        options_.until = Pass::emit;
    }

    Result<ExportedProgram> run() {
        PipelineOptions parsing = options_;
        parsing.until = Pass::parse;
        const auto parsed = run_pipeline(source_, parsing);
        if (!parsed) return parsed.errors();
        out_.name = parsed->diagram.name;
        out_.arguments = open_to_arguments(parsed->diagram, options_);
        const std::vector<std::string> open = open_axes(source_, options_);
        if (open.empty()) {
            if (const Status made = add_given(); !made) return made.errors();
            return std::move(out_);
        }
        const auto found = size_classes(source_, options_, open);
        if (!found) return found.errors();
        for (const SizeClass& one : found->classes) {
            if (!out_.classes.empty() && out_.classes.back().to + 1 != one.from)
                return no_code(out_.classes.back().to + 1);
            if (const Status made = add_open({one.from, one.to, one.planned_at, {}}, open); !made) return made.errors();
        }
        return std::move(out_);
    }

private:
    [[nodiscard]] Sizes at_length(std::int64_t length) const {
        Sizes out;
        for (const std::string& axis : out_.arguments) out[axis] = length;
        return out;
    }

    [[nodiscard]] std::vector<std::string> whole_in(const Compilation& made) const {
        std::vector<std::string> axes;
        for (const std::string& axis : out_.arguments)
            if (!takes_any(made.plan, {axis})) axes.push_back(axis);
        return axes;
    }

    /// One plan, at the sizes that are given. Those keep their numbers that no tile cuts.
    Status add_given() {
        auto planned = run_pipeline(source_, options_);
        if (!planned) return planned.errors();
        const std::vector<std::string> whole = whole_in(*planned);
        std::erase_if(out_.arguments, [&](const std::string& axis) { return contains(whole, axis); });
        if (std::visit([](const auto& code) { return code.entries.empty(); }, planned->code))
            return Diagnostic{.code = "no-kernels", .message = fmt::format("{} computes nothing", out_.name)};
        ExportedClass one{1, 1, 1, {}};
        if (out_.arguments.empty()) {
            one.made = std::move(*planned);
            out_.classes.push_back(std::move(one));
            return Done{};
        }
        for (const std::string& axis : out_.arguments)
            one.planned_at = std::max(one.planned_at, planned->extents[*planned->diagram.find_axis(axis)]);
        one.to = longest_argument;
        while (one.to > one.planned_at && !at_other_sizes(*planned, with(options_, at_length(one.to)))) one.to /= 2;
        return add_texts(std::move(one), *planned);
    }

    Status add_open(ExportedClass one, const std::vector<std::string>& open) {
        Sizes sizes;
        for (const std::string& axis : open) sizes[axis] = one.planned_at;
        auto planned = run_pipeline(source_, with(options_, sizes));
        // The plan of longer ones serves lengths that are shorter than a tile.
        for (std::int64_t length = general_length(one.planned_at);
             planned && !whole_in(*planned).empty() && length < longest_argument; length = 2 * length + 1)
            planned = run_pipeline(source_, with(options_, at_length(length))), one.planned_at = length;
        if (!planned) return planned.errors();
        if (const std::vector<std::string> whole = whole_in(*planned); !whole.empty())
            return Diagnostic{.code = "whole-size",
                              .message = fmt::format("{} lies whole in the tiles of {} for lengths near {}",
                                                     join(whole, ", "), out_.name, one.planned_at),
                              .expected = "a size that is a number, or one that tiles cut",
                              .hint = fmt::format("--set {}=…", whole.front())};
        return add_texts(std::move(one), *planned);
    }

    /// The class with its text, or several of them where longer lengths take another text of the same plan: one whose
    /// positions have 64 bits. It ends where the plan fits no longer lengths, whose calls then say so.
    Status add_texts(ExportedClass one, const Compilation& planned) {
        const std::int64_t last = one.to;
        for (std::int64_t length = general_length(one.planned_at);; length = std::max(one.from, last - 1)) {
            auto general = at_other_sizes(planned, with(options_, at_length(length)));
            const bool is_first = one.from <= one.planned_at;
            if (!general && !is_first) return Done{};
            if (!general) general = at_other_sizes(planned, with(options_, at_length(one.planned_at - 1)));
            if (!general) return no_code(length);
            with_all_cores(*general, planned.plan);
            one.made = std::move(*general);
            // The shortest lengths may have no such text: an axis of one value makes no product of tiles.
            for (const std::int64_t first = one.from; !is_right(one, one.from); ++one.from)
                if (one.from >= std::min(last, first + most_unserved)) return no_code(first);
            one.to = longest_right(one, last);
            if (const Status right = tried(one); !right) return right;
            if (!out_.classes.empty() && out_.classes.back().to + 1 == one.from &&
                complete(out_.classes.back().made.code) == complete(one.made.code))
                out_.classes.back().to = one.to;
            else
                out_.classes.push_back(one);
            if (one.to == last) return Done{};
            if (out_.classes.size() > most_classes) return no_code(one.to + 1);
            one.from = one.to + 1;
        }
    }

    /// The schedules as they are for more tiles than there are cores, and for sizes that no tile divides.
    void with_all_cores(Compilation& general, const Plan& planned) const {
        for (std::size_t k = 0; k < general.plan.kernels.size(); ++k) {
            ScheduledKernel& kernel = general.plan.kernels[k].scheduled;
            const ScheduledKernel& before = planned.kernels[k].scheduled;
            KernelSchedule schedule = kernel.schedule;
            for (auto& [axis, at] : schedule.any) at.value = kernel.extent(axis);
            const bool has_all = before.schedule.grid.value >= before.num_groups();
            if (!schedule.threads.by_user) {
                schedule.threads.value = general.machine.num_cores() * std::max(1, kernel.unit.blocks_a_core);
                if (schedule.grid.value > 0 && !schedule.grid.by_user)
                    schedule.grid.value = has_all ? kernel.num_groups() : before.schedule.grid.value;
            }
            kernel = scheduled(kernel.program, k, kernel.extents, std::move(schedule), kernel.unit);
        }
        general.lowered = lower::lowered(general.plan.program());
        if (general.machine.kind == MachineKind::gpu)
            general.code = cuda::emit(general.lowered);
        else
            general.code = cpu::emit(general.lowered);
    }

    [[nodiscard]] Diagnostic no_code(std::int64_t length) const {
        return {.code = "other-code",
                .message = fmt::format("{} takes other code for {} = {}", out_.name, join(out_.arguments, " = "), length),
                .expected = "sizes for which one text is right",
                .hint = "sizes that are numbers (--set), or a plan by hand (--schedule)"};
    }

    /// Whether the pipeline makes the same text and the same extents for that length. A text that copies tiles at an
    /// array's end is right as well where fewer of them have to be copied.
    [[nodiscard]] bool is_right(const ExportedClass& one, std::int64_t length) const {
        const auto other = at_other_sizes(one.made, with(options_, at_length(length)));
        if (!other || other->program.extents.size() != one.made.program.extents.size()) return false;
        if (has_text_of(one.made, *other) ? !has_reals_of(one.made, *other) : num_copied(*other) >= num_copied(one.made))
            return false;
        const ByAxis<Expr> formulas = extent_formulas(out_, one);
        return all_of(formulas.ids(), [&](AxisId axis) {
            const Extents& extents = other->program.extents;
            return !formulas[axis] || lower::whole_value(formulas[axis], extents) == extents[axis];
        });
    }

    /// The longest length up to `last` for which the class is right. Pre: it is for one.from.
    [[nodiscard]] std::int64_t longest_right(const ExportedClass& one, std::int64_t last) const {
        if (is_right(one, last)) return last;
        std::int64_t right = one.from;
        for (std::int64_t wrong = last; wrong - right > 1;) {
            const std::int64_t middle = right + (wrong - right) / 2;
            (is_right(one, middle) ? right : wrong) = middle;
        }
        return right;
    }

    [[nodiscard]] Status tried(const ExportedClass& one) const {
        const std::vector<std::int64_t> lengths = tried_lengths(one);
        std::vector<char> right(lengths.size());
        share_out(lengths.size(), [&](std::size_t i) { right[i] = is_right(one, lengths[i]) ? 1 : 0; });
        for (std::size_t i = 0; i < lengths.size(); ++i)
            if (right[i] == 0) return no_code(lengths[i]);
        return Done{};
    }

    std::shared_ptr<const Source> source_;
    PipelineOptions options_;
    ExportedProgram out_;
};

}  // namespace

Result<ExportedProgram> exported_program(const std::shared_ptr<const Source>& source, const PipelineOptions& options) {
    return Exporter(source, options).run();
}

ByAxis<Expr> extent_formulas(const ExportedProgram& program, const ExportedClass& of) {
    const Diagram& diagram = of.made.program.diagram;
    ByAxis<Expr> out(diagram.axes.size());
    const auto formula = [&](const auto& self, AxisId id) -> Expr {
        const Axis& axis = diagram.axis(id);
        if (contains(program.arguments, axis.name)) return axis_size(id);
        if (!axis.size || axis.size->as_constant()) return integer_constant(of.made.program.extents[id]);
        Expr sum = integer_constant(0);
        for (const auto& [monomial, coefficient] : axis.size->terms()) {
            if (!coefficient.is_integer()) return {};
            Expr product = integer_constant(coefficient.numerator());
            for (const auto& [symbol, exponent] : monomial) {
                const Expr factor = symbol.kind == SymbolKind::axis ? self(self, symbol.axis()) : Expr();
                if (!factor || !exponent.is_integer() || exponent < Rational(0)) return {};
                for (std::int64_t i = 0; i < exponent.numerator(); ++i)
                    product = lower::whole_formula(BinaryOp::mul, product, factor);
            }
            sum = lower::whole_formula(BinaryOp::add, sum, product);
        }
        return sum;
    };
    for (const AxisId id : diagram.axes.ids()) out[id] = formula(formula, id);
    return out;
}

}  // namespace napkin
