#pragma once
// The arithmetic of the counting interpreter: Compute statements over the buffers of one core, in double precision.
#include <memory>
#include <unordered_map>
#include <vector>

#include "algebra/number.hpp"
#include "diagram/row_program.hpp"
#include "tile/buffer.hpp"
#include "tile/program.hpp"

namespace napkin {

/// Compiles each statement when it first runs. Holds references to the kernel and the extents, which must outlive it.
class Arithmetic {
public:
    /// `round_casts`: casts to a float type round. Without it, a cast only makes a value an integer or a real number.
    Arithmetic(const TileKernel& kernel, const Extents& extents, bool round_casts)
        : kernel_(kernel),
          extents_(extents),
          round_casts_(round_casts),
          kinds_([&kernel](ArrayId read) { return kernel.variables[as_variable(read)].memory_type; }) {}

    /// Runs the statement over the tile. `buffers` are the core's, by VariableId. A target that is not alive is placed.
    /// Throws InternalError where the statement reads what is not there.
    void run(const Compute& compute, const Tile& tile, std::vector<Buffer>& buffers);

private:
    using Row = RowProgram<double>;
    /// A Compute whose expressions are compiled, with the axes it runs over.
    struct Compiled {
        std::vector<AxisId> target_axes;
        std::vector<AxisId> outer_reduce_axes;
        AxisId row_axis;  ///< the innermost reduced axis; of a map, the innermost target axis; -1 at a scalar
        Kind kind;        ///< in which the body's values are accumulated
        Row body;
        std::vector<Row> carry;  ///< none or one, evaluated at single points
    };

    /// The compiled statement, with its reads located in the core's buffers.
    Compiled& compiled(const Compute& compute, const Tile& tile, const std::vector<Buffer>& buffers);
    template <class Cell, class F>
    void for_each_row(Compiled& c, const Tile& tile, F f);
    template <class Cell>
    void map_points(Compiled& c, const Tile& tile, Column& result);
    template <class Cell>
    void reduce_points(ReduceOp op, Compiled& c, const Tile& tile, Column& result);
    template <class Cell>
    void run_points(const Compute& compute, Compiled& c, const Tile& tile, Column& result);

    const TileKernel& kernel_;
    const Extents& extents_;
    bool round_casts_;
    Kinds kinds_;
    std::unordered_map<const Compute*, std::unique_ptr<Compiled>> compiled_;
    std::vector<std::int64_t> point_;  ///< coordinate of every axis
};

}  // namespace napkin
