#include "diagram/row_program.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <unordered_map>

#include "algebra/expr_walk.hpp"
#include "support/limits.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

template <class T, class F>
void map1(T* out, const T* a, std::int64_t n, F f) {
    for (std::int64_t j = 0; j < n; ++j) out[j] = f(a[j]);
}

/// Operands step by 0 or 1; each case is a loop of its own, as it is what the compiler vectorises.
template <class T, class F>
void map2(T* out, const T* a, std::size_t step_a, const T* b, std::size_t step_b, std::int64_t n, F f) {
    if (step_a == 0) {
        const T a0 = a[0];
        for (std::int64_t j = 0; j < n; ++j) out[j] = f(a0, b[j * static_cast<std::int64_t>(step_b)]);
    } else if (step_b == 0) {
        const T b0 = b[0];
        for (std::int64_t j = 0; j < n; ++j) out[j] = f(a[j], b0);
    } else {
        for (std::int64_t j = 0; j < n; ++j) out[j] = f(a[j], b[j]);
    }
}

template <class T>
void run_unary(UnaryOp op, T* out, const T* a, std::int64_t n) {
    switch (op) {
        case UnaryOp::neg: return map1(out, a, n, [](T x) { return -x; });
        case UnaryOp::exp: return map1(out, a, n, [](T x) { return std::exp(x); });
        case UnaryOp::log: return map1(out, a, n, [](T x) { return std::log(x); });
        case UnaryOp::tanh: return map1(out, a, n, [](T x) { return std::tanh(x); });
        case UnaryOp::erf: return map1(out, a, n, [](T x) { return std::erf(x); });
        case UnaryOp::sqrt: return map1(out, a, n, [](T x) { return std::sqrt(x); });
        case UnaryOp::rsqrt: return map1(out, a, n, [](T x) { return T(1) / std::sqrt(x); });
        case UnaryOp::abs: return map1(out, a, n, [](T x) { return std::fabs(x); });
        case UnaryOp::logical_not: return map1(out, a, n, [](T x) { return T(x == 0); });
        case UnaryOp::sin: return map1(out, a, n, [](T x) { return std::sin(x); });
        case UnaryOp::cos: return map1(out, a, n, [](T x) { return std::cos(x); });
        case UnaryOp::floor: return map1(out, a, n, [](T x) { return std::floor(x); });
    }
    throw InternalError("unknown unary operator");
}

template <class T>
void run_binary(BinaryOp op, T* out, const T* a, std::size_t sa, const T* b, std::size_t sb, std::int64_t n) {
    const auto map = [&](auto f) { map2(out, a, sa, b, sb, n, f); };
    switch (op) {
        case BinaryOp::add: return map([](T x, T y) { return x + y; });
        case BinaryOp::sub: return map([](T x, T y) { return x - y; });
        case BinaryOp::mul: return map([](T x, T y) { return x * y; });
        case BinaryOp::div: return map([](T x, T y) { return x / y; });
        case BinaryOp::floor_div: return map([](T x, T y) { return std::floor(x / y); });
        case BinaryOp::mod: return map([](T x, T y) { return static_cast<T>(apply(BinaryOp::mod, x, y)); });
        case BinaryOp::pow: return map([](T x, T y) { return std::pow(x, y); });
        case BinaryOp::min: return map([](T x, T y) { return std::isnan(x) || x < y ? x : y; });
        case BinaryOp::max: return map([](T x, T y) { return std::isnan(x) || x > y ? x : y; });
        case BinaryOp::lt: return map([](T x, T y) { return T(x < y); });
        case BinaryOp::le: return map([](T x, T y) { return T(x <= y); });
        case BinaryOp::gt: return map([](T x, T y) { return T(x > y); });
        case BinaryOp::ge: return map([](T x, T y) { return T(x >= y); });
        case BinaryOp::eq: return map([](T x, T y) { return T(x == y); });
        case BinaryOp::ne: return map([](T x, T y) { return T(x != y); });
        case BinaryOp::logical_and: return map([](T x, T y) { return T(x != 0 && y != 0); });
        case BinaryOp::logical_or: return map([](T x, T y) { return T(x != 0 || y != 0); });
    }
    throw InternalError("unknown binary operator");
}

}  // namespace

template <class T>
RowProgram<T>::RowProgram(const Expr& e, AxisId row_axis, const Extents& extents,
                          const std::function<Operand(const Read&)>& locate, bool round_casts)
    : row_axis_(row_axis) {
    std::unordered_map<Expr, std::size_t, ExprHash, ExprEqual> registers;
    std::vector<bool> uniform;
    const auto reg = [&](const Expr& child) { return registers.at(child); };
    for_each_postorder(
        e,
        [&](const Expr& node) {
            if (registers.contains(node)) return;
            if (const auto* c = as<Cast>(node); c && !round_casts && is_float(c->type)) {
                registers[node] = reg(c->a);
                return;
            }
            const std::size_t r = uniform.size();
            Instruction in{};
            in.out = r;
            in.uniform = true;
            bool emit = true;
            if (const auto* number = as<Constant>(node)) {
                constants_.emplace_back(r, static_cast<T>(number->value));
                emit = false;
            } else if (const auto* size = as<AxisSize>(node)) {
                constants_.emplace_back(r, static_cast<T>(extents.at(static_cast<std::size_t>(size->axis))));
                emit = false;
            } else if (const auto* index = as<AxisIndex>(node)) {
                in.kind = Instruction::Kind::index;
                in.a = static_cast<std::size_t>(index->axis);
                in.uniform = index->axis != row_axis;
            } else if (const auto* element = as<Read>(node)) {
                in.kind = Instruction::Kind::read;
                in.a = reads_.size();
                reads_.push_back(with_sizes(node, extents));
                in.uniform = !depends_on(element->indices, row_axis);
            } else if (const auto* u = as<Unary>(node)) {
                in.kind = Instruction::Kind::unary;
                in.op = static_cast<std::uint8_t>(u->op);
                in.a = reg(u->a);
                in.uniform = uniform[in.a];
            } else if (const auto* b = as<Binary>(node)) {
                in.kind = Instruction::Kind::binary;
                in.op = static_cast<std::uint8_t>(b->op);
                in.a = reg(b->a);
                in.b = reg(b->b);
                in.uniform = uniform[in.a] && uniform[in.b];
            } else if (const auto* s = as<Select>(node)) {
                in.kind = Instruction::Kind::select;
                in.a = reg(s->condition);
                in.b = reg(s->a);
                in.c = reg(s->b);
                in.uniform = uniform[in.a] && uniform[in.b] && uniform[in.c];
            } else if (const auto* c = as<Cast>(node)) {
                in.kind = Instruction::Kind::cast;
                in.op = static_cast<std::uint8_t>(c->type);
                in.a = reg(c->a);
                in.uniform = uniform[in.a];
            }
            if (emit) code_.push_back(in);
            uniform.push_back(in.uniform);
            registers[node] = r;
        },
        Walk::values);
    result_ = reg(e);

    const std::size_t count = uniform.size() + 1;  // one more for a uniform result spread over its row
    if (row_axis >= 0) row_length_ = std::min(max_row, extents.at(static_cast<std::size_t>(row_axis)));
    if (row_axis < 0) row_length_ = 1;
    storage_.resize(count * static_cast<std::size_t>(row_length_));
    at_.resize(count);
    for (std::size_t r = 0; r < count; ++r) step_.push_back(r + 1 == count || !uniform[r] ? 1 : 0);
    for (const auto& [r, value] : constants_) *out(r) = value;
    relocate(locate);
}

template <class T>
typename RowProgram<T>::Located RowProgram<T>::located(const Read& read,
                                                       const std::function<Operand(const Read&)>& locate) const {
    Located out{&read, locate(read), true, {}, 0, {}};
    for (std::size_t d = 0; d < read.indices.size(); ++d) {
        const Operand::Dimension& dimension = out.operand.dimensions[d];
        const Affine* form = read.indices[d].affine();
        out.is_affine = out.is_affine && form;
        out.row_steps.push_back(form ? form->coefficient(row_axis_) : 0);
        if (form) out.offset = out.offset + (*form - Affine{{}, dimension.origin}) * dimension.stride;
    }
    out.row_stride = out.offset.coefficient(row_axis_);
    return out;
}

template <class T>
void RowProgram<T>::relocate(const std::function<Operand(const Read&)>& locate) {
    located_.clear();
    in_indices_.clear();
    for (const Expr& e : reads_) {
        located_.push_back(located(*as<Read>(e), locate));
        visit(e, [&](const Expr& node) {
            if (const auto* inner = as<Read>(node); inner && node != e) in_indices_[inner] = located(*inner, locate);
        });
    }
}

template <class T>
const T* RowProgram<T>::run(const std::vector<std::int64_t>& point, std::int64_t n) {
    internal_check(n <= row_length_, "a row is longer than its program was made for");
    // The program may have been copied: addresses of its own storage are set anew.
    for (const auto& constant : constants_) at_[constant.first] = out(constant.first);
    for (const Instruction& in : code_) {
        at_[in.out] = out(in.out);
        execute(in, point, in.uniform ? 1 : n);
    }
    if (step_[result_] == 1) return at_[result_];
    T* row = out(at_.size() - 1);
    std::fill_n(row, n, *at_[result_]);
    return row;
}

template <class T>
void RowProgram<T>::execute(const Instruction& in, const std::vector<std::int64_t>& point, std::int64_t n) {
    T* to = out(in.out);
    switch (in.kind) {
        case Instruction::Kind::index:
            for (std::int64_t j = 0; j < n; ++j) to[j] = static_cast<T>(point[in.a] + j);
            return;
        case Instruction::Kind::read: return load(in, point, n);
        case Instruction::Kind::unary: return run_unary(static_cast<UnaryOp>(in.op), to, at_[in.a], n);
        case Instruction::Kind::binary:
            return run_binary(static_cast<BinaryOp>(in.op), to, at_[in.a], step_[in.a], at_[in.b], step_[in.b], n);
        case Instruction::Kind::select: {
            const T *condition = at_[in.a], *yes = at_[in.b], *no = at_[in.c];
            const std::size_t step = step_[in.a], step_yes = step_[in.b], step_no = step_[in.c];
            for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
                to[j] = condition[j * step] != 0 ? yes[j * step_yes] : no[j * step_no];
            }
            return;
        }
        case Instruction::Kind::cast:
            for (std::int64_t j = 0; j < n; ++j)
                to[j] = static_cast<T>(round_to(static_cast<DType>(in.op), at_[in.a][j]));
            return;
    }
}

/// One element, wherever its indices lie.
template <class T>
double RowProgram<T>::element(const Located& read, const std::vector<std::int64_t>& point) const {
    constexpr double outside = std::numeric_limits<double>::quiet_NaN();
    constexpr std::int64_t nowhere = limits::max_size_product;
    const auto inner = [&](const Read& r) {
        const double value = element(in_indices_.at(&r), point);
        return std::isnan(value) ? nowhere : static_cast<std::int64_t>(value);
    };
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < read.operand.dimensions.size(); ++d) {
        const auto& [origin, count, stride] = read.operand.dimensions[d];
        const std::int64_t place = value_at(read.read->indices[d], point, inner);
        if (place < origin || place >= origin + count) return outside;
        offset += (place - origin) * stride;
    }
    return read.operand.data[offset];
}

template <class T>
void RowProgram<T>::load(const Instruction& in, const std::vector<std::int64_t>& point, std::int64_t n) {
    const Located& read = located_[in.a];
    T* to = out(in.out);
    if (!read.is_affine) {
        std::vector<std::int64_t> here = point;
        for (std::int64_t j = 0; j < n; ++j) {
            to[j] = static_cast<T>(element(read, here));
            if (row_axis_ >= 0) ++here[static_cast<std::size_t>(row_axis_)];
        }
        return;
    }
    // The points of the row whose indices all lie in the box are neighbours.
    const auto at_point = [&](const Affine& form) {
        std::int64_t value = form.constant;
        for (const auto& [axis, factor] : form.terms) value += factor * point[static_cast<std::size_t>(axis)];
        return value;
    };
    std::int64_t first = 0, last = n - 1;
    for (std::size_t d = 0; d < read.operand.dimensions.size() && first <= last; ++d) {
        const std::int64_t step = in.uniform ? 0 : read.row_steps[d],
                           low = at_point(*read.read->indices[d].affine()) - read.operand.dimensions[d].origin,
                           room = read.operand.dimensions[d].count - 1;
        if (low >= 0 && low <= room && low + step * last >= 0 && low + step * last <= room) continue;
        if (step == 0) last = -1;
        if (step > 0)
            first = std::max(first, -floor_div(low, step)), last = std::min(last, floor_div(room - low, step));
        if (step < 0)
            first = std::max(first, -floor_div(room - low, -step)), last = std::min(last, floor_div(low, -step));
    }
    const double* from = read.operand.data + (first <= last ? at_point(read.offset) : 0);
    if constexpr (std::is_same_v<T, double>) {
        if (first == 0 && last == n - 1 && (read.row_stride == 1 || in.uniform)) {
            at_[in.out] = from;
            return;
        }
    }
    for (std::int64_t j = 0; j < n; ++j)
        to[j] = j < first || j > last ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(from[j * read.row_stride]);
}

template class RowProgram<float>;
template class RowProgram<double>;

}  // namespace napkin
