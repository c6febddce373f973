#include "check/execution.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "support/saturate.hpp"
#include "tile/uses.hpp"

namespace napkin {

namespace {
/// Roundings that a chunk adds to what was summed before it: the correction's exponential with its argument, the products with it, the
/// merge of a shifted moment, the addition.
constexpr std::int64_t roundings_a_chunk = 8;

std::int64_t terms_of(const Equation& equation, const Extents& extents) {
    std::int64_t terms = 1;
    for (const AxisId axis : equation.reduce_axes) terms = saturating_mul(terms, extents[at(axis)]);
    return terms;
}

/// How many terms one after the other, where the axes with these numbers of terms are reduced by several computations, each the axes of a
/// set together: a contraction of many operands is one of two after the other. Axes that no set has are reduced with all others.
std::int64_t terms_in_turn(const std::map<std::string, std::int64_t>& terms,
                           const std::set<std::set<std::string>>& together) {
    std::set<std::set<std::string>> parts;
    for (const auto& set : together) {
        std::set<std::string> part;
        for (const std::string& axis : set)
            if (terms.contains(axis)) part.insert(axis);
        if (!part.empty()) parts.insert(part);
    }
    const auto is_within_another = [&](const std::set<std::string>& part) {
        return std::any_of(parts.begin(), parts.end(), [&](const auto& other) {
            return other != part && std::includes(other.begin(), other.end(), part.begin(), part.end());
        });
    };
    std::int64_t in_turn = 0, with_all = 1;
    std::set<std::string> reduced;
    for (const auto& part : parts) {
        if (is_within_another(part)) continue;
        std::int64_t product = 1;
        for (const std::string& axis : part) product = saturating_mul(product, terms.at(axis));
        in_turn = saturating_add(in_turn, product);
        reduced.insert(part.begin(), part.end());
    }
    for (const auto& [axis, n] : terms)
        if (!reduced.contains(axis)) with_all = saturating_mul(with_all, n);
    return saturating_mul(with_all, std::max<std::int64_t>(in_turn, 1));
}

}  // namespace

Execution plain_execution(const Diagram& diagram, const Extents& extents) {
    Execution e;
    e.working = DType::f64;
    for (const Array& array : diagram.arrays) {
        if (is_float(array.type) && epsilon(array.type) > epsilon(e.working)) e.working = DType::f32;
        e.kept.push_back(array.type);
    }
    for (const Equation& equation : diagram.equations)
        e.depth.push_back(equation.reduce ? terms_of(equation, extents) : 0);
    return e;
}

Execution execution_of(const Diagram& diagram, const Extents& extents, const SizedProgram& program) {
    Execution e;
    e.kept.resize(diagram.arrays.size());
    e.working = DType::f64;
    // The longest chunk of each axis, by name, as the derivation numbers the axes that it adds; and the most chunks of any loop.
    std::map<std::string, std::int64_t> chunk;
    std::int64_t most_chunks = 1;
    std::set<std::int64_t> streamed_extents;
    std::set<std::set<std::string>> together;  // the axes of each reduction
    for (std::size_t k = 0; k < program.kernels.size(); ++k) {
        const TileKernel& kernel = program.kernels[k];
        bool is_double = false;
        for (const Variable& v : kernel.variables) {
            is_double = is_double || v.memory_type == DType::f64 || program.diagram.array(v.array).type == DType::f64;
            // Loads and stores alone touch memory: what is computed has the working type.
            if (const auto id = diagram.find_array(program.diagram.array(v.array).name))
                e.kept[at(*id)] = v.memory_type;
        }
        if (!is_double) e.working = DType::f32;
        const auto see_loop = [&](const TileLoop& loop) {
            const std::int64_t extent = program.extents[at(loop.axis)],
                               size = chunk_of(loop, program.sizes[k], program.extents);
            std::int64_t& known = chunk[program.diagram.axis(loop.axis).name];
            known = std::max(known, size);
            streamed_extents.insert(extent);
            most_chunks = std::max(most_chunks, (extent + size - 1) / size);
        };
        const auto see_reduction = [&](const Compute& compute) {
            std::set<std::string> axes;
            for (const AxisId axis : compute.reduce_axes) axes.insert(program.diagram.axis(axis).name);
            if (compute.reduce) together.insert(axes);
        };
        for_each_statement(kernel.body, [&](const TileStatement& s) {
            if (const auto* compute = std::get_if<Compute>(&s)) see_reduction(*compute);
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) see_loop(**loop);
        });
    }
    for (const Equation& equation : diagram.equations) {
        std::map<std::string, std::int64_t> terms;
        bool is_streamed = false;
        for (const AxisId axis : equation.reduce_axes) {
            const auto loop = chunk.find(diagram.axis(axis).name);
            terms[diagram.axis(axis).name] = loop == chunk.end() ? extents[at(axis)]
                                                                 : std::min(loop->second, extents[at(axis)]);
            // An axis may run under the name of another one of its size.
            is_streamed = is_streamed || loop != chunk.end() || streamed_extents.contains(extents[at(axis)]);
        }
        e.depth.push_back(equation.reduce ? saturating_add(terms_in_turn(terms, together),
                                                           is_streamed ? roundings_a_chunk * most_chunks : 0)
                                          : 0);
    }
    return e;
}

}  // namespace napkin
