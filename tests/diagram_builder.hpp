#pragma once
// Builds diagrams without a parser, for the tests of what lies below the syntax.
#include <string>
#include <utility>
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

struct Builder {
    Diagram d;

    AxisId axis(const std::string& name, std::optional<Size> size = std::nullopt) {
        d.axes.push_back({name, std::move(size), {}});
        return AxisId::of(d.axes.size() - 1);
    }
    ArrayId input(const std::string& name, std::vector<AxisId> axes, DType type = DType::f32) {
        const ArrayId id = add_array(d, name, std::move(axes), type, ArrayRole::input);
        d.inputs.push_back(id);
        return id;
    }
    /// name[axes] = body, an output.
    ArrayId map(const std::string& name, std::vector<AxisId> axes, Expr body, DType type = DType::f32) {
        const ArrayId id = add_array(d, name, std::move(axes), type, ArrayRole::output);
        d.outputs.push_back(id);
        d.equations.push_back({id, std::nullopt, {}, std::move(body), {}, {}});
        return id;
    }
    /// name[axes] = op(over) body, an output.
    ArrayId reduce(const std::string& name, std::vector<AxisId> axes, ReduceOp op, std::vector<AxisId> over, Expr body,
                   DType type = DType::f32) {
        const ArrayId id = map(name, std::move(axes), std::move(body), type);
        d.equations.back().reduce = op;
        d.equations.back().reduce_axes = std::move(over);
        return id;
    }
    /// The read of an array at its own axes.
    [[nodiscard]] Expr self(ArrayId id) const { return read_self(d, id); }
};

inline Expr operator+(const Expr& a, const Expr& b) { return binary(BinaryOp::add, a, b); }
inline Expr operator-(const Expr& a, const Expr& b) { return binary(BinaryOp::sub, a, b); }
inline Expr operator*(const Expr& a, const Expr& b) { return binary(BinaryOp::mul, a, b); }
inline Expr operator/(const Expr& a, const Expr& b) { return binary(BinaryOp::div, a, b); }

}  // namespace napkin
