#pragma once
// What a statement of a kernel gives over a tile, from arrays that are kept whole, in double precision: row by row,
// along the longest axis of the tile.
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "algebra/number.hpp"
#include "algebra/reduce.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/row_program.hpp"

namespace napkin {

/// What a group has of every axis.
struct CoreTile {
    std::vector<std::int64_t> begin, count;  ///< by AxisId

    void set(AxisId axis, std::int64_t from, std::int64_t size, std::int64_t end) {
        begin[at(axis)] = from;
        count[at(axis)] = std::min(size, end - from);
    }
};

/// Calls f with the point moved over the tile's box of the axes, the last axis fastest.
template <class F>
void for_each_point_of(const std::vector<AxisId>& axes, const CoreTile& tile, std::vector<std::int64_t>& point, const F& f) {
    for (const AxisId axis : axes) {
        if (tile.count[at(axis)] <= 0) return;
        point[at(axis)] = tile.begin[at(axis)];
    }
    while (true) {
        f();
        std::size_t i = axes.size();
        for (; i > 0; --i) {
            const std::size_t a = at(axes[i - 1]);
            if (++point[a] < tile.begin[a] + tile.count[a]) break;
            point[a] = tile.begin[a];
        }
        if (i == 0) return;
    }
}

/// carry ⊕ (⊕ over reduce_axes of body).
struct TileExpression {
    const Expr& body;
    std::optional<ReduceOp> reduce;
    const std::vector<AxisId>& reduce_axes;
    const Expr& carry;  ///< null: none
};

class TileEvaluator {
public:
    /// Both must live as long as this, and so must the expressions that it evaluates.
    TileEvaluator(const Diagram& diagram, const Extents& extents)
        : diagram_(diagram), extents_(extents), kinds_(kinds_of(diagram)) {}

    /// At every point of the tile of `target`, row-major. `values` holds every array that is read, whole, and at one
    /// place as long as this lives. Throws InternalError where one is not there.
    std::vector<Number> evaluate(const Values& values, ArrayId target, const CoreTile& tile, const TileExpression& e);

private:
    using Row = RowProgram<double>;
    struct Compiled {
        Kind kind;  ///< in which values are accumulated
        Row body;
        std::vector<Row> carry;  ///< none or one
    };
    Compiled& compiled(const Values& values, ArrayId target, AxisId row, const TileExpression& e);
    template <class Cell>
    void run(Compiled& c, ArrayId target, AxisId row, const CoreTile& tile, const TileExpression& e,
             std::vector<Number>& result);

    const Diagram& diagram_;
    const Extents& extents_;
    Kinds kinds_;
    /// by target, row, body and carry
    std::map<std::tuple<ArrayId, AxisId, const ExprNode*, const ExprNode*>, Compiled> compiled_;
};

}  // namespace napkin
