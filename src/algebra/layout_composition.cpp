// Composition of layouts. The outer layout, coalesced, splits an index in digits. A leaf of the inner layout is written
// as digits of the outer one, one piece for each of those it runs over; the pieces' strides are the outer layout's.
// That is right as long as adding up the pieces of all leaves carries from no digit to the next, which is checked at
// the end for the farthest coordinate.
#include <fmt/format.h>

#include "algebra/layout.hpp"

namespace napkin::layouts {
namespace {

class Composer {
public:
    Composer(const Layout& outer, const Layout& inner)
        : outer_(outer), inner_(inner), digits_(coalesce(outer).leaves()), reach_(digits_.size(), 0) {}

    Result<Layout> run() {
        if (inner_.cosize() > outer_.size())
            return error(fmt::format("the inner layout reaches {}, where the outer one has {} elements",
                                     inner_.cosize() - 1, outer_.size()),
                         fmt::format("values below {}", outer_.size()));
        auto out = mode(inner_, "");
        if (!out) return out;
        for (std::size_t k = 0; k < digits_.size(); ++k)
            if (reach_[k] >= digits_[k].size)
                return error(
                    fmt::format("the modes of the inner layout together reach {} in {} of the outer layout, and carry "
                                "into what follows",
                                reach_[k], digit(k)),
                    fmt::format("at most {} there", digits_[k].size - 1));
        return out;
    }

private:
    Result<Layout> mode(const Layout& at, const std::string& path) {
        if (at.is_leaf())
            return leaf(at.leaf(), path.empty() ? "the inner layout" : "mode " + path + " of the inner layout");
        std::vector<Layout> modes;
        for (std::size_t i = 0; i < at.rank(); ++i) {
            auto m = mode(at.mode(i), path.empty() ? fmt::format("{}", i) : fmt::format("{}.{}", path, i));
            if (!m) return m;
            modes.push_back(std::move(*m));
        }
        return Layout(std::move(modes));
    }

    Result<Layout> leaf(const Leaf& l, const std::string& name) {
        if (l.size == 1 || l.stride == 0) return Layout(l.size, 0);
        std::vector<Leaf> pieces;
        std::int64_t rest = l.size, step = l.stride;
        for (std::size_t k = 0; rest > 1; ++k) {
            const bool last = k + 1 == digits_.size();
            const Leaf& d = digits_[k];
            if (!last && step % d.size == 0) {  // it moves in later digits alone
                step /= d.size;
                continue;
            }
            std::int64_t count = rest;
            if (!last && (rest - 1) * step >= d.size) {  // it runs over the digit's end
                if (d.size % step != 0)
                    return error(
                        fmt::format(
                            "stride {} of {}, {}:{}, neither divides the size of {} of the outer layout nor is a "
                            "multiple of it",
                            step, name, l.size, l.stride, digit(k)),
                        fmt::format("a divisor or a multiple of {}", d.size));
                count = d.size / step;
                if (rest % count != 0)
                    return error(
                        fmt::format(
                            "size {} of {}, {}:{}, is not a multiple of the {} steps after which it leaves {} of the "
                            "outer layout",
                            rest, name, l.size, l.stride, count, digit(k)),
                        fmt::format("a multiple of {}, or at most that", count));
            }
            pieces.push_back({count, step * d.stride});
            reach_[k] += (count - 1) * step;
            rest /= count;
            step = 1;
        }
        return from_leaves(pieces);
    }

    [[nodiscard]] std::string digit(std::size_t k) const {
        return fmt::format("mode {}:{}", digits_[k].size, digits_[k].stride);
    }

    [[nodiscard]] Diagnostic error(const std::string& what, std::string expected) const {
        return layout_error("layout-composition",
                            fmt::format("{} after {}: {}", to_string(outer_), to_string(inner_), what),
                            std::move(expected));
    }

    const Layout &outer_, &inner_;
    std::vector<Leaf> digits_;
    std::vector<std::int64_t> reach_;  ///< the largest value that each digit takes
};

}  // namespace

Result<Layout> composition(const Layout& outer, const Layout& inner) { return Composer(outer, inner).run(); }

}  // namespace napkin::layouts
