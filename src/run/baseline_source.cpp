#include "run/baseline_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emit/cpu/prelude.hpp"
#include "run/contraction.hpp"

namespace napkin {

namespace {

/// Values that an inner loop takes at a time: its buffer stays in the first-level cache.
constexpr std::int64_t block = 1024;

// Branch-free scalar functions, so that the compiler vectorises the loops around them. exp is Cody and Waite's reduction with
// a polynomial of degree 6 (f32); the rest are the C library's, in its vector forms where there are any.
constexpr std::string_view prelude = R"(#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
#define NAPKIN_WIDE_LIBMVEC
#endif
#define NAPKIN_VECTOR __attribute__((simd("notinbranch")))
extern "C" {
NAPKIN_VECTOR float logf(float) noexcept;
NAPKIN_VECTOR float sinf(float) noexcept;
NAPKIN_VECTOR float cosf(float) noexcept;
NAPKIN_VECTOR float powf(float, float) noexcept;
NAPKIN_VECTOR double exp(double) noexcept;
NAPKIN_VECTOR double log(double) noexcept;
NAPKIN_VECTOR double sin(double) noexcept;
NAPKIN_VECTOR double cos(double) noexcept;
NAPKIN_VECTOR double pow(double, double) noexcept;
#ifdef NAPKIN_WIDE_LIBMVEC
NAPKIN_VECTOR float tanhf(float) noexcept;
NAPKIN_VECTOR float erff(float) noexcept;
NAPKIN_VECTOR double tanh(double) noexcept;
NAPKIN_VECTOR double erf(double) noexcept;
#endif
}
#endif
namespace {
inline float exponential(float x) {
    const float shifted = x * 1.44269504088896341f + 12582912.0f;
    const float n = shifted - 12582912.0f;
    const float r = (x - n * 0.693147182464599609375f) + n * 1.904654299957768e-9f;
    float p = 1.382355228e-3f;
    p = p * r + 8.3688236773e-3f;
    p = p * r + 4.1668236255e-2f;
    p = p * r + 0.16666519641f;
    p = p * r + 0.49999994039f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    std::int32_t bits, exponent;
    std::memcpy(&bits, &p, 4);
    std::memcpy(&exponent, &shifted, 4);
    bits = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits) + (static_cast<std::uint32_t>(exponent) << 23));
    float y;
    std::memcpy(&y, &bits, 4);
    y = x <= 88.7228394f ? y : x + __builtin_inff();
    return x < -87.33654f ? 0.0f : y;
}
inline double exponential(double x) { return exp(x); }
inline float logarithm(float x) { return logf(x); }
inline double logarithm(double x) { return log(x); }
inline float hyperbolic_tangent(float x) { return tanhf(x); }
inline double hyperbolic_tangent(double x) { return tanh(x); }
inline float error_function(float x) { return erff(x); }
inline double error_function(double x) { return erf(x); }
inline float sine(float x) { return sinf(x); }
inline double sine(double x) { return sin(x); }
inline float cosine(float x) { return cosf(x); }
inline double cosine(double x) { return cos(x); }
inline float power(float x, float y) { return powf(x, y); }
inline double power(double x, double y) { return pow(x, y); }
template <class T> inline T least(T a, T b) { return a < b || a != a ? a : b; }
template <class T> inline T greatest(T a, T b) { return a > b || a != a ? a : b; }
inline long floor_divide(long a, long b) { return a / b - (a % b < 0 ? 1 : 0); }
template <class T> inline T add(T a, T b) { return a + b; }
template <class T> inline T multiply(T a, T b) { return a * b; }
inline float to_bf16(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, 4);
    bits = x == x ? (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u : bits;
    std::memcpy(&x, &bits, 4);
    return x;
}
// The rest of a floored quotient: it has the sign of the divisor.
template <class T> inline T remainder_of(T a, T b) {
    const T rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <class T> inline T to_integer(T x) { return x != x ? T(0) : std::trunc(std::fmin(std::fmax(x, T(-2147483648.0)), T(2147483647.0))); }
// Rounds to `digits` bits after the leading one, with the least exponent and the largest value of a small float.
template <class T> inline T to_small(T x, int digits, int least_exponent, T largest, T beyond) {
    int exponent;
    std::frexp(x, &exponent);
    exponent = exponent - 1 < least_exponent ? least_exponent : exponent - 1;
    const T y = std::ldexp(std::nearbyint(std::ldexp(x, digits - exponent)), exponent - digits);
    return std::fabs(y) > largest ? std::copysign(beyond, y) : y;
}
// ⊕ over n values: sixteen running results side by side.
template <real (*op)(real, real)> inline real fold(const real* values, long n, real identity) {
    real lanes[16];
    for (int i = 0; i < 16; ++i) lanes[i] = identity;
    long i = 0;
    for (; i + 16 <= n; i += 16) {
        for (int j = 0; j < 16; ++j) lanes[j] = op(lanes[j], values[i + j]);
    }
    for (int j = 0; i + j < n; ++j) lanes[j] = op(lanes[j], values[i + j]);
    for (int width = 8; width > 0; width /= 2) {
        for (int j = 0; j < width; ++j) lanes[j] = op(lanes[j], lanes[j + width]);
    }
    return lanes[0];
}
}  // namespace
)";

std::string literal(double value) {
    if (std::isnan(value)) return "real(__builtin_nan(\"\"))";
    if (std::isinf(value)) return value > 0 ? "real(__builtin_inf())" : "real(-__builtin_inf())";
    return fmt::format("real({:a})", value);
}

std::string_view combine(ReduceOp op) {
    switch (op) {
        case ReduceOp::sum: return "add";
        case ReduceOp::prod: return "multiply";
        case ReduceOp::max: return "greatest";
        case ReduceOp::min: return "least";
    }
    throw InternalError("unknown reduction");
}

/// Loop variables are i0, i1, …: one for each AxisId.
std::string variable(AxisId axis) { return fmt::format("i{}", axis); }

class Writer {
public:
    Writer(const Diagram& diagram, const Extents& extents) : diagram_(diagram), extents_(extents) {}

    /// Offset of a read as a sum over loop variables.
    [[nodiscard]] std::string offset(const Read& r) const {
        const Affine flat = flatten(r);
        std::string text = fmt::format("{}", flat.constant);
        for (const auto& [axis, coefficient] : flat.terms)
            text += fmt::format(" + {}L * {}", coefficient, variable(axis));
        const std::vector<std::int64_t> strides = dense_strides(diagram_, r.array, extents_);
        for (std::size_t i = 0; i < r.indices.size(); ++i)
            if (!r.indices[i].affine())
                text += fmt::format(" + {}L * {}", strides[i], whole(with_sizes(r.indices[i], extents_).value()));
        return text;
    }

    /// The part of the read's place in the dense array that is an affine form.
    [[nodiscard]] Affine flatten(const Read& r) const {
        const std::vector<std::int64_t> strides = dense_strides(diagram_, r.array, extents_);
        Affine flat;
        for (std::size_t i = 0; i < r.indices.size(); ++i) {
            if (!r.indices[i].affine()) continue;
            flat.constant += r.indices[i].affine()->constant * strides[i];
            for (const auto& [axis, coefficient] : r.indices[i].affine()->terms)
                flat.add(axis, coefficient * strides[i]);
        }
        return flat;
    }

    [[nodiscard]] std::string expression(const Expr& e) const {
        if (const std::optional<double> value = known(e)) return literal(*value);
        if (const auto* i = as<AxisIndex>(e)) return fmt::format("real(int({}))", variable(i->axis));
        if (const auto* r = as<Read>(e)) return fmt::format("a{}[{}]", r->array, offset(*r));
        if (const auto* u = as<Unary>(e)) return unary_call(u->op, expression(u->a));
        if (const auto* b = as<Binary>(e)) return binary_call(b->op, expression(b->a), expression(b->b));
        if (const auto* s = as<Select>(e)) {
            return fmt::format("({} ? {} : {})", condition(s->condition), expression(s->a), expression(s->b));
        }
        if (const auto* c = as<Cast>(e)) return cast_call(c->type, expression(c->a));
        throw InternalError("expression of an unknown kind");
    }

private:
    /// The value of an index.
    [[nodiscard]] std::string whole(const Expr& e) const {
        if (const auto* c = as<Constant>(e)) return fmt::format("{}L", static_cast<std::int64_t>(c->value));
        if (const auto* i = as<AxisIndex>(e)) return variable(i->axis);
        if (const auto* r = as<Read>(e)) return fmt::format("long(a{}[{}])", r->array, offset(*r));
        if (const auto* u = as<Unary>(e)) return fmt::format("(-{})", whole(u->a));
        const auto* b = as<Binary>(e);
        internal_check(b != nullptr, "an index of an unknown kind");
        const std::string x = whole(b->a), y = whole(b->b);
        switch (b->op) {
            case BinaryOp::floor_div: return fmt::format("floor_divide({}, {})", x, y);
            case BinaryOp::mod: return fmt::format("({0} - {1} * floor_divide({0}, {1}))", x, y);
            case BinaryOp::min: return fmt::format("least({}, {})", x, y);
            case BinaryOp::max: return fmt::format("greatest({}, {})", x, y);
            default: return fmt::format("({} {} {})", x, name(b->op), y);
        }
    }

    /// The value of an expression that reads nothing and depends on no axis' coordinate.
    [[nodiscard]] std::optional<double> known(const Expr& e) const {
        if (const auto* c = as<Constant>(e)) return c->value;
        if (const auto* s = as<AxisSize>(e)) return static_cast<double>(extents_[static_cast<std::size_t>(s->axis)]);
        if (const auto* u = as<Unary>(e)) {
            const auto a = known(u->a);
            return a ? std::optional(apply(u->op, *a)) : std::nullopt;
        }
        if (const auto* b = as<Binary>(e)) {
            const auto x = known(b->a);
            const auto y = known(b->b);
            return x && y ? std::optional(apply(b->op, *x, *y)) : std::nullopt;
        }
        return std::nullopt;
    }

    [[nodiscard]] std::string condition(const Expr& e) const {
        if (const auto* b = as<Binary>(e); b && !known(e)) {
            if (const std::string_view op = comparison(b->op); !op.empty()) {
                return fmt::format("({} {} {})", expression(b->a), op, expression(b->b));
            }
            if (b->op == BinaryOp::logical_and) return fmt::format("({} & {})", condition(b->a), condition(b->b));
            if (b->op == BinaryOp::logical_or) return fmt::format("({} | {})", condition(b->a), condition(b->b));
        }
        return fmt::format("({} != 0)", expression(e));
    }

    static std::string_view comparison(BinaryOp op) {
        switch (op) {
            case BinaryOp::lt: return "<";
            case BinaryOp::le: return "<=";
            case BinaryOp::gt: return ">";
            case BinaryOp::ge: return ">=";
            case BinaryOp::eq: return "==";
            case BinaryOp::ne: return "!=";
            default: return "";
        }
    }

    static std::string unary_call(UnaryOp op, const std::string& a) {
        switch (op) {
            case UnaryOp::neg: return fmt::format("(-{})", a);
            case UnaryOp::exp: return fmt::format("exponential({})", a);
            case UnaryOp::log: return fmt::format("logarithm({})", a);
            case UnaryOp::tanh: return fmt::format("hyperbolic_tangent({})", a);
            case UnaryOp::erf: return fmt::format("error_function({})", a);
            case UnaryOp::sqrt: return fmt::format("std::sqrt({})", a);
            case UnaryOp::rsqrt: return fmt::format("(real(1) / std::sqrt({}))", a);
            case UnaryOp::abs: return fmt::format("std::fabs({})", a);
            case UnaryOp::logical_not: return fmt::format("({} == 0 ? real(1) : real(0))", a);
            case UnaryOp::sin: return fmt::format("sine({})", a);
            case UnaryOp::cos: return fmt::format("cosine({})", a);
            case UnaryOp::floor: return fmt::format("std::floor({})", a);
        }
        throw InternalError("unknown unary operator");
    }

    static std::string binary_call(BinaryOp op, const std::string& a, const std::string& b) {
        switch (op) {
            case BinaryOp::add: return fmt::format("({} + {})", a, b);
            case BinaryOp::sub: return fmt::format("({} - {})", a, b);
            case BinaryOp::mul: return fmt::format("({} * {})", a, b);
            case BinaryOp::div: return fmt::format("({} / {})", a, b);
            case BinaryOp::floor_div: return fmt::format("std::floor({} / {})", a, b);
            case BinaryOp::mod: return fmt::format("remainder_of({}, {})", a, b);
            case BinaryOp::pow: return fmt::format("power({}, {})", a, b);
            case BinaryOp::min: return fmt::format("least({}, {})", a, b);
            case BinaryOp::max: return fmt::format("greatest({}, {})", a, b);
            case BinaryOp::logical_and: return fmt::format("(({} != 0) & ({} != 0) ? real(1) : real(0))", a, b);
            case BinaryOp::logical_or: return fmt::format("(({} != 0) | ({} != 0) ? real(1) : real(0))", a, b);
            default: return fmt::format("({} {} {} ? real(1) : real(0))", a, comparison(op), b);
        }
    }

    static std::string cast_call(DType type, const std::string& a) {
        switch (type) {
            case DType::f64: return a;
            case DType::f32: return fmt::format("real(float({}))", a);
            case DType::f16: return fmt::format("to_small<real>({}, 10, -14, real(65504), real(__builtin_inf()))", a);
            case DType::bf16: return fmt::format("real(to_bf16(float({})))", a);
            case DType::e4m3: return fmt::format("to_small<real>({}, 3, -6, real(448), real(__builtin_nan(\"\")))", a);
            case DType::e5m2: return fmt::format("to_small<real>({}, 2, -14, real(57344), real(__builtin_inf()))", a);
            case DType::i32:
            case DType::i64: return fmt::format("to_integer<real>({})", a);
        }
        throw InternalError("unknown type");
    }

    const Diagram& diagram_;
    const Extents& extents_;
};

/// How an equation's loops are ordered: which axis runs innermost, and whether that is one of the target's.
struct Order {
    std::optional<AxisId> inner;  ///< none: the target is a scalar and nothing is reduced
    bool inner_in_target = true;
    std::vector<AxisId> outer;    ///< of the target, without inner
    std::vector<AxisId> reduced;  ///< without inner
};

/// How well an innermost loop over the axis runs: neighbours beside each other in memory are best, gathers worst.
int vector_score(const Writer& writer, const Equation& equation, AxisId axis) {
    int score = 0;
    visit(equation.body, [&](const Expr& e) {
        if (const auto* r = as<Read>(e)) {
            const std::int64_t stride = writer.flatten(*r).coefficient(axis);
            score += stride == 1 ? 2 : stride == 0 ? 1 : -2;
        }
    });
    return score;
}

Order order_of(const Diagram& diagram, const Equation& equation, const Extents& extents) {
    const Writer writer(diagram, extents);
    Order order;
    order.outer = diagram.array(equation.target).axes;
    order.reduced = equation.reduce_axes;
    int best = 0;
    if (!order.outer.empty()) {
        order.inner = order.outer.back();
        best = vector_score(writer, equation, *order.inner) +
               (extents[static_cast<std::size_t>(*order.inner)] >= 16 ? 1 : -4);
    }
    for (const AxisId axis : order.reduced) {
        const int score = vector_score(writer, equation, axis) + (extents[static_cast<std::size_t>(axis)] >= 16 ? 0 : -4);
        if (order.inner && score <= best) continue;
        best = score;
        order.inner = axis;
        order.inner_in_target = false;
    }
    if (order.inner) {
        auto& list = order.inner_in_target ? order.outer : order.reduced;
        list.erase(std::find(list.begin(), list.end(), *order.inner));
    }
    return order;
}

std::int64_t extent(const Extents& extents, AxisId axis) { return extents[static_cast<std::size_t>(axis)]; }

void write_equation(std::string& out, const Diagram& diagram, const Extents& extents, std::size_t number) {
    const Equation& equation = diagram.equations[number];
    const Writer writer(diagram, extents);
    const Order order = order_of(diagram, equation, extents);
    const std::string body = writer.expression(equation.body);
    std::string indent = "    ";
    const auto line = [&](const std::string& text) { out += indent + text + "\n"; };
    const auto open = [&](const std::string& text) {
        line(text + " {");
        indent += "    ";
    };
    const auto close = [&] {
        indent.resize(indent.size() - 4);
        line("}");
    };

    out += fmt::format(
        "\n// {}\nextern \"C\" void equation_{}(const real* const* arrays, real* target, long begin, long end, "
        "[[maybe_unused]] long reduce_begin, [[maybe_unused]] long reduce_end) {{\n",
        to_string(diagram, equation), number);
    line("[[maybe_unused]] const FlushToZero flush_to_zero;");
    for (const ArrayId array : read_arrays(equation.body)) line(fmt::format("const real* a{0} = arrays[{0}];", array));
    open("for (long item = begin; item < end; ++item)");

    // The item's number is the coordinates of the outer axes, and last the block of the inner one.
    line("[[maybe_unused]] long rest = item;");
    if (order.inner && order.inner_in_target) {
        const std::int64_t size = extent(extents, *order.inner);
        line(fmt::format("const long first = rest % {0} * {1}, count = {2} - first < {1} ? {2} - first : {1};",
                         (size + block - 1) / block, block, size));
        line(fmt::format("rest /= {};", (size + block - 1) / block));
    }
    for (auto axis = order.outer.rbegin(); axis != order.outer.rend(); ++axis) {
        line(fmt::format("[[maybe_unused]] const long {} = rest % {};", variable(*axis), extent(extents, *axis)));
        line(fmt::format("rest /= {};", extent(extents, *axis)));
    }
    const Expr target = read_self(diagram, equation.target);
    const std::string identity_text = equation.reduce ? literal(identity(*equation.reduce)) : "";
    const auto open_reduced = [&] {
        for (std::size_t i = 0; i < order.reduced.size(); ++i) {
            const bool outermost = i == 0;
            open(fmt::format("for (long {0} = {1}; {0} < {2}; ++{0})", variable(order.reduced[i]),
                             outermost ? "reduce_begin" : "0",
                             outermost ? "reduce_end" : fmt::format("{}", extent(extents, order.reduced[i]))));
        }
    };

    if (!order.inner) {
        line(fmt::format("target[0] = {};", body));
    } else if (order.inner_in_target && !equation.reduce) {
        line(fmt::format("const long {} = first;", variable(*order.inner)));
        line(fmt::format("real* row = target + {};", writer.offset(*as<Read>(target))));
        line("#pragma GCC ivdep");
        open("for (long j = 0; j < count; ++j)");
        line(fmt::format("const long {0} = first + j;", variable(*order.inner)));
        line(fmt::format("row[j] = {};", body));
        close();
    } else if (order.inner_in_target) {
        line(fmt::format("alignas(64) real sums[{}];", block));
        line(fmt::format("for (long j = 0; j < count; ++j) sums[j] = {};", identity_text));
        open_reduced();
        line("#pragma GCC ivdep");
        open("for (long j = 0; j < count; ++j)");
        line(fmt::format("const long {0} = first + j;", variable(*order.inner)));
        line(fmt::format("sums[j] = {}(sums[j], {});", combine(*equation.reduce), body));
        close();
        for (std::size_t i = 0; i < order.reduced.size(); ++i) close();
        line(fmt::format("const long {} = first;", variable(*order.inner)));
        line(fmt::format("real* row = target + {};", writer.offset(*as<Read>(target))));
        line("for (long j = 0; j < count; ++j) row[j] = sums[j];");
    } else {
        line(fmt::format("real total = {};", identity_text));
        open_reduced();
        const bool only = order.reduced.empty();
        const std::string stop = only ? "reduce_end" : fmt::format("{}", extent(extents, *order.inner));
        open(fmt::format("for (long first = {}; first < {}; first += {})", only ? "reduce_begin" : "0", stop, block));
        line(fmt::format("const long count = {0} - first < {1} ? {0} - first : {1};", stop, block));
        line(fmt::format("alignas(64) real values[{}];", block));
        line("#pragma GCC ivdep");
        open("for (long j = 0; j < count; ++j)");
        line(fmt::format("const long {0} = first + j;", variable(*order.inner)));
        line(fmt::format("values[j] = {};", body));
        close();
        line(fmt::format("total = {0}(total, fold<{0}>(values, count, {1}));", combine(*equation.reduce), identity_text));
        close();
        for (std::size_t i = 0; i < order.reduced.size(); ++i) close();
        line(fmt::format("target[{}] = total;", writer.offset(*as<Read>(target))));
    }
    close();
    out += "}\n";
}

}  // namespace

LoopSpace loop_space(const Diagram& diagram, const Equation& equation, const Extents& extents) {
    const Order order = order_of(diagram, equation, extents);
    LoopSpace space;
    for (const AxisId axis : order.outer) space.items *= extent(extents, axis);
    if (order.inner && order.inner_in_target) space.items *= (extent(extents, *order.inner) + block - 1) / block;
    if (!order.reduced.empty()) {
        space.reduce_items = extent(extents, order.reduced.front());
    } else if (order.inner && !order.inner_in_target) {
        space.reduce_items = extent(extents, *order.inner);
    }
    return space;
}

std::string baseline_source(const Diagram& diagram, const Extents& extents, const std::vector<std::size_t>& equations,
                            bool use_double) {
    std::string text = fmt::format("// {}: one function for each equation, nothing fused.\nusing real = {};\n",
                                   diagram.name, use_double ? "double" : "float");
    text += cpu::flush_to_zero_text();
    text += prelude;
    for (const std::size_t number : equations) write_equation(text, diagram, extents, number);
    return text;
}

}  // namespace napkin
