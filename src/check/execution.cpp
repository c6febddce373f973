#include "check/execution.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "cost/saturate.hpp"

namespace napkin {

namespace {

/// Roundings that a chunk adds to what was summed before it: the correction's exponential with its argument, the products with it, the
/// merge of a shifted moment, the addition.
constexpr std::int64_t roundings_a_chunk = 8;

std::size_t at(int id) { return static_cast<std::size_t>(id); }

std::int64_t terms_of(const Equation& equation, const Extents& extents) {
    std::int64_t terms = 1;
    for (const AxisId axis : equation.reduce_axes) terms = saturating_mul(terms, extents[at(axis)]);
    return terms;
}

void for_each_loop(const std::vector<TileStatement>& body, const std::function<void(const TileLoop&)>& f) {
    for (const TileStatement& s : body) {
        const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s);
        if (loop == nullptr) continue;
        f(**loop);
        for_each_loop((*loop)->body, f);
    }
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

Execution execution_of(const Diagram& diagram, const Extents& extents, const TileProgram& program) {
    Execution e;
    e.kept.resize(diagram.arrays.size());
    e.working = DType::f64;
    // The longest chunk of each axis, by name, as the derivation numbers the axes that it adds; and the most chunks of any loop.
    std::map<std::string, std::int64_t> chunk;
    std::int64_t most_chunks = 1;
    std::set<std::int64_t> streamed_extents;
    for (const TileKernel& kernel : program.kernels) {
        bool is_double = false;
        for (const Variable& v : kernel.variables) {
            is_double = is_double || v.memory_type == DType::f64 || program.diagram.array(v.array).type == DType::f64;
            // Loads and stores alone touch memory: what is computed has the working type.
            if (const auto id = diagram.find_array(program.diagram.array(v.array).name))
                e.kept[at(*id)] = v.memory_type;
        }
        if (!is_double) e.working = DType::f32;
        for_each_loop(kernel.body, [&](const TileLoop& loop) {
            const std::int64_t extent = program.extents[at(loop.axis)],
                               size = std::clamp<std::int64_t>(loop.chunk, 1, extent);
            std::int64_t& known = chunk[program.diagram.axis(loop.axis).name];
            known = std::max(known, size);
            streamed_extents.insert(extent);
            most_chunks = std::max(most_chunks, (extent + size - 1) / size);
        });
    }
    for (const Equation& equation : diagram.equations) {
        std::int64_t terms = 1;
        bool is_streamed = false;
        for (const AxisId axis : equation.reduce_axes) {
            const auto loop = chunk.find(diagram.axis(axis).name);
            terms = saturating_mul(terms,
                                   loop == chunk.end() ? extents[at(axis)] : std::min(loop->second, extents[at(axis)]));
            // An axis may run under the name of another one of its size.
            is_streamed = is_streamed || loop != chunk.end() || streamed_extents.contains(extents[at(axis)]);
        }
        e.depth.push_back(equation.reduce ? saturating_add(terms, is_streamed ? roundings_a_chunk * most_chunks : 0) : 0);
    }
    return e;
}

}  // namespace napkin
