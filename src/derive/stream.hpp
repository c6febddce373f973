#pragma once
// What the calculus knows while it factors one reduction of a stream: the reduced axes, which arrays still run, and how
// they are computed.
#include <functional>
#include <unordered_map>
#include <vector>

#include "algebra/value_class.hpp"
#include "diagram/diagram.hpp"

namespace napkin {

class Stream {
public:
    std::vector<AxisId> axes;              ///< the reduced axes, the streamed axis among them
    std::function<bool(ArrayId)> running;  ///< a result ν of the same stream, in the same traversal
    /// The equation of a running result or of a map in the kernel; null for what comes from memory or from another
    /// traversal.
    std::function<const Equation*(ArrayId)> definition;
    /// provably > 0 at finite inputs, knowing what the reads were computed from
    std::function<bool(const Expr&)> positive;
    std::function<bool(const Expr&)> not_negative;  ///< provably ≥ 0
    std::function<bool(const Expr&)> whole;         ///< an integer, which wraps
    std::function<ValueClass(const Expr&)> values;  ///< that the expression can have where inputs are finite
    /// The expression, whose reads may be taken where the condition does not hold (see diagram/guards.hpp).
    std::function<Expr(const Expr&, const Expr& condition)> with_guarded_reads;

    [[nodiscard]] bool runs(const Expr& e) const { return classes(e).runs; }        ///< reads a running result
    [[nodiscard]] bool streams(const Expr& e) const { return classes(e).streams; }  ///< varies along the reduced axes
    [[nodiscard]] bool mixed(const Expr& e) const { return runs(e) && streams(e); }
    [[nodiscard]] bool fixed(const Expr& e) const { return !runs(e) && !streams(e); }

    /// Maps of the kernel written out, for proofs; large ones stay reads.
    [[nodiscard]] Expr written_out(const Expr& e) const;

private:
    struct Classes {
        bool runs = false, streams = false;
    };
    [[nodiscard]] Classes classes(const Expr& e) const;
    mutable std::unordered_map<Expr, Classes> known_;  // by node; holds the nodes, so that no address is used twice
};

}  // namespace napkin
