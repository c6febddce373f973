#include "run/baseline_source.hpp"

#include <fmt/format.h>

#include <cmath>

#include "emit/cpu/prelude.hpp"
#include "emit/emit_index.hpp"
#include "emit/operator_text.hpp"
#include "run/contraction.hpp"
#include "support/ranges.hpp"

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
// The names hide those of the C library; they are what the operations of expressions are called (emit/operator_text.cpp).
namespace loops {
namespace {
inline float exp(float x) {
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
inline double exp(double x) { return ::exp(x); }
inline float log(float x) { return logf(x); }
inline double log(double x) { return ::log(x); }
inline float tanh(float x) { return tanhf(x); }
inline double tanh(double x) { return ::tanh(x); }
inline float erf(float x) { return erff(x); }
inline double erf(double x) { return ::erf(x); }
inline float sin(float x) { return sinf(x); }
inline double sin(double x) { return ::sin(x); }
inline float cos(float x) { return cosf(x); }
inline double cos(double x) { return ::cos(x); }
inline float pow(float x, float y) { return powf(x, y); }
inline double pow(double x, double y) { return ::pow(x, y); }
inline real sqrt(real x) { return std::sqrt(x); }
inline real rsqrt(real x) { return real(1) / std::sqrt(x); }
inline real abs(real x) { return std::fabs(x); }
inline real floor(real x) { return std::floor(x); }
template <class T> inline T minimum(T a, T b) { return a < b || a != a ? a : b; }
template <class T> inline T maximum(T a, T b) { return a > b || a != a ? a : b; }
inline long floor_div(long a, long b) { return a / b - (a % b < 0 ? 1 : 0); }
inline long floor_mod(long a, long b) { return a - b * floor_div(a, b); }
inline long min_index(long a, long b) { return a < b ? a : b; }
inline long max_index(long a, long b) { return a > b ? a : b; }
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
template <class T> inline T fmod(T a, T b) {
    const T rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
inline real round_i32(real x) { return x != x ? real(0) : std::trunc(std::fmin(std::fmax(x, real(-2147483648.0)), real(2147483647.0))); }
inline real round_i64(real x) { return round_i32(x); }
inline real round_f64(real x) { return x; }
inline real round_f32(real x) { return real(float(x)); }
inline real round_bf16(real x) { return real(to_bf16(float(x))); }
// Rounds to `digits` bits after the leading one, with the least exponent and the largest value of a small float.
template <class T> inline T to_small(T x, int digits, int least_exponent, T largest, T beyond) {
    int exponent;
    std::frexp(x, &exponent);
    exponent = exponent - 1 < least_exponent ? least_exponent : exponent - 1;
    const T y = std::ldexp(std::nearbyint(std::ldexp(x, digits - exponent)), exponent - digits);
    return std::fabs(y) > largest ? std::copysign(beyond, y) : y;
}
inline real round_f16(real x) { return to_small<real>(x, 10, -14, real(65504), real(__builtin_inf())); }
inline real round_e4m3(real x) { return to_small<real>(x, 3, -6, real(448), real(__builtin_nan(""))); }
inline real round_e5m2(real x) { return to_small<real>(x, 2, -14, real(57344), real(__builtin_inf())); }
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
        case ReduceOp::max: return "maximum";
        case ReduceOp::min: return "minimum";
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
                text += fmt::format(
                    " + {}L * {}", strides[i],
                    writers::index_text(with_sizes(r.indices[i], extents_), variable, [&](const Read& element) {
                        return fmt::format("long(a{}[{}])", element.array, offset(element));
                    }));
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

    /// The value, in brackets where it binds less tightly than `least`.
    [[nodiscard]] std::string expression(const Expr& e, int least = 0) const {
        if (const std::optional<double> value = known(e)) return literal(*value);
        if (const auto* i = as<AxisIndex>(e)) return fmt::format("real(int({}))", variable(i->axis));
        if (const auto* r = as<Read>(e)) return fmt::format("a{}[{}]", r->array, offset(*r));
        if (const auto* c = as<Cast>(e)) return fmt::format("{}({})", rounding_function(c->type), expression(c->a));
        if (const auto* s = as<Select>(e))
            return fmt::format("({} ? {} : {})", condition(s->condition), expression(s->a), expression(s->b));
        if (is_condition(e)) return fmt::format("({} ? real(1) : real(0))", condition(e));
        const auto* u = as<Unary>(e);
        const auto* b = as<Binary>(e);
        internal_check(u != nullptr || b != nullptr, "expression of an unknown kind");
        const OperatorText o = u ? operator_text(u->op) : operator_text(b->op);
        const std::string text = fmt::format(fmt::runtime(o.pattern), expression(u ? u->a : b->a, o.operands[0]),
                                             b ? expression(b->b, o.operands[1]) : "");
        return o.precedence < least ? "(" + text + ")" : text;
    }

private:
    /// The value of an expression that reads nothing and depends on no axis' coordinate.
    [[nodiscard]] std::optional<double> known(const Expr& e) const {
        if (const auto* c = as<Constant>(e)) return c->value;
        if (const auto* s = as<AxisSize>(e)) return static_cast<double>(extents_[s->axis]);
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

    static bool is_condition(const Expr& e) {
        const auto* u = as<Unary>(e);
        const auto* b = as<Binary>(e);
        return (u && u->op == UnaryOp::logical_not) || (b && operator_text(b->op).precedence < 1);
    }

    [[nodiscard]] std::string condition(const Expr& e) const {
        if (known(e) || !is_condition(e)) return fmt::format("({} != 0)", expression(e, 1));
        if (const auto* u = as<Unary>(e)) return fmt::format("(!{})", condition(u->a));
        const auto* b = as<Binary>(e);
        const OperatorText o = operator_text(b->op);
        const auto operand = [&](const Expr& a, int least) {
            return is_comparison(b->op) ? expression(a, least) : condition(a);
        };
        return fmt::format(
            "({})", fmt::format(fmt::runtime(o.pattern), operand(b->a, o.operands[0]), operand(b->b, o.operands[1])));
    }

    const Diagram& diagram_;
    const Extents& extents_;
};

/// How an equation's loops are ordered: which axis runs innermost, and whether that is one of the target's.
struct Order {
    std::optional<AxisId> inner = {};  ///< none: the target is a scalar and nothing is reduced
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
    Order order{.outer = diagram.array(equation.target).axes, .reduced = equation.reduce_axes};
    int best = 0;
    if (!order.outer.empty()) {
        order.inner = order.outer.back();
        best = vector_score(writer, equation, *order.inner) + (extents[*order.inner] >= 16 ? 1 : -4);
    }
    for (const AxisId axis : order.reduced) {
        const int score = vector_score(writer, equation, axis) + (extents[axis] >= 16 ? 0 : -4);
        if (order.inner && score <= best) continue;
        best = score;
        order.inner = axis;
        order.inner_in_target = false;
    }
    if (order.inner) {
        auto& list = order.inner_in_target ? order.outer : order.reduced;
        list.erase(find(list, *order.inner));
    }
    return order;
}

std::int64_t extent(const Extents& extents, AxisId axis) { return extents[axis]; }

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
    return text + "}  // namespace loops\n";
}

}  // namespace napkin
