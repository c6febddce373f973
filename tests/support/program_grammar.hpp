#pragma once
// The grammar of random programs as tables: a row is a production with its weight, what it needs, and the function that
// writes it. A new kind of program is a row more. Terms are in program_terms.cpp, integers and places in
// program_places.cpp, recipes of equations in program_recipes.cpp and index_recipes.cpp.
#include <span>
#include <string>
#include <string_view>

#include "support/program_writer.hpp"
#include "support/random_program.hpp"

namespace napkin {

using Axes = std::set<int>;
Axes operator|(Axes a, const Axes& b);
Axes operator-(Axes a, const Axes& b);

/// `weight` 0 switches a production off.
template <class Make>
struct Production {
    std::string_view name;
    int weight;
    Features needs;
    Make make;
};

class Grammar {
public:
    Grammar(std::uint64_t seed, const ProgramOptions& options);
    std::string run();

    /// An index of a dimension, and the condition under which it lies in it; no text where it always does.
    struct Place {
        Phrase index, guard = {};
    };
    using Recipe = Production<void (Grammar::*)()>;
    using TermRow = Production<Phrase (Grammar::*)(const Axes&, int)>;  ///< over axes that are bound, to a depth
    using PlaceRow = Production<Place (Grammar::*)(const Axes&, int)>;  ///< in the dimension of an axis
    static std::span<const Recipe> recipes();
    static std::span<const TermRow> terms();
    static std::span<const TermRow> wholes();
    static std::span<const PlaceRow> places();

private:
    [[nodiscard]] bool wants(Features needs) const { return (options_.features & needs) == needs; }
    /// A production of the table by weight. Pre: one without needs has a weight.
    template <class Row>
    const Row& chosen(std::span<const Row> rows) {
        int total = 0;
        for (const Row& row : rows)
            if (wants(row.needs)) total += row.weight;
        int left = w_.pick(total);
        for (const Row& row : rows)
            if (wants(row.needs) && (left -= row.weight) < 0) return row;
        return rows.front();
    }

    // ---- terms
    // ------------------------------------------------------------
    Phrase coordinate(int axis) { return {w_.axis(axis), {axis}, 9, true, {}, true}; }
    Phrase size(int axis) { return {"size(" + w_.axis(axis) + ")", {}, 9, true, {}, true}; }
    int any(const Axes& axes) { return w_.one_of(std::vector<int>(axes.begin(), axes.end())); }
    Phrase compare(const std::string& op, const Phrase& a, const Phrase& b);
    std::string relation() { return w_.one_of<std::string>({"<", "<=", ">", ">=", "==", "!="}); }
    /// A condition on coordinates: causal, a window, one point, everything, nothing, a band, the last.
    Phrase index_mask(const Axes& axes);
    /// A condition on what no rounding has touched: coordinates, inputs, ids, integers.
    Phrase mask(const Axes& axes);
    /// An integer array over one or two of the axes.
    Phrase ids(const Axes& axes);
    /// What stands where a mask is not: the fillers that people use.
    Phrase filler();
    /// Outside of a fold a filler mostly stays finite: what it would make of everything after it tests little.
    Phrase filler_in_maps() { return w_.chance(85) ? number(0) : filler(); }
    Phrase constant();
    Phrase leaf(const Axes& axes);
    Phrase squashed(const Phrase& a) { return call("tanh", a, 1); }
    Phrase above_zero(const Phrase& a);
    Phrase unary(const Phrase& a);
    static Phrase powered(const Phrase& a, const std::string& power);
    Phrase expression(const Axes& axes, int depth);
    /// An expression that depends on every axis of `needed`.
    Phrase over(const Axes& axes, const Axes& needed, int depth);
    /// A part of an expression of that depth.
    Phrase part(const Axes& axes, int depth) { return expression(axes, depth - 1 - w_.pick(2)); }
    Phrase added(const Axes& axes, int depth);
    Phrase subtracted(const Axes& axes, int depth);
    Phrase multiplied(const Axes& axes, int depth);
    Phrase divided(const Axes& axes, int depth);
    Phrase larger_or_smaller(const Axes& axes, int depth);
    Phrase masked(const Axes& axes, int depth);
    Phrase an_array(const Axes& axes, int depth);
    Phrase a_function(const Axes& axes, int depth);
    Phrase a_whole(const Axes& axes, int depth);
    Phrase a_real_quotient(const Axes& axes, int depth);
    Phrase a_cast(const Axes& axes, int depth);
    Phrase a_truth(const Axes& axes, int depth);
    Phrase an_inner_reduction(const Axes& axes, int depth);
    Phrase an_inner_call(const Axes& axes, int depth);
    Phrase an_argument(const Axes& axes, int depth);
    Phrase a_rebound(const Axes& axes, int depth);
    Phrase a_read_elsewhere(const Axes& axes, int depth);
    Phrase a_guarded_reduction(const Axes& axes, int depth);
    Phrase a_guarded_call(const Axes& axes, int depth);

    // ---- integers
    // ------------------------------------------------------------
    Phrase whole(const Axes& axes, int depth);
    Phrase whole_part(const Axes& axes, int depth) { return whole(axes, depth - 1 - w_.pick(2)); }
    Phrase a_whole_leaf(const Axes& axes, int depth);
    Phrase a_whole_sum(const Axes& axes, int depth);
    Phrase a_whole_product(const Axes& axes, int depth);
    Phrase a_whole_quotient(const Axes& axes, int depth);
    Phrase a_whole_choice(const Axes& axes, int depth);
    Phrase a_whole_extremum(const Axes& axes, int depth);
    Phrase a_whole_power(const Axes& axes, int depth);
    Phrase a_whole_read(const Axes& axes, int depth);
    Phrase a_whole_cast(const Axes& axes, int depth);
    Phrase a_whole_reduction(const Axes& axes, int depth);
    Phrase a_place_of_extremum(const Axes& axes, int depth);
    /// A comparison where a number of 24 or 53 bits is one too few.
    Phrase compared_at_the_edge(const Axes& axes);

    // ---- places
    // ------------------------------------------------------------
    /// The bound axes over the dimension of an axis.
    Axes over_dimension(const Axes& axes, int dimension) const;
    Phrase affine(const Axes& axes);
    Place at_a_coordinate(const Axes& axes, int dimension);
    Place at_a_remainder(const Axes& axes, int dimension);
    Place clamped(const Axes& axes, int dimension);
    Place reversed(const Axes& axes, int dimension);
    Place at_a_block(const Axes& axes, int dimension);
    Place at_an_end(const Axes& axes, int dimension);
    Place guarded_shift(const Axes& axes, int dimension);
    Place guarded_sum(const Axes& axes, int dimension);
    Place looked_up(const Axes& axes, int dimension);
    Place looked_up_as_it_is(const Axes& axes, int dimension);
    Place guarded_lookup(const Axes& axes, int dimension);
    /// The array at places over the bound axes, one of them of the dimension `kept` where that is an axis, at itself.
    struct Reading {
        Phrase value, guard = {};
    };
    Reading elsewhere(int array, const Axes& axes, int kept = -1);
    /// The value where the guard holds, else a filler.
    Phrase behind(const Phrase& guard, const Phrase& value, const Phrase& otherwise);
    /// An array for such a read, of integers or of real numbers, with that axis where one is given; a new input where
    /// there is none.
    int some_array(bool whole, const Axes& axes, int with = -1);
    /// The places of a guarded axis itself: `n - w`, `n + w - 1`, `n - 2`.
    Place shifted_by(int axis, int dimension, const Axes& others);
    Phrase both(const Phrase& a, const Phrase& b);

    // ---- recipes
    // ------------------------------------------------------------
    /// Rows and the axis that is streamed.
    struct Rows {
        Axes rows, stream, all;
    };
    Rows rows_and_stream();
    Phrase score(const Rows& r);
    void recipe();
    void mapped();
    void reduction();
    void exponential_folds();
    void library_rows();
    void moments();
    void ladder();
    void product_of_many();
    void siblings();
    void twin_axis();
    void chain();
    void extremum();
    void counted();
    void shifted();
    void loss();
    void attention();
    // index_recipes.cpp
    void indexed();
    void fold_at_other_rows();
    void attention_at_other_rows();
    void guarded_window();
    void guarded_scores();
    void guarded_expression();
    void gathered();
    void softmax_gathered();
    void whole_map();
    void whole_reduction();
    void quantised();
    void rounded_sums();
    void rounded_sums_of(const Phrase& x, const Axes& stream);
    void several_streams();
    void typed();
    void normalised_anew();

    ProgramOptions options_;
    std::vector<std::string> real_types_, whole_types_;  ///< of the language
    ProgramWriter w_;
    std::vector<Phrase> ids_;
};

}  // namespace napkin
