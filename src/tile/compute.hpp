#pragma once
// The arithmetic of the counting interpreter: Compute statements over the buffers of one core, in double precision.
#include <memory>
#include <unordered_map>
#include <vector>

#include "tile/buffer.hpp"
#include "tile/program.hpp"
#include "tile/strip.hpp"

namespace napkin {

/// Compiles the statements of a kernel as they first run. Holds references: keep it no longer than what it was made from.
class Arithmetic {
public:
    Arithmetic(const TileKernel& kernel, const Extents& extents) : kernel_(kernel), extents_(extents) {}

    /// Runs the statement over the tile. `buffers` are the core's, by VariableId; the target's is placed when it is not alive. Throws
    /// InternalError where the statement reads what is not there.
    void run(const Compute& compute, const Tile& tile, std::vector<Buffer>& buffers);

private:
    /// A Compute whose expressions are compiled, with the axes it runs over.
    struct Compiled {
        std::vector<AxisId> target_axes;
        std::vector<AxisId> outer_reduce_axes;
        AxisId strip_axis = -1;  ///< the innermost reduced axis; of a map, the innermost target axis; -1 at a scalar
        StripProgram body;
        std::vector<StripProgram> carry;  ///< none or one, evaluated at single points
    };
    /// How the leaves of a strip program move when the axes move, for the current tile.
    struct LeafAddresses {
        std::vector<const double*> data;
        std::vector<std::int64_t> offset;               ///< at axis coordinates 0
        std::vector<std::vector<std::int64_t>> stride;  ///< by leaf and AxisId
    };

    [[nodiscard]] Compiled compile(const Compute& c) const;
    [[nodiscard]] LeafAddresses addresses(const StripProgram& program, const Tile& tile,
                                          const std::vector<Buffer>& buffers) const;
    void point_leaves(const LeafAddresses& leaves, const std::vector<AxisId>& axes, AxisId strip);
    template <class F>
    void for_each_strip(Compiled& c, const LeafAddresses& body, const Tile& tile, const std::vector<AxisId>& axes, F f);
    void map_points(Compiled& c, const LeafAddresses& body, const Tile& tile, std::vector<double>& result);
    void reduce_points(ReduceOp op, Compiled& c, const LeafAddresses& body, const LeafAddresses& carry,
                       const Tile& tile, std::vector<double>& result);

    const TileKernel& kernel_;
    const Extents& extents_;
    std::unordered_map<const Compute*, std::unique_ptr<Compiled>> compiled_;
    std::vector<std::int64_t> point_;
    std::vector<StripRead> leaves_;
};

}  // namespace napkin
