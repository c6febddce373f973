// Loads of tiles of which data decide what they hold. Coordinates that elements are read by have loops, in which rows are looked up and
// compared with the array's size, once each. What the array holds beside each other of such a row is copied as one run or block.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "emit/emit_index.hpp"
#include "emit/emit_write.hpp"

namespace napkin::writers {
namespace {

std::optional<std::int64_t> number_in(const std::string& text) {
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && read == end ? std::optional(value) : std::nullopt;
}

/// The coordinates of one dimension of the box that lie inside of its array. The buffer's dimension begins at `low`.
struct Coordinates {
    std::string low, first, count;
    std::string is_cut = {};  ///< whether some lie outside; "" where none ever does
};

class Gather {
public:
    Gather(const Frame& frame, Lines& out, VariableId variable, int scope)
        : frame_(frame),
          out_(out),
          variable_(variable),
          scope_(scope),
          v_(frame.variable(variable)),
          layout_(frame.layout(variable)),
          name_(frame.name(variable)),
          memory_(frame.memory.at(v_.array)),
          strides_(frame.strides.at(v_.array)),
          source_(box_of(frame.diagram(), *frame.kernel, *as<Read>(read(variable, v_.gathers))).source) {
        choose_block();
    }

    void load(bool synchronizes) {
        out_.open("");
        std::string is_cut;
        for (std::size_t p = 0; p < v_.dims.size(); ++p) {
            coordinates_.push_back(coordinates(p));
            const std::string& cut = coordinates_[p].is_cut;
            if (!cut.empty()) is_cut += (is_cut.empty() ? "" : " || ") + cut;
        }
        if (!is_cut.empty()) {
            if (is_cut != "true") out_.open(fmt::format("if ({})", is_cut));
            write_zeros(frame_, out_, variable_, synchronizes);
            if (is_cut != "true") out_.close();
        }
        look_up(-1);
        for (std::size_t k = 0; k < loops_.size(); ++k) open_loop(k), look_up(static_cast<int>(loops_[k]));
        copy();
        for (std::size_t k = 0; k < loops_.size(); ++k) out_.close();
        if (is_block_ && frame_.in_blocks()) out_("copies_arrive();");
        out_.close();
    }

private:
    [[nodiscard]] std::string place(std::size_t p) const { return fmt::format("{}_p{}_", name_, p); }
    [[nodiscard]] std::string row(std::size_t d) const { return fmt::format("{}_i{}_", name_, d); }

    /// The dimension of the box that one of the array's dimensions is, and nothing else reads by; -1: data decide on it.
    [[nodiscard]] int plain(std::size_t d) const { return source_[d].single_axis(); }
    [[nodiscard]] bool is_plain(std::size_t p) const {
        return std::any_of(source_.begin(), source_.end(),
                           [&](const Index& i) { return i.is_axis(static_cast<AxisId>(p)); });
    }

    /// What is copied at once, where the array's last dimension is plain: on a CPU as other tiles are, with columns along the buffer's
    /// vectors and rows along what is contiguous in memory. On a GPU runs, by the threads of a warp each.
    void choose_block() {
        const int last = plain(source_.size() - 1);
        is_block_ = last >= 0 && layout_.sizes[static_cast<std::size_t>(last)] > 1;
        if (is_block_ && frame_.in_blocks()) columns_ = last;
        if (is_block_ && !frame_.in_blocks()) {
            const int inner = frame_.place(variable_).innermost;
            if (is_plain(static_cast<std::size_t>(inner))) columns_ = inner;
            for (std::size_t p = 0; p < v_.dims.size(); ++p)
                if (static_cast<int>(p) != columns_ && is_plain(p) && layout_.sizes[p] > 1) rows_ = static_cast<int>(p);
        }
        for (const bool plain : {false, true})
            for (std::size_t p = 0; p < v_.dims.size(); ++p)
                if ((is_block_ && is_plain(p)) == plain && static_cast<int>(p) != columns_ && static_cast<int>(p) != rows_)
                    loops_.push_back(p);
    }

    Coordinates coordinates(std::size_t p) {
        const std::int64_t extent = frame_.extent(v_.limits[p]);
        const AxisId axis = v_.dims[p].single_axis();
        if (axis >= 0 && !is_cut(frame_, v_, p)) {
            const Span& span = frame_.span(axis, scope_);
            const std::string begin = span.begins ? frame_.axis(axis).begin : "0";
            return {begin, begin, frame_.count(axis, scope_)};
        }
        const BoundsText bounds = bounds_text(frame_, v_.dims[p], scope_, false);
        const auto low = number_in(bounds.low), high = number_in(bounds.high);
        if (low && high) {
            const std::int64_t first = std::max<std::int64_t>(*low, 0), count = std::min(*high + 1, extent) - first;
            return {bounds.low, std::to_string(first), std::to_string(count), count < *high + 1 - *low ? "true" : ""};
        }
        const std::string from = declared(p, "low", bounds.low), to = declared(p, "high", bounds.high),
                          first = declared(p, "first", fmt::format("max_index({}, 0)", from));
        return {from, first, declared(p, "count", fmt::format("min_index({} + 1, {}) - {}", to, extent, first)),
                fmt::format("{} < 0 || {} >= {}", from, to, extent)};
    }
    std::string declared(std::size_t p, const char* what, const std::string& value) {
        std::string name = fmt::format("{}{}_", place(p), what);
        out_(fmt::format("const Index {} = {};", name, value));
        return name;
    }

    /// On a GPU warps take the runs in turn, and of single values threads take neighbours in the innermost dimension.
    void open_loop(std::size_t k) {
        const Coordinates& c = coordinates_[loops_[k]];
        const auto longer = [&](std::size_t p) { return layout_.sizes[p] > 1; };
        const auto last_long = [&](std::size_t end) {
            while (end > 0 && !longer(loops_[end - 1])) --end;
            return end;
        };
        const std::size_t end = is_block_ ? loops_.size() : loops_.size() - 1;
        const bool is_run = last_long(end) == k + 1, is_single = !is_block_ && k + 1 == loops_.size();
        const auto [first, step] = !frame_.in_blocks()  ? std::pair("", "")
                                   : is_run             ? std::pair(" + warp_of_thread()", "num_warps()")
                                   : !is_single         ? std::pair("", "")
                                   : last_long(end) > 0 ? std::pair(" + lane_of_thread()", "lanes")
                                                        : std::pair(" + thread_of_block()", "num_threads()");
        const std::string at = place(loops_[k]);
        out_.open(fmt::format("for (Index {0} = {1}{2}; {0} < {3}; {4})", at, c.first, first,
                              c.first == "0" ? c.count : fmt::format("{} + {}", c.first, c.count),
                              *step == 0 ? "++" + at : fmt::format("{} += {}", at, step)));
    }
    /// All threads take one run.
    [[nodiscard]] bool has_one_run() const {
        return std::none_of(loops_.begin(), loops_.end(), [&](std::size_t p) { return layout_.sizes[p] > 1; });
    }

    /// The indices that are known once the loop over the coordinate is open, and no earlier; -1: outside of all loops.
    void look_up(int opened) {
        const auto found = std::find(loops_.begin(), loops_.end(), static_cast<std::size_t>(opened));
        const auto is_open = [&](AxisId p, auto end) {
            return std::find(loops_.begin(), end, static_cast<std::size_t>(p)) != end;
        };
        for (std::size_t d = 0; d < source_.size(); ++d) {
            if (plain(d) >= 0) continue;
            const std::vector<AxisId> by = source_[d].axes();
            const bool is_known = std::all_of(by.begin(), by.end(),
                                              [&](AxisId p) { return p == opened || is_open(p, found); });
            const bool is_new = opened < 0 ? by.empty() : source_[d].depends_on(opened);
            if (opened < 0 ? by.empty() : is_known && is_new)
                out_(fmt::format("const Index {} = {};", row(d),
                                 index_text(
                                     source_[d], [&](AxisId p) { return place(static_cast<std::size_t>(p)); },
                                     [&](const Read& r) { return element(r); })));
        }
    }

    /// Elements of arrays in memory are read there, where they are exact; those that were gathered themselves lie in their tiles.
    [[nodiscard]] std::string element(const Read& r) const {
        const Variable& inner = frame_.variable(r.array);
        const Layout& tile = frame_.layout(r.array);
        std::string position, there;
        for (std::size_t d = 0; d < r.indices.size(); ++d) {
            const std::string coordinate = index_text(r.indices[d],
                                                      [&](AxisId p) { return place(static_cast<std::size_t>(p)); });
            // The box's own coordinates are inside; what is reckoned from them may not be, where a condition keeps it from being taken.
            if (r.indices[d].single_axis() < 0)
                there += fmt::format("{0}{1} >= 0 && {1} < {2}", there.empty() ? "" : " && ", coordinate,
                                     frame_.extent(inner.limits[d]));
            position += position.empty() ? "" : " + ";
            position += inner.gathers.empty()
                            ? fmt::format("{} * {}[{}]", coordinate, frame_.strides.at(inner.array), d)
                            : fmt::format("({} - {}) * {}", coordinate,
                                          bounds_text(frame_, inner.dims[d], tile.scope).low, tile.strides[d]);
        }
        const std::string value = fmt::format(
            "static_cast<Index>({}[{}])", inner.gathers.empty() ? frame_.memory.at(inner.array) : frame_.name(r.array),
            position.empty() ? "0" : position);
        return there.empty() ? value : fmt::format("({} ? {} : nowhere)", there, value);
    }

    void copy() {
        const auto times = [](const std::string& a, const std::string& b) {
            return a == "0" || b == "0" ? "" : b == "1" ? a : a + " * " + b;
        };
        const auto add = [](std::string& sum, const std::string& term) {
            if (!term.empty()) sum += (sum.empty() ? "" : " + ") + term;
        };
        const auto has_loop = [&](std::size_t p) { return std::find(loops_.begin(), loops_.end(), p) != loops_.end(); };
        std::string inside, from, to;
        for (std::size_t d = 0; d < source_.size(); ++d) {
            const int p = plain(d);
            if (p < 0)
                inside += fmt::format("{0}{1} >= 0 && {1} < {2}", inside.empty() ? "" : " && ", row(d),
                                      frame_.extent(frame_.diagram().array(v_.array).axes[d]));
            const auto at = static_cast<std::size_t>(p);
            add(from, times(p < 0          ? row(d)
                            : has_loop(at) ? place(at)
                                           : coordinates_[at].first,
                            fmt::format("{}[{}]", strides_, d)));
        }
        for (std::size_t p = 0; p < v_.dims.size(); ++p) {
            const Coordinates& c = coordinates_[p];
            const std::string at = has_loop(p) ? place(p) : c.first;
            if (at != c.low)
                add(to, times(c.low == "0" ? at : fmt::format("({} - {})", at, c.low), std::to_string(layout_.strides[p])));
        }
        const std::string cell = frame_.cell_type(variable_);
        if (!is_block_) {
            out_(fmt::format("{}{}[{}] = {} ? static_cast<{}>({}[{}]) : {}(0);",
                             frame_.in_blocks() && v_.dims.empty() ? "if (thread_of_block() == 0) " : "", name_,
                             to.empty() ? "0" : to, inside, cell, memory_, from, cell));
            return;
        }
        const auto pointer = [](const std::string& base, const std::string& offset) {
            return offset.empty() ? base : base + " + " + offset;
        };
        const auto of = [&](int p) {
            return p < 0 ? Coordinates{"0", "0", "1"} : coordinates_[static_cast<std::size_t>(p)];
        };
        const auto stride = [&](int p) { return p < 0 ? 0 : layout_.strides[static_cast<std::size_t>(p)]; };
        const auto memory_stride = [&](int p) -> std::string {
            for (std::size_t d = 0; d < source_.size(); ++d)
                if (p >= 0 && plain(d) == p) return fmt::format("{}[{}]", strides_, d);
            return "0";
        };
        if (frame_.in_blocks()) {
            out_(fmt::format("copy_run({}, {}, {}, {} ? {} : nullptr, {}, {});",
                             has_one_run() ? "thread_of_block(), num_threads()" : "lane_of_thread(), lanes",
                             pointer(name_, to), stride(columns_), inside, pointer(memory_, from),
                             memory_stride(columns_), of(columns_).count));
            return;
        }
        out_(fmt::format("if ({})", inside));
        out_(fmt::format("    copy_in({}, {}, {}, {}, {}, {}, {});", pointer(name_, to), stride(rows_),
                         pointer(memory_, from), memory_stride(rows_), memory_stride(columns_), of(rows_).count,
                         of(columns_).count));
        out_("else");
        out_(fmt::format("    clear({}, {}, {}, {});", pointer(name_, to), stride(rows_), of(rows_).count,
                         of(columns_).count));
    }

    const Frame& frame_;
    Lines& out_;
    VariableId variable_;
    int scope_;
    const Variable& v_;
    const Layout& layout_;
    const std::string &name_, &memory_, &strides_;
    std::vector<Index> source_;  ///< by the array's dimensions
    std::vector<Coordinates> coordinates_;
    bool is_block_ = false;
    int rows_ = -1, columns_ = -1;    ///< of the block; -1: one
    std::vector<std::size_t> loops_;  ///< the box's other dimensions, outermost first
};

}  // namespace

void write_gather(const Frame& frame, Lines& out, VariableId variable, int scope, bool synchronizes) {
    Gather(frame, out, variable, scope).load(synchronizes);
}

}  // namespace napkin::writers
