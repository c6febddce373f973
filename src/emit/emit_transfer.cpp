#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "algebra/expr.hpp"
#include "algebra/number.hpp"
#include "emit/emit_index.hpp"
#include "emit/emit_write.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin::writers {
namespace {

std::string scaled(std::int64_t factor, const std::string& what) {
    return factor == 1 ? what : fmt::format("{} * {}", factor, what);
}

std::string in_brackets(const std::string& sum) { return sum.find(' ') == std::string::npos ? sum : "(" + sum + ")"; }

void add_term(std::string& sum, const std::string& term) {
    sum += sum.empty() ? term : term[0] == '-' ? " - " + term.substr(1) : " + " + term;
}

/// One dimension of a transfer.
struct Dimension {
    std::int64_t size = 1;  ///< largest count
    std::string count;      ///< of values moved
    std::string low;        ///< first index in memory; "" is 0
    std::string shift;      ///< of the first value in the buffer; "" is 0
    std::string memory_stride;
    std::int64_t stride = 0;
};

/// How the tile of a variable lies in memory and in its buffer.
class Transfer {
public:
    Transfer(const Frame& frame, Lines& out, VariableId variable, ScopeId scope, bool synchronizes = false)
        : frame_(frame),
          out_(out),
          variable_(variable),
          scope_(scope),
          synchronizes_(synchronizes),
          v_(frame.variable(variable)),
          layout_(frame.layout(variable)),
          memory_(frame.memory.at(v_.array)),
          copy_(tile_copy(frame, variable)) {
        for (std::size_t d = 0; d < v_.dims.size(); ++d) dimensions_.push_back(dimension(d));
    }

    void load() {
        if (frame_.is_in_lanes(variable_)) return in_lanes(true);
        if (frame_.facts(variable_).is_cut) return load_cut();
        if (!frame_.is_view(variable_)) {
            copy(true, frame_.name(variable_));
            return;
        }
        const std::string &name = frame_.name(variable_), position = position_in_memory();
        out_(fmt::format("const real* {} = {}{};", name, memory_, position.empty() ? "" : " + " + position));
        if (!layout_.may_overrun) return;
        const std::string last = last_view_text(frame_, variable_);
        out_.open(position.empty() ? "" : fmt::format("if ({} > {})", position, last));
        const std::string& buffer = frame_.copies[variable_];
        copy(true, buffer);
        out_(fmt::format("{} = {};", name, buffer));
        out_.close();
    }
    void store() { frame_.is_in_lanes(variable_) ? in_lanes(false) : copy(false, frame_.name(variable_)); }
    void target() {
        if (frame_.is_in_lanes(variable_)) return declare_lanes();
        const std::string position = position_in_memory();
        out_(fmt::format("real* const {} = {}{};", frame_.name(variable_), memory_,
                         position.empty() ? "" : " + " + position));
    }

private:
    /// Where the tile of a view begins.
    [[nodiscard]] std::string position_in_memory() const {
        std::string position;
        for (std::size_t d = 0; d < dimensions_.size(); ++d)
            if (const std::string& low = dimensions_[d].low; !low.empty()) {
                const std::string stride = stride_text(frame_, variable_, d);
                add_term(position, stride == "1" ? low : fmt::format("{} * {}", in_brackets(low), stride));
            }
        return position;
    }

    /// Loads what lies inside of the array into its place in a buffer of zeros.
    void load_cut() {
        const std::string& name = frame_.name(variable_);
        out_.open("");
        std::string some, all;
        for (std::size_t d = 0; d < v_.dims.size(); ++d) {
            if (!is_cut(frame_, v_, d)) continue;
            const InsideText inside = inside_text(bounds_text(frame_, v_.dims[d], scope_),
                                                  frame_.extent_text(v_.limits[d]));
            out_(fmt::format("const Index {0}_first{1}_ = {2}, {0}_count{1}_ = {3} - {0}_first{1}_;", name, d,
                             inside.first, inside.end));
            some += fmt::format("{}{}_count{}_ > 0", some.empty() ? "" : " && ", name, d);
            all += fmt::format("{}{}_count{}_ < {}", all.empty() ? "" : " || ", name, d,
                               most_values(frame_, v_.dims[d], scope_));
        }
        out_.open(fmt::format("if ({})", all));
        write_zeros(frame_, out_, variable_, synchronizes_);
        out_.close();
        out_.open(fmt::format("if ({})", some));
        copy(true, name);
        out_.close();
        out_.close();
    }

    /// Where the tile of a variable in lanes begins.
    [[nodiscard]] std::string begin_of_lanes() const {
        std::string out = memory_;
        for (const Dimension& d : dimensions_)
            if (!d.low.empty()) out += fmt::format(" + {} * {}", in_brackets(d.low), d.memory_stride);
        return out;
    }
    /// Threads load and store what they hold. One of them stores a value that all of them have. What passes by rounds
    /// is loaded, or has been stored, by the statement that it passes through.
    void in_lanes(bool is_load) {
        const std::string& name = frame_.name(variable_);
        if (frame_.shape(variable_).lanes->axis < 0)
            return out_(is_load ? fmt::format("{} = static_cast<real>(*({}));", name, begin_of_lanes())
                                : fmt::format("if (thread_of_block() == 0) *({}) = convert<{}>({});", begin_of_lanes(),
                                              memory_type(v_.memory_type), name));
        const bool passes = frame_.shape(variable_).passes_by_rounds;
        if (is_load || !passes) declare_lanes();
        if (!passes)
            out_(fmt::format("{}.{}({});", lanes_in_memory(frame_, variable_), is_load ? "load" : "store", name));
    }
    void declare_lanes() {
        const LaneTile tile = *frame_.shape(variable_).lanes;
        std::string stride = "1";
        for (std::size_t d = 0; d < v_.dims.size(); ++d)
            if (v_.dims[d].is_axis(tile.axis)) stride = dimensions_[d].memory_stride;
        out_(fmt::format("const {} {}({}, {}, {});", lanes_type(frame_, variable_), lanes_in_memory(frame_, variable_),
                         begin_of_lanes(), stride, frame_.count(tile.axis, scope_)));
    }

    /// Opens the loops over parts, and tells f where a part stands along each of their dimensions. Returns how many.
    int open_parts(const std::function<void(std::size_t, const std::string&)>& f) {
        std::vector<std::size_t> outer;
        for (std::size_t d = 0; d < dimensions_.size(); ++d)
            if (static_cast<int>(d) != copy_.rows && static_cast<int>(d) != copy_.columns && dimensions_[d].size != 1)
                outer.push_back(d);
        if (!copy_.by_warps) {
            for (const std::size_t d : outer) {
                const std::string t = fmt::format("t{}_", d);
                out_.open(fmt::format("for (Index {0} = 0; {0} < {1}; ++{0})", t, dimensions_[d].count));
                f(d, t);
            }
            return static_cast<int>(outer.size());
        }
        const std::string all = join(mapped<std::string>(outer, [&](std::size_t d) { return dimensions_[d].count; }),
                                     " * ");
        out_.open(fmt::format("for (Index part_ = warp_of_thread(); part_ < {}; part_ += num_warps())", all));
        std::string rest = "part_";
        for (std::size_t i = outer.size(); i-- > 0;) {
            const std::size_t d = outer[i];
            out_(fmt::format("const Index t{}_ = {};", d, i > 0 ? fmt::format("{} % {}", rest, dimensions_[d].count) : rest));
            if (i > 0) rest += fmt::format(" / {}", dimensions_[d].count);
            f(d, fmt::format("t{}_", d));
        }
        return 1;
    }

    void copy(bool is_load, const std::string& name) {
        std::string memory = memory_, buffer = name;
        const auto at = [](std::string& pointer, const std::string& offset) {
            if (!offset.empty()) pointer += " + " + offset;
        };
        for (const Dimension& d : dimensions_) {
            if (!d.low.empty()) at(memory, fmt::format("{} * {}", in_brackets(d.low), d.memory_stride));
            if (!d.shift.empty()) at(buffer, fmt::format("{} * {}", in_brackets(d.shift), d.stride));
        }
        if (dimensions_.empty()) {
            const char* one = frame_.in_blocks() ? "if (thread_of_block() == 0) " : "";
            if (is_load)
                out_(fmt::format("{}{}[0] = static_cast<{}>({}[0]);", one, name, frame_.cell_type(variable_), memory_));
            else
                out_(fmt::format("{}{}[0] = {}<{}>({}[0]);", one, memory_,
                                 is_float(v_.memory_type) ? "static_cast" : "convert", memory_type(v_.memory_type), name));
            return;
        }
        const int opened = open_parts([&](std::size_t d, const std::string& place) {
            at(memory, fmt::format("{} * {}", place, dimensions_[d].memory_stride));
            at(buffer, fmt::format("{} * {}", place, dimensions_[d].stride));
        });
        const std::string by_whom = copy_.by_warps ? "_by_warp" : "";
        const Dimension& column = dimensions_[static_cast<std::size_t>(copy_.columns)];
        const Dimension one{1, "1", "", "", "0", 0};
        const Dimension& row = copy_.rows >= 0 ? dimensions_[static_cast<std::size_t>(copy_.rows)] : one;
        if (layout_.terms > 1)
            copy_cells(buffer, memory, row, column);
        else if (frame_.is_packed(variable_))
            out_(fmt::format("copy_in_panels<{}>({}, {}, {}, {}, {}, {}, {}, {});", frame_.panel(), buffer,
                             layout_.panel_stride, row.stride, memory, row.memory_stride, column.memory_stride,
                             row.count, column.count));
        else if (is_load)
            out_(fmt::format("copy_in{}({}, {}, {}, {}, {}, {}, {});", by_whom, buffer, row.stride, memory,
                             row.memory_stride, column.memory_stride, row.count, column.count));
        else
            out_(fmt::format("copy_out{}({}, {}, {}, {}, {}, {}, {});", by_whom, memory, row.memory_stride,
                             column.memory_stride, buffer, row.stride, row.count, column.count));
        for (int i = 0; i < opened; ++i) out_.close();
        // Once for all of them, so that they are under way together.
        if (is_load && frame_.in_blocks()) out_("copies_arrive();");
    }

    /// Cells of several values (schedule/lane_product.hpp), along columns or along rows.
    void copy_cells(const std::string& buffer, const std::string& memory, const Dimension& row, const Dimension& column) {
        const bool along_columns = layout_.term_dimension == copy_.columns;
        const std::string counts = fmt::format("{}, {}, {}, {}", row.memory_stride, column.memory_stride, row.count,
                                               column.count);
        const std::string how = fmt::format("<{}, {}>", layout_.terms, layout_.is_biased);
        if (along_columns)
            out_(fmt::format("copy_cells_in_columns{}({}, {}, {}, {});", how, buffer, row.stride, memory, counts));
        else
            out_(fmt::format("copy_cells_in_rows{}({}, {}, {}, {}, {}, {});", how, buffer,
                             frame_.is_packed(variable_) ? frame_.panel() : layout_.count,
                             frame_.is_packed(variable_) ? layout_.panel_stride : 0, row.stride, memory, counts));
    }

    [[nodiscard]] Dimension dimension(std::size_t d) const {
        Dimension out;
        out.memory_stride = fmt::format("{}[{}]", frame_.strides.at(v_.array), d);
        out.stride = layout_.strides[d];
        if (v_.gathers.empty() && is_cut(frame_, v_, d)) {
            const std::string first = fmt::format("{}_first{}_", frame_.name(variable_), d);
            out.size = std::min(layout_.sizes[d], frame_.extent(v_.limits[d]));
            out.count = fmt::format("{}_count{}_", frame_.name(variable_), d);
            out.low = first;
            out.shift = fmt::format("{} - {}", first, bounds_text(frame_, v_.dims[d], scope_).low.text);
            return out;
        }
        if (!v_.dims[d].affine()) return out;
        const Affine& form = *v_.dims[d].affine();
        std::int64_t fixed = 1;
        std::string varying;
        for (const auto& [axis, c] : form.terms) {
            const Span& span = frame_.span(axis, scope_);
            out.size += std::abs(c) * (span.tile - 1);
            if (span.ragged)
                add_term(varying, scaled(std::abs(c), frame_.axis(axis).count)), fixed -= std::abs(c);
            else
                fixed += std::abs(c) * (span.tile - 1);
            if (c < 0) {
                if (span.ragged)
                    add_term(out.shift, fmt::format("{} * ({} - {})", -c, span.padded, frame_.axis(axis).count));
                else if (span.padded != span.tile)
                    add_term(out.shift, std::to_string(-c * (span.padded - span.tile)));
            }
        }
        out.count = varying;
        if (varying.empty())
            out.count = std::to_string(fixed);
        else if (fixed != 0)
            add_term(out.count, std::to_string(fixed));
        if (form.terms.size() > 1 && !varying.empty()) out.count = "(" + out.count + ")";
        out.low = lowest(frame_, form, scope_);
        if (out.low == "0") out.low.clear();
        return out;
    }

    const Frame& frame_;
    Lines& out_;
    VariableId variable_;
    ScopeId scope_;
    bool synchronizes_;
    const Variable& v_;
    const Layout& layout_;
    std::string memory_;
    const TileCopy copy_;
    std::vector<Dimension> dimensions_;
};

/// Interval of the form and of all sums of some of its terms, as they stand in the texts of its bounds.
Interval sums_of(const Frame& frame, const Affine& form, ScopeId scope) {
    Interval out{std::min<std::int64_t>(form.constant, 0), std::max<std::int64_t>(form.constant, 0)};
    for (const auto& [axis, c] : form.terms) {
        // The begin of the tile, the begin of a warp's rows in it, and their number stand apart.
        const std::int64_t padded = frame.span(axis, scope).padded;
        const Interval parts{-padded, coordinates_of(frame, axis, scope).high + padded};
        out = apply_interval(BinaryOp::add, out, apply_interval(BinaryOp::mul, {c, c}, parts));
    }
    return out;
}

std::string bound(const Frame& frame, const Affine& form, ScopeId scope, bool high, const OwnRows* own) {
    const Interval sums = sums_of(frame, form, scope);
    const auto wide = [&](const std::string& text) { return widened(text, sums); };
    std::string sum;
    auto [constant, number] = frame.constant_of(form);
    for (const auto& [axis, c] : form.terms) {
        const Span& span = frame.span(axis, scope);
        const auto add = [&](const std::string& what) { add_term(sum, c == -1 ? "-" + what : scaled(c, what)); };
        if (span.begins) add(wide(frame.axis(axis).begin));
        if (own && axis == frame.schedule.mma_m) {
            add_term(sum, scaled(c, wide(fmt::format("({})", own->first))));
            if ((c > 0) == high) constant += c * (std::min(own->count, span.tile) - 1);
            continue;
        }
        if ((c > 0) != high) continue;
        if (span.ragged)
            add(wide(frame.axis(axis).count)), constant -= c;
        else
            constant += c * (span.tile - 1);
    }
    if (!number.empty()) add_term(sum, wide(number));
    if (constant != 0 || sum.empty()) add_term(sum, std::to_string(constant));
    return sum;
}

}  // namespace

std::string lowest(const Frame& frame, const Affine& form, ScopeId scope, const OwnRows* own) {
    return bound(frame, form, scope, false, own);
}
std::string highest(const Frame& frame, const Affine& form, ScopeId scope, const OwnRows* own) {
    return bound(frame, form, scope, true, own);
}
bool fits_index(const Frame& frame, const Affine& form, ScopeId scope) {
    return fits_index(sums_of(frame, form, scope));
}

std::string last_view_text(const Frame& frame, VariableId variable) {
    return frame.whole_text("last_" + frame.name(variable), lower::SizeFormulas(frame.lowered).last_of_view(variable));
}
std::string stride_text(const Frame& frame, VariableId variable, std::size_t dimension) {
    return frame.whole_text(fmt::format("stride_{}_{}", frame.name(variable), dimension),
                            lower::SizeFormulas(frame.lowered).stride(variable, dimension));
}

std::string lanes_in_memory(const Frame& frame, VariableId variable) { return frame.name(variable) + "_lanes_"; }
std::string lanes_type(const Frame& frame, VariableId variable) {
    const LaneTile tile = *frame.shape(variable).lanes;
    const Span& span = frame.span(tile.axis, frame.layout(variable).scope);
    return fmt::format("Lanes<{}{}, {}, {}>", frame.is_output(variable) ? "" : "const ",
                       memory_type(frame.variable(variable).memory_type), tile.vectors,
                       !span.ragged && span.tile % tile.values_a_round == 0);
}

std::string memory_type(DType type) { return std::string(facts(type).memory_text); }

void write_load(const Frame& frame, Lines& out, const Step& step) {
    const VariableId variable = std::get<Load>(*step.statement).variable;
    if (!frame.variable(variable).gathers.empty())
        return write_gather(frame, out, variable, step.scope, step.synchronizes_inside);
    Transfer(frame, out, variable, step.scope, step.synchronizes_inside).load();
}
void write_store(const Frame& frame, Lines& out, VariableId variable, ScopeId scope) {
    Transfer(frame, out, variable, scope).store();
}
void write_target(const Frame& frame, Lines& out, VariableId variable, ScopeId scope) {
    Transfer(frame, out, variable, scope).target();
}

void write_init(const Frame& frame, Lines& out, const Init& init) {
    const DType type = frame.variable(init.variable).memory_type;
    if (frame.is_in_lanes(init.variable))
        return out(fmt::format("{} = {};", frame.name(init.variable), literal(init.value, frame.is_double)));
    if (frame.is_in_accumulators(init.variable)) return write_first_sums(frame, out, init);
    out(fmt::format("fill({}, {}, {});", frame.name(init.variable), frame.layout(init.variable).count,
                    frame.is_whole(init.variable) ? integer_literal(whole_of(type, init.value))
                                                  : literal(init.value, frame.is_double)));
}

}  // namespace napkin::writers
