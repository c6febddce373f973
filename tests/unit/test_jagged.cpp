// Axes whose lengths are data: what the diagram means is what the same text means for each sequence alone.
#include "syntax/jagged.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "diagram/array_sizes.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/verifier.hpp"
#include "support/ranges.hpp"
#include "syntax/parse.hpp"
#include "syntax/print.hpp"

namespace napkin::test_jagged {
namespace {

Diagram parsed(const std::string& text) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"program.nk", text}));
    if (!diagram) throw std::runtime_error(text + render(diagram.errors()));
    return *diagram;
}

/// The texts. Their sequences are along b, and lie in axes q and x.
const std::vector<std::string> packed_texts{
    "attention(Q[b, q, k], K[b, x, k], V[b, x, d], F[b + 1]: i32) -> O[b, q, d], L[b, q]\n"
    "    S[b, q, x] = sum(k) Q[b, q, k] * K[b, x, k]\n"
    "    P[b, q, x] = softmax(x) where(x <= q, S[b, q, x] * k^-0.5, -inf)\n"
    "    O[b, q, d] = sum(x) P[b, q, x] * V[b, x, d]\n    L[b, q] = logsumexp(x) where(x <= q, S[b, q, x], -inf)\n",
    "cross(Q[b, q, k], K[b, x, k], V[b, x, d], T[q, x], F[b + 1]: i32, G[b + 1]: i64) -> O[b, q, d]\n"
    "    S[b, q, x] = (sum(k) Q[b, q, k] * K[b, x, k]) + T[q, x]\n    P[b, q, x] = softmax(x) S[b, q, x]\n"
    "    O[b, q, d] = sum(x) P[b, q, x] * V[b, x, d]\n",
    "segments(X[b, q, c], F[b + 1]: i32) -> A[b, c], B[b, c], C[b], D[b, q, c], E[b, q]\n"
    "    A[b, c] = mean(q) X[b, q, c]\n    B[b, c] = prod(q) X[b, q, c]\n    C[b] = max(q, c) X[b, q, c]\n"
    "    D[b, q, c] = softmax(q) X[b, q, c]\n    E[b, q] = q + 10 * size(q)\n",
    "experts(X[b, q, k], W[b, k, n], F[b + 1]: i32) -> Y[b, q, n], Z[b, q, n]\n"
    "    Y[b, q, n] = sum(k) X[b, q, k] * W[b, k, n]\n    Z[b, q, n] = where(q >= 1, X[b, q - 1, 0] + Y[b, q - 1, n], "
    "0)\n",
    "places(X[b, q], F[b + 1]: i32) -> A[b]: i32, B[b, q]: i32\n"
    "    A[b] = argmax(q) X[b, q]\n    B[b, q] = count(x) X[b, x] <= X[b, q]\n",
    "ends(X[b, q, c], F[b + 1]: i32) -> Y[b, q, c]\n"
    "    Y[b, q, c] = X[b, q, c] - X[b, 0, c] + X[b, size(q) - 1, c]\n",
};
const std::vector<std::string> padded_texts{
    "decode(Q[b, h, k], K[b, q, h, k], V[b, q, h, d], L[b]: i32) -> O[b, h, d]\n"
    "    P[b, h, q] = softmax(q) k^-0.5 * (sum(k) Q[b, h, k] * K[b, q, h, k])\n"
    "    O[b, h, d] = sum(q) P[b, h, q] * V[b, q, h, d]\n",
    "rows(X[b, q, c], L[b]: i32) -> A[b, q, c], B[b], C[b, q]\n    A[b, q, c] = softmax(q) X[b, q, c]\n"
    "    B[b] = mean(q, c) X[b, q, c]\n    C[b, q] = max(x) X[b, x, 0] * X[b, q, 0]\n",
};

/// Sizes of the axes that the diagram has.
Extents sizes_of(const Diagram& d, std::map<std::string, std::int64_t> sizes) {
    sizes.insert({{"k", 3}, {"d", 2}, {"c", 2}, {"n", 4}, {"h", 2}});
    std::erase_if(sizes, [&](const auto& size) { return !d.find_axis(size.first); });
    const auto extents = bind_sizes(d, sizes);
    if (!extents) throw std::runtime_error(print(d) + render(extents.errors()));
    return *extents;
}

class Sequences {
public:
    /// `offsets` begins with 0 and ends with all rows; for lengths it is what adds up to them.
    Sequences(std::string text, bool is_packed, std::vector<std::int64_t> offsets, std::vector<std::int64_t> others)
        : text_(std::move(text)), is_packed_(is_packed), offsets_(std::move(offsets)), others_(std::move(others)) {
        const std::string lengths = !is_packed ? "sizes q = x = L[b]"
                                    : text_.find("G[b") == std::string::npos
                                        ? "sizes q = x = F[b] .. F[b + 1]"
                                        : "sizes q = F[b] .. F[b + 1], x = G[b] .. G[b + 1]";
        whole_ = parsed(text_ + lengths + "\n");
        extents_ = sizes_of(whole_,
                            {{"b", count()}, {"bq", offsets_.back()}, {"bx", rows_of("x").back()}, {"q", 9}, {"x", 9}});
        values_ = random_inputs(whole_, extents_, 7);
        for (const ArrayId id : whole_.inputs) {
            if (!whole_.array(id).rows) continue;
            const auto& rows = whole_.array(id).name == "G" ? others_ : offsets_;
            for (std::size_t i = 0; i < values_[id].size(); ++i)
                values_[id].set(i, Number::whole(Kind::i64, is_packed_ ? rows[i] : rows[i + 1] - rows[i]));
        }
        evaluate(whole_, extents_, values_);
    }
    [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
    [[nodiscard]] const Diagram& diagram() const { return whole_; }

    /// Compares the sequence with the text at its own sizes.
    void compare(std::int64_t b) const {
        const auto length = [&](const std::string& axis) { return rows_of(axis)[at(b) + 1] - rows_of(axis)[at(b)]; };
        const Diagram alone = parsed(text_);
        const Extents extents = sizes_of(alone, {{"b", 1}, {"q", length("q")}, {"x", length("x")}});
        Values values = random_inputs(alone, extents, 1);
        const auto for_each = [&](ArrayId id, const auto& f) {
            std::vector<std::int64_t> point(alone.axes.size(), 0);
            if (values[id].size() == 0) return;
            std::size_t i = 0;
            do f(i++, place(alone, id, point, b));
            while (next_point(alone.array(id).axes, extents, point));
        };
        for (const ArrayId id : alone.inputs) {
            const ArrayId in_whole = *whole_.find_array(alone.array(id).name);
            if (whole_.array(in_whole).rows) continue;
            for_each(id, [&](std::size_t i, std::size_t j) { values[id].set(i, values_[in_whole].at(j)); });
        }
        evaluate(alone, extents, values);
        for (const ArrayId id : alone.outputs) {
            const ArrayId in_whole = *whole_.find_array(alone.array(id).name);
            for_each(id, [&](std::size_t i, std::size_t j) {
                const double wanted = values[id][i], found = values_[in_whole][j];
                // A mean of nothing, and a place in it, which has another width.
                if (std::isnan(wanted) || (length("q") == 0 && !is_float(alone.array(id).type))) return;
                EXPECT_TRUE(wanted == found || std::abs(wanted - found) < 1e-9)
                    << alone.array(id).name << " of sequence " << b << ": " << found << ", alone " << wanted << "\n"
                    << print(whole_);
            });
        }
    }

private:
    static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
    [[nodiscard]] const std::vector<std::int64_t>& rows_of(const std::string& axis) const {
        return axis == "x" && !others_.empty() ? others_ : offsets_;
    }
    /// Where an element of the sequence alone stands in the whole array.
    [[nodiscard]] std::size_t place(const Diagram& alone, ArrayId id, const std::vector<std::int64_t>& point,
                                    std::int64_t b) const {
        const std::vector<AxisId>& axes = alone.array(id).axes;
        const bool has_sequence = any_of(axes, [&](AxisId a) { return alone.axis(a).name == "b"; });
        const std::vector<std::int64_t> sizes = array_sizes(whole_, *whole_.find_array(alone.array(id).name), extents_);
        std::size_t out = 0, d = 0;
        for (std::size_t i = 0; i < axes.size(); ++i) {
            const std::string& name = alone.axis(axes[i]).name;
            const bool is_jagged = (name == "q" || name == "x") && has_sequence && is_packed_;
            const bool is_paired = name == "b" && is_packed_ && i + 1 < axes.size() &&
                                   (alone.axis(axes[i + 1]).name == "q" || alone.axis(axes[i + 1]).name == "x");
            if (is_paired) continue;
            const std::int64_t own = name == "b" ? b
                                                 : point[static_cast<std::size_t>(axes[i])] +
                                                       (is_jagged ? rows_of(name)[at(b)] : 0);
            out = out * at(sizes[d++]) + at(own);
        }
        return out;
    }

    std::string text_;
    bool is_packed_;
    std::vector<std::int64_t> offsets_, others_;
    Diagram whole_;
    Extents extents_;
    Values values_;
};

TEST(Jagged, MeansWhatEachSequenceMeansAlone) {
    const std::vector<std::vector<std::int64_t>> offsets{{0, 3, 3, 4, 9}, {0, 5}, {0, 0, 0, 2}, {0, 1, 2, 3, 4, 5}};
    for (const auto& rows : offsets) {
        std::vector<std::int64_t> others = rows;
        for (std::int64_t& row : others) row = row * 2 - row / 3;
        for (const std::string& text : packed_texts) {
            const Sequences all(text, true, rows,
                                text.find("G[b") == std::string::npos ? std::vector<std::int64_t>{} : others);
            EXPECT_EQ(verify(all.diagram()), std::vector<std::string>{});
            EXPECT_EQ(parsed(print(all.diagram())), all.diagram()) << print(all.diagram());
            for (std::int64_t b = 0; b < all.count(); ++b) all.compare(b);
        }
        for (const std::string& text : padded_texts) {
            const Sequences all(text, false, rows, {});
            EXPECT_EQ(parsed(print(all.diagram())), all.diagram()) << print(all.diagram());
            for (std::int64_t b = 0; b < all.count(); ++b) all.compare(b);
        }
    }
}

/// The values of an output, from offsets and X = 1, 2, 3, …
std::vector<double> outputs(const std::string& text, const std::vector<double>& numbers, std::int64_t rows) {
    const Diagram d = parsed(text);
    const Extents extents = bind_sizes(d, {{d.find_axis("bq") ? "bq" : "q", rows}}).value();
    Values values(d.arrays.size());
    for (const ArrayId id : d.inputs) {
        const bool is_data = d.array(id).rows.has_value();
        values[id] = Column(d.array(id).type, static_cast<std::size_t>(count_values(d, id, extents)), Number());
        for (std::size_t i = 0; i < values[id].size(); ++i)
            values[id].set(i, is_data ? Number::whole(Kind::i64, static_cast<std::int64_t>(numbers[i]))
                                      : Number::real(static_cast<double>(i + 1)));
    }
    evaluate(d, extents, values);
    std::vector<double> out;
    for (const double v : values[d.outputs[0]]) out.push_back(v);
    return out;
}

TEST(Jagged, RowsOfNoSequenceAreZeroAndCountNowhere) {
    const std::string all =
        "f(X[b, q], F[b + 1]: i32) -> Y\n    Y = sum(b, q) X[b, q]\nsizes q = F[b] .. F[b + 1], b = 2\n";
    EXPECT_EQ(outputs(all, {0, 2, 3}, 5), (std::vector<double>{6}));
    EXPECT_EQ(outputs(all, {1, 2, 3}, 5), (std::vector<double>{5}));
    const std::string weights =
        "f(X[b, q], F[b + 1]: i32) -> Y[b, q]\n    P[b, q, x] = softmax(x) X[b, q] * X[b, x]\n"
        "    Y[b, q] = sum(x) P[b, q, x]\nsizes q = x = F[b] .. F[b + 1], b = 2\n";
    EXPECT_EQ(outputs(weights, {1, 2, 3}, 5), (std::vector<double>{0, 1, 1, 0, 0}));
    const std::string lengths = "f(X[b, q], L[b]: i32) -> Y[b, q]\n    Y[b, q] = X[b, q] * 2\nsizes q = L[b], b = 2\n";
    EXPECT_EQ(outputs(lengths, {2, 0}, 3), (std::vector<double>{2, 4, 0, 0, 0, 0}));
}

TEST(Jagged, OneIntervalIsWrittenAsMasksByHandAre) {
    const Diagram d = parsed(packed_texts[0] + "sizes q = x = F[b] .. F[b + 1]\n");
    const auto text = [&](const std::string& array) { return to_string(d, *d.definition(*d.find_array(array))); };
    const std::string inside = "bx >= F_first[bq] and bx < F_last[bq] and ";
    EXPECT_EQ(text("P_X"), "P_X[bq, bx] = where(" + inside + "bx <= bq, S[bq, bx] * size(k)^-0.5, -inf)");
    EXPECT_EQ(text("P_M"), "P_M[bq] = max(bx) P_X[bq, bx]");
    EXPECT_EQ(text("O"), "O[bq, d] = where(F_first[bq] < F_last[bq], O_rows[bq, d], 0)");
    EXPECT_NE(print(d).find("F[b_1]: i32 offsets bq"), std::string::npos) << print(d);
}

}  // namespace
}  // namespace napkin::test_jagged
