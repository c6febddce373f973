// Loads of tiles for which data decide what they hold. Coordinates by which elements are read have loops. In these,
// rows are gathered and compared with the array's size, once each. What lies side by side in the array for such a row
// is copied as one segment or block.
#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "emit/emit_index.hpp"
#include "emit/emit_write.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {
namespace {

/// The coordinates of one dimension of the box that lie inside of its array. The buffer's dimension begins at `low`.
struct Coordinates {
    std::string low, first, count;
    std::string is_cut = {};  ///< whether some lie outside; "" where none ever does
};

class Gather {
public:
    Gather(const Frame& frame, Lines& out, VariableId variable, ScopeId scope)
        : frame_(frame),
          out_(out),
          variable_(variable),
          scope_(scope),
          v_(frame.variable(variable)),
          layout_(frame.layout(variable)),
          name_(frame.name(variable)),
          buffer_(frame.is_view(variable) ? frame.copies[variable] : name_),
          memory_(frame.memory.at(v_.array)),
          strides_(frame.strides.at(v_.array)),
          how_(*frame.shape(variable).gathered) {}

    void load(bool synchronizes) {
        const bool is_view = frame_.is_view(variable_);
        if (is_view) out_(fmt::format("const real* {} = {};", name_, buffer_));
        out_.open("");
        std::string is_cut;
        for (std::size_t p = 0; p < v_.dims.size(); ++p) {
            coordinates_.push_back(coordinates(p));
            const std::string& cut = coordinates_[p].is_cut;
            if (!cut.empty()) is_cut += (is_cut.empty() ? "" : " || ") + cut;
        }
        if (!is_cut.empty() && !is_view) {
            if (is_cut != "true") out_.open(fmt::format("if ({})", is_cut));
            write_zeros(frame_, out_, variable_, synchronizes);
            if (is_cut != "true") out_.close();
        }
        look_up(0);
        std::size_t gathered_by = 0;
        for (std::size_t d = 0; d < how_.source.size(); ++d)
            if (how_.plain(d) < 0) gathered_by = std::max(gathered_by, how_.depth(d));
        for (std::size_t k = 0; k <= how_.loops.size(); ++k) {
            if (is_view && k == gathered_by) choose_view(k);
            if (k < how_.loops.size()) open_loop(k), look_up(k + 1);
        }
        copy();
        if (is_view) out_.close();
        for (std::size_t k = 0; k < how_.loops.size(); ++k) out_.close();
        if (how_.is_block && frame_.in_blocks()) out_("copies_arrive();");
        out_.close();
    }

private:
    [[nodiscard]] std::string place(std::size_t p) const { return fmt::format("{}_p{}_", name_, p); }
    [[nodiscard]] std::string row(std::size_t d) const { return fmt::format("{}_i{}_", name_, d); }

    Coordinates coordinates(std::size_t p) {
        const std::int64_t extent = frame_.extent(v_.limits[p]);
        const AxisId axis = v_.dims[p].single_axis();
        const bool is_cut = napkin::is_cut(frame_, v_, p);
        if (axis >= 0 && !is_cut) {
            const Span& span = frame_.span(axis, scope_);
            const std::string begin = span.begins ? frame_.axis(axis).begin : "0";
            return {begin, begin, frame_.count(axis, scope_)};
        }
        const BoundsText bounds = bounds_text(frame_, v_.dims[p], scope_, false);
        const std::string begin = bounds_text(frame_, v_.dims[p], scope_).low.text;
        const std::vector<AxisId> axes = v_.dims[p].axes();
        if (none_of(axes, [&](AxisId a) { return frame_.span(a, scope_).begins; })) {
            std::vector<std::int64_t> tile;
            for (const Span& span : frame_.scope(scope_)) tile.push_back(span.tile);
            const Interval all = range_of(v_.dims[p], std::vector<std::int64_t>(tile.size(), 0), tile),
                           there = napkin::inside(all, extent);
            return {begin, std::to_string(there.low), std::to_string(there.size()), is_cut && there != all ? "true" : ""};
        }
        const BoundsText declared{declare(p, "low", bounds.low), declare(p, "high", bounds.high)};
        const InsideText there = inside_text(declared, frame_.extent_text(v_.limits[p]));
        const std::string first = declare(p, "first", {there.first, {0, extent}}).text,
                          count = declare(p, "count", {fmt::format("{} - {}", there.end, first), {-extent, extent}}).text;
        // What lies outside of an array that no index leaves is padding of the tile.
        return {begin == bounds.low.text ? declared.low.text : begin, first, count,
                is_cut ? fmt::format("{} < 0 || {} >= {}", declared.low.text, declared.high.text,
                                     frame_.extent_text(v_.limits[p]))
                       : ""};
    }
    IntegerText declare(std::size_t p, const char* what, const IntegerText& value) {
        std::string name = fmt::format("{}{}_", place(p), what);
        out_(fmt::format("const {} {} = {};", type_of(value), name, value.text));
        return {name, value.range};
    }
    /// A coordinate of the box. Loops leave out those that lie outside of its array.
    [[nodiscard]] IntegerText in_box(AxisId p) const {
        const auto dimension = static_cast<std::size_t>(p);
        return {place(dimension), {0, frame_.extent(v_.limits[dimension]) - 1}};
    }

    /// On a GPU, warps share the segments. For single values, threads take neighbours in the innermost dimension.
    void open_loop(std::size_t k) {
        const Coordinates& c = coordinates_[how_.loops[k]];
        const auto longer = [&](std::size_t p) { return layout_.sizes[p] > 1; };
        const auto last_long = [&](std::size_t end) {
            while (end > 0 && !longer(how_.loops[end - 1])) --end;
            return end;
        };
        const std::size_t end = how_.is_block ? how_.loops.size() : how_.loops.size() - 1;
        const bool is_run = last_long(end) == k + 1, is_single = !how_.is_block && k + 1 == how_.loops.size();
        const auto [first, step] = !frame_.in_blocks()  ? std::pair("", "")
                                   : is_run             ? std::pair(" + warp_of_thread()", "num_warps()")
                                   : !is_single         ? std::pair("", "")
                                   : last_long(end) > 0 ? std::pair(" + lane_of_thread()", "lanes")
                                                        : std::pair(" + thread_of_block()", "num_threads()");
        const std::string at = place(how_.loops[k]);
        out_.open(fmt::format("for (Index {0} = {1}{2}; {0} < {3}; {4})", at, c.first, first,
                              c.first == "0" ? c.count : fmt::format("{} + {}", c.first, c.count),
                              *step == 0 ? "++" + at : fmt::format("{} += {}", at, step)));
    }
    /// Whether there is a single segment, which all threads copy.
    [[nodiscard]] bool has_one_run() const {
        return none_of(how_.loops, [&](std::size_t p) { return layout_.sizes[p] > 1; });
    }

    /// Writes the indices that are known once so many loops are open, and no earlier.
    void look_up(std::size_t opened) {
        for (std::size_t d = 0; d < how_.source.size(); ++d)
            if (how_.plain(d) < 0 && how_.depth(d) == opened) {
                const IntegerText index = index_text(
                    how_.source[d], [&](AxisId p) { return in_box(p); }, [&](const Read& r) { return element(r); });
                out_(fmt::format("const {} {} = {};", type_of(index), row(d), index.text));
            }
    }

    /// Elements of arrays in memory are read there, where they are exact. Elements that were gathered themselves are
    /// read from their tiles.
    [[nodiscard]] IntegerText element(const Read& r) const {
        const Variable& inner = frame_.variable(r.variable());
        const Layout& tile = frame_.layout(r.variable());
        std::string position, there;
        for (std::size_t d = 0; d < r.indices.size(); ++d) {
            const std::string coordinate = index_text(r.indices[d], [&](AxisId p) { return in_box(p); }).text;
            // The box's own coordinates lie inside. What is computed from them may not, where a condition keeps it from
            // being used.
            if (r.indices[d].single_axis() < 0)
                there += fmt::format("{0}{1} >= 0 && {1} < {2}", there.empty() ? "" : " && ", coordinate,
                                     frame_.extent_text(inner.limits[d]));
            position += position.empty() ? "" : " + ";
            position += inner.gathers.empty()
                            ? fmt::format("{} * {}[{}]", coordinate, frame_.strides.at(inner.array), d)
                            : fmt::format("({} - {}) * {}", coordinate,
                                          bounds_text(frame_, inner.dims[d], tile.scope).low.text, tile.strides[d]);
        }
        IntegerText value{"", elements_of(inner.memory_type)};
        value.text = fmt::format("static_cast<{}>({}[{}])", type_of(value),
                                 inner.gathers.empty() ? frame_.memory.at(inner.array) : frame_.name(r.variable()),
                                 position.empty() ? "0" : position);
        if (!there.empty()) value.text = fmt::format("({} ? {} : nowhere)", there, value.text);
        return value;
    }
    static Interval elements_of(DType type) {
        using Narrow = std::numeric_limits<std::int32_t>;
        using Wide = std::numeric_limits<std::int64_t>;
        return bytes(type) > 4 ? Interval{Wide::min(), Wide::max()} : Interval{Narrow::min(), Narrow::max()};
    }

    /// Where the tile lies inside of the array, it is read in place; else it is copied.
    void choose_view(std::size_t opened) {
        const std::string at = fmt::format("{}_at_", name_);
        out_(fmt::format("const Index {} = {};", at, from(opened)));
        out_.open(fmt::format("if ({} && {} <= {})", inside(), at, last_view_text(frame_, variable_)));
        out_(fmt::format("{} = {} + {};", name_, memory_, at));
        out_.close();
        out_.open("else");
    }

    /// Whether the gathered row lies in the array.
    [[nodiscard]] std::string inside() const {
        std::string all;
        for (std::size_t d = 0; d < how_.source.size(); ++d)
            if (how_.plain(d) < 0)
                all += fmt::format("{0}{1} >= 0 && {1} < {2}", all.empty() ? "" : " && ", row(d),
                                   frame_.extent_text(frame_.diagram().array(v_.array).axes[d]));
        return all;
    }
    /// The position in memory, with so many loops open, of the first element that is in none of them.
    [[nodiscard]] std::string from(std::size_t opened) const {
        std::string sum;
        for (std::size_t d = 0; d < how_.source.size(); ++d)
            add(sum, times(how_.plain(d) < 0 ? row(d) : coordinate(static_cast<std::size_t>(how_.plain(d)), opened),
                           fmt::format("{}[{}]", strides_, d)));
        return sum;
    }
    [[nodiscard]] std::string coordinate(std::size_t p, std::size_t opened) const {
        const auto end = how_.loops.begin() + static_cast<std::ptrdiff_t>(opened);
        return std::find(how_.loops.begin(), end, p) != end ? place(p) : coordinates_[p].first;
    }
    static std::string times(const std::string& a, const std::string& b) {
        return a == "0" || b == "0" ? "" : b == "1" ? a : a + " * " + b;
    }
    static void add(std::string& sum, const std::string& term) {
        if (!term.empty()) sum += (sum.empty() ? "" : " + ") + term;
    }

    void copy() {
        const std::size_t all = how_.loops.size();
        std::string to;
        for (std::size_t p = 0; p < v_.dims.size(); ++p) {
            const Coordinates& c = coordinates_[p];
            const std::string at = coordinate(p, all);
            if (at != c.low)
                add(to, times(c.low == "0" ? at : fmt::format("({} - {})", at, c.low), std::to_string(layout_.strides[p])));
        }
        const std::string cell = frame_.cell_type(variable_);
        if (!how_.is_block) {
            out_(fmt::format("{}{}[{}] = {} ? static_cast<{}>({}[{}]) : {}(0);",
                             frame_.in_blocks() && v_.dims.empty() ? "if (thread_of_block() == 0) " : "", buffer_,
                             to.empty() ? "0" : to, inside(), cell, memory_, from(all), cell));
            return;
        }
        const auto pointer = [](const std::string& base, const std::string& offset) {
            return offset.empty() ? base : base + " + " + offset;
        };
        const auto of = [&](int p) { return p < 0 ? Coordinates{"0", "0", "1"} : coordinates_[at(p)]; };
        const auto stride = [&](int p) { return p < 0 ? 0 : layout_.strides[at(p)]; };
        const auto memory_stride = [&](int p) -> std::string {
            for (std::size_t d = 0; d < how_.source.size(); ++d)
                if (p >= 0 && how_.plain(d) == p) return fmt::format("{}[{}]", strides_, d);
            return "0";
        };
        if (frame_.in_blocks()) {
            out_(fmt::format("copy_run({}, {}, {}, {} ? {} : nullptr, {}, {});",
                             has_one_run() ? "thread_of_block(), num_threads()" : "lane_of_thread(), lanes",
                             pointer(buffer_, to), stride(how_.columns), inside(), pointer(memory_, from(all)),
                             memory_stride(how_.columns), of(how_.columns).count));
            return;
        }
        out_(fmt::format("if ({})", inside()));
        out_(fmt::format("    copy_in({}, {}, {}, {}, {}, {}, {});", pointer(buffer_, to), stride(how_.rows),
                         pointer(memory_, from(all)), memory_stride(how_.rows), memory_stride(how_.columns),
                         of(how_.rows).count, of(how_.columns).count));
        out_("else");
        out_(fmt::format("    clear({}, {}, {}, {});", pointer(buffer_, to), stride(how_.rows), of(how_.rows).count,
                         of(how_.columns).count));
    }

    const Frame& frame_;
    Lines& out_;
    VariableId variable_;
    ScopeId scope_;
    const Variable& v_;
    const Layout& layout_;
    const std::string &name_, &buffer_, &memory_, &strides_;
    GatheredCopy how_;
    std::vector<Coordinates> coordinates_;
};

}  // namespace

void write_gather(const Frame& frame, Lines& out, VariableId variable, ScopeId scope, bool synchronizes) {
    Gather(frame, out, variable, scope).load(synchronizes);
}

}  // namespace napkin::writers
