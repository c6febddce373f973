#include "diagram/row_program.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <unordered_map>

#include "algebra/expr_walk.hpp"
#include "algebra/power.hpp"
#include "algebra/scalar_function.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

bool is_logic(BinaryOp op) { return op == BinaryOp::logical_and || op == BinaryOp::logical_or; }

template <class To, class From, class F>
void map1(To* out, const From* a, std::int64_t n, F f) {
    for (std::int64_t j = 0; j < n; ++j) out[j] = f(a[j]);
}

/// Operands step by 0 or 1; each case is a loop of its own, as it is what the compiler vectorises.
template <class To, class From, class F>
void map2(To* out, const From* a, std::size_t step_a, const From* b, std::size_t step_b, std::int64_t n, F f) {
    if (step_a == 0) {
        const From a0 = a[0];
        for (std::int64_t j = 0; j < n; ++j) out[j] = f(a0, b[j * static_cast<std::int64_t>(step_b)]);
    } else if (step_b == 0) {
        const From b0 = b[0];
        for (std::int64_t j = 0; j < n; ++j) out[j] = f(a[j], b0);
    } else {
        for (std::int64_t j = 0; j < n; ++j) out[j] = f(a[j], b[j]);
    }
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
        case BinaryOp::pow: return map([](T x, T y) { return real_power(x, y); });
        case BinaryOp::min: return map([](T x, T y) { return std::isnan(x) || x < y ? x : y; });
        case BinaryOp::max: return map([](T x, T y) { return std::isnan(x) || x > y ? x : y; });
        default: break;
    }
    throw InternalError("unknown binary operator");
}

/// T is the type of real numbers or of integers.
template <class T>
void run_comparison(BinaryOp op, std::int64_t* out, const T* a, std::size_t sa, const T* b, std::size_t sb, std::int64_t n) {
    const auto map = [&](auto f) { map2(out, a, sa, b, sb, n, f); };
    switch (op) {
        case BinaryOp::lt: return map([](T x, T y) { return x < y; });
        case BinaryOp::le: return map([](T x, T y) { return x <= y; });
        case BinaryOp::gt: return map([](T x, T y) { return x > y; });
        case BinaryOp::ge: return map([](T x, T y) { return x >= y; });
        case BinaryOp::eq: return map([](T x, T y) { return x == y; });
        case BinaryOp::ne: return map([](T x, T y) { return x != y; });
        default: break;
    }
    throw InternalError("unknown comparison");
}

}  // namespace

Operand operand_of(const Column& column) {
    Operand operand;
    if (column.is_whole())
        operand.whole = column.wholes().data();
    else
        operand.real = column.reals().data();
    return operand;
}

// ---- compiling
// ------------------------------------------------------------

template <class T>
RowProgram<T>::RowProgram(const Expr& e, Kinds& kinds, const Extents& extents,
                          const std::function<Operand(const Read&)>& locate, const Options& options)
    : row_axis_(options.row_axis) {
    (void)kinds(e);
    std::unordered_map<Expr, std::size_t, ExprHash, ExprEqual> known;
    const auto reg = [&](const Expr& child) { return known.at(child); };
    for_each_postorder(
        e,
        [&](const Expr& node) {
            if (!known.contains(node)) known[node] = compile(node, kinds, extents, options.round_casts, reg);
        },
        Walk::values);
    result_ = convert(reg(e), options.wanted);
    spread_ = add_register(registers_[result_].kind, false);

    // Constants have a place of their own also where there are no rows.
    row_length_ = row_axis_ < 0 ? 1 : std::clamp<std::int64_t>(extents.at(row_axis_), 1, max_row);
    reals_.resize(real_slots_ * static_cast<std::size_t>(row_length_));
    wholes_.resize(integer_slots_ * static_cast<std::size_t>(row_length_));
    for (std::size_t r = 0; r < registers_.size(); ++r) {
        const Register& c = registers_[r];
        if (!c.is_constant) continue;
        if (c.kind == Kind::real)
            *real_out(r) = static_cast<T>(c.constant.as_real());
        else
            *whole_out(r) = c.constant.as_whole(c.kind);
    }
    relocate(locate);
}

template <class T>
std::size_t RowProgram<T>::add_register(Kind kind, bool uniform) {
    registers_.push_back({.kind = kind, .uniform = uniform, .slot = kind == Kind::real ? real_slots_++ : integer_slots_++});
    return registers_.size() - 1;
}

template <class T>
std::size_t RowProgram<T>::add_constant(const Number& value) {
    const std::size_t r = add_register(value.kind(), true);
    registers_[r].is_constant = true;
    registers_[r].constant = value;
    return r;
}

template <class T>
std::size_t RowProgram<T>::emit(Instruction in, Kind result, bool uniform) {
    in.out = add_register(result, uniform);
    in.uniform = uniform;
    code_.push_back(in);
    return in.out;
}

/// The register's value in another kind.
template <class T>
std::size_t RowProgram<T>::convert(std::size_t r, Kind kind) {
    const Register from = registers_[r];
    const bool same = kind == Kind::real ? from.kind == Kind::real
                                         : from.kind == kind || (kind != Kind::i32 && from.kind != Kind::real);
    if (same) return r;
    const auto [at, added] = converted_.try_emplace({r, kind}, 0);
    if (!added) return at->second;
    std::size_t out = 0;
    if (from.is_constant) {
        out = add_constant(from.constant.to(kind));
    } else {
        Instruction in{kind == Kind::real ? Code::to_real : Code::to_whole};
        in.kind = kind;
        in.a = r;
        out = emit(in, kind, from.uniform);
    }
    converted_[{r, kind}] = out;
    return out;
}

/// 1 where the value is not 0.
template <class T>
std::size_t RowProgram<T>::truth(std::size_t r) {
    Instruction in{Code::truth};
    in.a = r;
    return emit(in, Kind::whole, registers_[r].uniform);
}

template <class T>
std::size_t RowProgram<T>::compile(const Expr& node, Kinds& kinds, const Extents& extents, bool round_casts,
                                   const std::function<std::size_t(const Expr&)>& reg) {
    const Kind kind = kinds(node);
    const auto uniform = [&](std::size_t r) { return registers_[r].uniform; };
    if (const auto* number = as<Constant>(node)) return add_constant(number_of(*number));
    if (const auto* size = as<AxisSize>(node)) return add_constant(Number::whole(Kind::i64, extents.at(size->axis)));
    if (const auto* index = as<AxisIndex>(node)) {
        Instruction in{Code::index};
        in.a = static_cast<std::size_t>(index->axis);
        return emit(in, kind, index->axis != row_axis_);
    }
    if (as<Read>(node)) return compile_read(node, kinds, extents);
    if (const auto* u = as<Unary>(node)) {
        Instruction in{Code::unary};
        in.op = static_cast<std::uint8_t>(u->op);
        in.kind = kind;
        in.a = gives_truth(u->op) ? truth(reg(u->a)) : convert(reg(u->a), kind);
        return emit(in, kind, uniform(in.a));
    }
    if (const auto* b = as<Binary>(node)) return compile_binary(*b, kind, reg(b->a), reg(b->b));
    if (const auto* s = as<Select>(node)) {
        Instruction in{Code::select};
        in.kind = kind;
        in.a = reg(s->condition);
        if (registers_[in.a].kind == Kind::real) in.a = truth(in.a);
        in.b = convert(reg(s->a), kind);
        in.c = convert(reg(s->b), kind);
        return emit(in, kind, uniform(in.a) && uniform(in.b) && uniform(in.c));
    }
    const auto& c = std::get<Cast>(node->v);
    if (is_narrow_integer(c.type)) {
        Instruction in{Code::to_narrow};
        in.op = static_cast<std::uint8_t>(c.type);
        in.a = reg(c.a);
        return emit(in, kind, uniform(in.a));
    }
    const std::size_t value = convert(reg(c.a), kind);
    if (kind != Kind::real || !round_casts) return value;
    Instruction in{Code::round};
    in.op = static_cast<std::uint8_t>(c.type);
    in.a = value;
    return emit(in, kind, uniform(value));
}

template <class T>
std::size_t RowProgram<T>::compile_read(const Expr& node, Kinds& kinds, const Extents& extents) {
    CompiledRead compiled{with_sizes(node, extents), {}};
    const Read& element = *as<Read>(compiled.e);
    for (const Index& index : element.indices)
        compiled.coordinates.push_back(index.affine() ? 0 : compile_index(*index.expression(), kinds, extents));
    Instruction in{Code::read};
    in.a = reads_.size();
    const bool uniform = !depends_on(element.indices, row_axis_);
    reads_.push_back(std::move(compiled));
    return emit(in, kinds(node), uniform);
}

template <class T>
std::size_t RowProgram<T>::compile_index(const Expr& index, Kinds& kinds, const Extents& extents) {
    Instruction in{Code::binary};
    in.kind = Kind::i64;
    const auto minus = as<Unary>(index);
    const auto* b = as<Binary>(index);
    if (minus == nullptr && b == nullptr) return convert(compile(index, kinds, extents, false, {}), Kind::i64);
    // Sizes that an index divides leave no rest.
    const BinaryOp op = minus ? BinaryOp::mul : b->op == BinaryOp::div ? BinaryOp::floor_div : b->op;
    in.op = static_cast<std::uint8_t>(op);
    in.a = minus ? add_constant(Number::whole(Kind::i64, -1)) : compile_index(b->a, kinds, extents);
    in.b = compile_index(minus ? minus->a : b->b, kinds, extents);
    return emit(in, Kind::i64, registers_[in.a].uniform && registers_[in.b].uniform);
}

template <class T>
std::size_t RowProgram<T>::compile_binary(const Binary& b, Kind result, std::size_t x, std::size_t y) {
    Instruction in{Code::binary};
    in.op = static_cast<std::uint8_t>(b.op);
    in.kind = result;
    if (is_logic(b.op)) {
        in.a = truth(x);
        in.b = truth(y);
    } else {
        // Integers of any width are compared as they are.
        if (is_comparison(b.op))
            in.kind = join(registers_[x].kind, registers_[y].kind) == Kind::real ? Kind::real : Kind::i64;
        in.a = convert(x, in.kind);
        in.b = convert(y, in.kind);
    }
    return emit(in, result, registers_[in.a].uniform && registers_[in.b].uniform);
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
    for (const CompiledRead& read : reads_) located_.push_back(located(*as<Read>(read.e), locate));
}

// ---- running
// ------------------------------------------------------------

template <class T>
void RowProgram<T>::run_code(const std::vector<std::int64_t>& point, std::int64_t n) {
    internal_check(n <= row_length_, "a row is longer than its program was made for");
    // The program may have been copied: addresses of its own storage are set anew.
    for (std::size_t r = 0; r < registers_.size(); ++r) {
        if (registers_[r].kind == Kind::real)
            registers_[r].real = real_out(r);
        else
            registers_[r].whole = whole_out(r);
    }
    for (const Instruction& in : code_) execute(in, point, in.uniform ? 1 : n);
}

template <class T>
const T* RowProgram<T>::run(const std::vector<std::int64_t>& point, std::int64_t n) {
    run_code(point, n);
    const Register& result = registers_[result_];
    if (!result.uniform) return result.real;
    std::fill_n(real_out(spread_), n, *result.real);
    return real_out(spread_);
}

template <class T>
const std::int64_t* RowProgram<T>::run_integer(const std::vector<std::int64_t>& point, std::int64_t n) {
    run_code(point, n);
    const Register& result = registers_[result_];
    if (!result.uniform) return result.whole;
    std::fill_n(whole_out(spread_), n, *result.whole);
    return whole_out(spread_);
}

template <class T>
void RowProgram<T>::execute(const Instruction& in, const std::vector<std::int64_t>& point, std::int64_t n) {
    const bool real = registers_[in.out].kind == Kind::real;
    T* to = real ? real_out(in.out) : nullptr;
    std::int64_t* whole = real ? nullptr : whole_out(in.out);
    const auto width = static_cast<std::size_t>(n);
    switch (in.code) {
        case Code::index:
            for (std::int64_t j = 0; j < n; ++j) whole[j] = point[in.a] + j;
            return;
        case Code::read: return load(in, point, n);
        case Code::unary: {
            const auto op = static_cast<UnaryOp>(in.op);
            const Register& a = registers_[in.a];
            if (real) return scalar_function(op).fill(to, a.real, n);
            return map1(whole, a.whole, n, [&](std::int64_t x) { return apply_integer(op, in.kind, x); });
        }
        case Code::binary: {
            const auto op = static_cast<BinaryOp>(in.op);
            const Register &a = registers_[in.a], &b = registers_[in.b];
            if (real) return run_binary(op, to, a.real, a.step(), b.real, b.step(), n);
            if (in.kind == Kind::real) return run_comparison(op, whole, a.real, a.step(), b.real, b.step(), n);
            if (is_comparison(op)) return run_comparison(op, whole, a.whole, a.step(), b.whole, b.step(), n);
            return map2(whole, a.whole, a.step(), b.whole, b.step(), n,
                        [&](std::int64_t x, std::int64_t y) { return apply_integer(op, in.kind, x, y); });
        }
        case Code::select: {
            const Register &condition = registers_[in.a], &yes = registers_[in.b], &no = registers_[in.c];
            for (std::size_t j = 0; j < width; ++j) {
                const bool taken = condition.whole[j * condition.step()] != 0;
                if (real)
                    to[j] = taken ? yes.real[j * yes.step()] : no.real[j * no.step()];
                else
                    whole[j] = taken ? yes.whole[j * yes.step()] : no.whole[j * no.step()];
            }
            return;
        }
        case Code::round:
            return map1(to, registers_[in.a].real, n,
                        [&](T x) { return static_cast<T>(round_to(static_cast<DType>(in.op), x)); });
        case Code::to_real:
            return map1(to, registers_[in.a].whole, n, [](std::int64_t x) { return static_cast<T>(x); });
        case Code::to_whole:
            if (registers_[in.a].kind == Kind::real)
                return map1(whole, registers_[in.a].real, n,
                            [&](T x) { return whole_of(in.kind, static_cast<double>(x)); });
            return map1(whole, registers_[in.a].whole, n, [&](std::int64_t x) { return wrap(in.kind, x); });
        case Code::to_narrow: {
            const auto type = static_cast<DType>(in.op);
            if (registers_[in.a].kind == Kind::real)
                return map1(whole, registers_[in.a].real, n, [&](T x) { return whole_of(type, static_cast<double>(x)); });
            return map1(whole, registers_[in.a].whole, n, [&](std::int64_t x) { return wrap(type, x); });
        }
        case Code::truth:
            if (registers_[in.a].kind == Kind::real)
                return map1(whole, registers_[in.a].real, n, [](T x) { return std::int64_t{x != 0}; });
            return map1(whole, registers_[in.a].whole, n, [](std::int64_t x) { return std::int64_t{x != 0}; });
    }
}

namespace {

template <class Cell>
const Cell* cells_of(const Operand& operand) {
    if constexpr (std::is_same_v<Cell, double>) {
        internal_check(operand.real, "the values of a float array are not real numbers");
        return operand.real;
    } else {
        internal_check(operand.whole, "the values of an integer array are not integers");
        return operand.whole;
    }
}

template <class Cell>
Cell unset_cell() {
    if constexpr (std::is_same_v<Cell, double>)
        return std::numeric_limits<double>::quiet_NaN();
    else
        return Column::unset_whole;
}

}  // namespace

namespace {
std::int64_t value_of(const Affine& form, const std::vector<std::int64_t>& point) {
    std::int64_t value = form.constant;
    for (const auto& [axis, factor] : form.terms) value += factor * point[at(axis)];
    return value;
}

}  // namespace

template <class T>
template <class Cell, class To>
void RowProgram<T>::gather_cells(const Instruction& in, const Located& read, const std::vector<std::int64_t>& point,
                                 std::int64_t n, To* to) {
    constexpr std::int64_t outside = -1;
    offsets_.assign(at(n), 0);
    for (std::size_t d = 0; d < read.operand.dimensions.size(); ++d) {
        const Operand::Dimension& dimension = read.operand.dimensions[d];
        const auto add = [&](std::int64_t j, std::int64_t coordinate) {
            std::int64_t& offset = offsets_[at(j)];
            if (coordinate < dimension.origin || coordinate >= dimension.origin + dimension.count)
                offset = outside;
            else if (offset != outside)
                offset += (coordinate - dimension.origin) * dimension.stride;
        };
        if (const Affine* form = read.read->indices[d].affine()) {
            const std::int64_t first = value_of(*form, point), step = in.uniform ? 0 : read.row_steps[d];
            for (std::int64_t j = 0; j < n; ++j) add(j, first + step * j);
        } else {
            const Register& coordinates = registers_[reads_[in.a].coordinates[d]];
            for (std::int64_t j = 0; j < n; ++j) add(j, coordinates.whole[at(j) * coordinates.step()]);
        }
    }
    const Cell* const cells = cells_of<Cell>(read.operand);
    for (std::int64_t j = 0; j < n; ++j)
        to[j] = static_cast<To>(offsets_[at(j)] == outside ? unset_cell<Cell>() : cells[offsets_[at(j)]]);
}

template <class T>
template <class Cell, class To>
const To* RowProgram<T>::load_cells(const Instruction& in, const Located& read, const std::vector<std::int64_t>& point,
                                    std::int64_t n, To* to) {
    if (!read.is_affine) {
        gather_cells<Cell>(in, read, point, n, to);
        return to;
    }
    // The points of the row whose indices all lie in the box are neighbours.
    std::int64_t first = 0, last = n - 1;
    for (std::size_t d = 0; d < read.operand.dimensions.size() && first <= last; ++d) {
        const std::int64_t step = in.uniform ? 0 : read.row_steps[d],
                           low = value_of(*read.read->indices[d].affine(), point) - read.operand.dimensions[d].origin,
                           room = read.operand.dimensions[d].count - 1;
        if (low >= 0 && low <= room && low + step * last >= 0 && low + step * last <= room) continue;
        if (step == 0) last = -1;
        if (step > 0)
            first = std::max(first, -floor_div(low, step)), last = std::min(last, floor_div(room - low, step));
        if (step < 0)
            first = std::max(first, -floor_div(room - low, -step)), last = std::min(last, floor_div(low, -step));
    }
    const Cell* from = cells_of<Cell>(read.operand) + (first <= last ? value_of(read.offset, point) : 0);
    if constexpr (std::is_same_v<Cell, To>) {
        if (first == 0 && last == n - 1 && (read.row_stride == 1 || in.uniform)) return from;
    }
    for (std::int64_t j = 0; j < n; ++j)
        to[j] = static_cast<To>(j < first || j > last ? unset_cell<Cell>() : from[j * read.row_stride]);
    return to;
}

template <class T>
void RowProgram<T>::load(const Instruction& in, const std::vector<std::int64_t>& point, std::int64_t n) {
    Register& out = registers_[in.out];
    if (out.kind == Kind::real)
        out.real = load_cells<double>(in, located_[in.a], point, n, real_out(in.out));
    else
        out.whole = load_cells<std::int64_t>(in, located_[in.a], point, n, whole_out(in.out));
}

template class RowProgram<float>;
template class RowProgram<double>;

}  // namespace napkin
