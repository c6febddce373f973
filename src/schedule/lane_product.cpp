#include "schedule/lane_product.hpp"

#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

constexpr int lane_bytes = 4;

/// The largest product of values of 8 bits of which one at least is signed: 255 · 128.
constexpr std::int64_t largest_product = 255 * 128;

/// The dimension of a tile along which the read goes as the axis does, and along which nothing else goes. -1: none.
int dimension_along(const ScheduledKernel& kernel, const Read& r, AxisId axis) {
    const std::vector<Index>& dims = kernel.variable(r.variable()).dims;
    int found = -1;
    for (std::size_t d = 0; d < dims.size(); ++d) {
        if (!r.indices[d].depends_on(axis) && !dims[d].depends_on(axis)) continue;
        if (found >= 0 || !r.indices[d].is_axis(axis) || !dims[d].is_axis(axis)) return -1;
        found = static_cast<int>(d);
    }
    return found;
}

/// The statement goes through all of the tile along the axis, from its first value on.
bool runs_along(const ScheduledKernel& kernel, const Step& step, const Read& r, AxisId axis) {
    const Span &own = kernel.span(axis, step.scope), &tile = kernel.span(axis, kernel.layout(r.variable()).scope);
    return dimension_along(kernel, r, axis) >= 0 && own.begins == tile.begins && own.tile == tile.tile;
}

/// The tile is loaded as it lies in memory, and the statement alone reads it.
bool is_plain_operand(const ScheduledKernel& kernel, VariableId id, const Step& reader) {
    const VariableFacts& facts = kernel.facts(id);
    const Variable& variable = kernel.variable(id);
    if (!facts.load_scope || facts.is_cut || !variable.gathers.empty() || kernel.is_whole(id)) return false;
    return all_of(variable.dims, [](const Index& d) { return d.affine() != nullptr; }) &&
           none_of(kernel.steps, [&](const Step& step) {
               const bool accesses = reads(step, id) || variable_of(step) == id;
               return accesses && &step != &reader && !std::holds_alternative<Load>(*step.statement);
           });
}

bool is_8_bits(DType type) { return type == DType::i8 || type == DType::u8; }

}  // namespace

const Read& LaneProduct::biased(AxisId vector_axis) const { return depends_on(a->indices, vector_axis) ? *b : *a; }

std::optional<LaneProduct> lane_product(const ScheduledKernel& kernel, const Step& step) {
    const auto* compute = std::get_if<Compute>(step.statement);
    if (!compute || kernel.in_blocks() || kernel.is_double || compute->reduce != ReduceOp::sum) return std::nullopt;
    const auto* product = as<Binary>(compute->body);
    if (!product || product->op != BinaryOp::mul) return std::nullopt;
    LaneProduct out{.axis = -1, .a = as<Read>(product->a), .b = as<Read>(product->b)};
    if (!out.a || !out.b || out.a->variable() == out.b->variable()) return std::nullopt;
    const DType a = kernel.variable(out.a->variable()).memory_type, b = kernel.variable(out.b->variable()).memory_type;
    out.is_integer = is_8_bits(a) && is_8_bits(b) && (a == DType::i8 || b == DType::i8);
    if (!out.is_integer && (a != DType::bf16 || b != DType::bf16)) return std::nullopt;
    out.type = out.is_integer ? DType::i8 : DType::bf16, out.terms = lane_bytes / bytes(out.type);
    out.both_are_signed = out.is_integer && a == b;
    for (const Read* r : {out.a, out.b})
        if (!is_plain_operand(kernel, r->variable(), step)) return std::nullopt;
    if (step.is_whole && compute->carry && !adds_in_place(*compute)) return std::nullopt;
    const bool wraps = kernel.variable(compute->variable).memory_type == DType::i32;
    if (out.is_integer && !wraps && total_terms(kernel, *compute) > INT32_MAX / largest_product) return std::nullopt;
    for (const AxisId axis : compute->reduce_axes)
        if (runs_along(kernel, step, *out.a, axis) && runs_along(kernel, step, *out.b, axis)) out.axis = axis;
    return out.axis >= 0 ? std::optional(out) : std::nullopt;
}

std::string_view why_not_in_lanes(const ScheduledKernel& kernel, const LaneProduct& product, const Atom& atom) {
    if (atom.vector_axis < 0 || atom.across) return "its vectors do not go along what it computes";
    int vectors = 0;
    for (const Read* r : {product.a, product.b}) {
        const LaneStep step = lane_step(kernel, *r, atom.vector_axis);
        if (step == LaneStep::far) return "neighbours of a factor do not lie beside each other at the core";
        vectors += step == LaneStep::near ? 1 : 0;
    }
    if (product.both_are_signed && vectors > 1) return "both factors are signed, and each has values in all lanes";
    if (product.both_are_signed && atom.row_axis >= 0 &&
        depends_on(product.unbiased(atom.vector_axis).indices, atom.row_axis))
        return "both factors are signed, and rows have vectors of their own";
    return "";
}

void mark_lane_operands(ScheduledKernel& kernel) {
    for (Layout& layout : kernel.layouts) layout.terms = 1, layout.term_dimension = -1, layout.is_biased = false;
    for (const Step& step : kernel.steps) {
        if (step.atom < 0 || kernel.atom(step).terms == 1) continue;
        const auto product = lane_product(kernel, step);
        if (!product) continue;  // the rules refuse it
        for (const Read* r : {product->a, product->b}) {
            Layout& layout = kernel.layouts[r->variable()];
            layout.terms = product->terms;
            layout.term_dimension = dimension_along(kernel, *r, product->axis);
            layout.is_biased = product->both_are_signed && r == &product->biased(kernel.atom(step).vector_axis);
        }
    }
}

}  // namespace napkin
