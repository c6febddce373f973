#pragma once
// The elementwise expressions of one statement's loops as text. Every subexpression is computed once, in the outermost
// loop on which it depends. This rule alone hoists what does not depend on the innermost loops, on the block's rows or
// on its vectors.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emit/emit_frame.hpp"

namespace napkin::writers {

using ValueId = int;

class BodyWriter {
public:
    /// `loops`: the serial loops of the atom, outermost first. Level k is the body of the k-th, level 0 what stands
    /// before them. Up to `point_level` they run over points of the target, then over what is reduced. `names`: of the
    /// function that is written. `math`: how operations of the roots are computed. It lives as long as the writer does.
    BodyWriter(const Frame& frame, const Step& step, const lower::MathChoices& math, std::vector<AxisId> loops,
               int point_level, Names& names);

    /// The variable's element at the atom's point stands in registers under this name.
    /// `is_vector`: the name is that of a vector, even where the address does not run along the vector axis.
    /// `is_whole`: it is an integer.
    void give(VariableId variable, std::string text, bool is_vector = false, bool is_whole = false) {
        given_[variable] = {std::move(text), is_vector, is_whole};
    }

    /// Threads read the variable where it lies in memory.
    struct Element {
        std::string text;
        std::vector<AxisId> axes;  ///< in the loops over which it differs
        bool is_whole = false;     ///< an integer that real numbers may not hold
    };
    void give_in_memory(VariableId variable, std::function<Element(const Read&)> element) {
        in_memory_[variable] = std::move(element);
    }

    /// A root: an expression whose value a statement at `level` uses, in the loops over the block's vectors j and rows
    /// i as asked for. Add all roots, then call decide(). `whole`: an integer is wanted, else a real number.
    ValueId add_root(const Expr& e, int level, bool vectors, bool rows = true, bool whole = false);
    /// The same for both factors of a lane product, side by side in its text.
    ValueId add_factors(const LaneProduct& product, int level);
    /// The same for a factor's vectors, which are the same for all rows.
    ValueId add_factor(const Read& r, int level);
    void decide();

    /// Declares what is hoisted to the level.
    void hoist(Lines& out, int level);
    /// The root's statement with the loops over i and j; `write` gets the root's text.
    void statement(Lines& out, ValueId root, const std::function<std::string(const std::string&)>& write);

    /// The statement that stores the values of a run, which stand in the array of this name (schedule/thread_runs.hpp).
    [[nodiscard]] std::string store_of_run(const std::string& values) const;
    [[nodiscard]] std::string condition_of_runs() const;

    /// Whether the root is a vector or has to be made one.
    [[nodiscard]] bool is_vector(ValueId id) const { return at(id).vec; }
    /// Text of a position in a buffer; with `vectors`, of the first lane of vector j.
    /// `part`: all of it, or what the loops over points fix, or the rest.
    enum class Part { all, fixed, rest };
    [[nodiscard]] std::string position(VariableId variable, const Address& address, bool vectors = true,
                                       Part part = Part::all) const;
    [[nodiscard]] std::string rows_header() const;
    [[nodiscard]] std::string vectors_header() const;
    /// Index of the loop over the axis, "" where it has no loop: then it is 0.
    [[nodiscard]] std::string loop_name(AxisId axis) const;

private:
    enum class Use { plain, splat, splat_mask };
    struct Value {
        // What it is.
        bool is_constant = false;  ///< of a real number or a truth value
        bool is_whole = false;     ///< a 64-bit integer, in scalar code
        double constant = 0;
        std::string pattern;  ///< text with {0}, {1}, {2} for the arguments; a leaf has none
        std::vector<ValueId> args;
        std::vector<int> argument_precedence;
        std::vector<Use> argument_use;
        int precedence = 4;  ///< 4 atom, 3 unary, 2 product, 1 sum, 0 comparison
        std::string hint;    ///< for its name
        // On what it depends.
        bool is_mask = false, is_pointer = false, is_given = false, vec = false, row = false;
        bool is_small = false;  ///< an integer that 32 bits hold
        bool is_run = false;    ///< one access loads its rows; the pattern says from where
        int level = 0;
        // How it is declared.
        int uses = 0;
        std::set<ValueId> roots;  ///< that it reaches
        bool is_moved = false;    ///< a consumer stands in another place
        std::string name;         ///< empty: written where it is used
        bool in_statement = false, array_rows = false, array_vectors = false;
    };
    struct Root {
        int level = 0;
        bool vectors = true, rows = true;
    };

    ValueId intern(Value value);
    ValueId op(std::string pattern, std::vector<ValueId> args, int precedence, std::vector<int> argument_precedence,
               bool splats = false);
    ValueId number(double value, const std::string& text = {});
    ValueId number_of_sizes(const Expr& formula);
    ValueId arithmetic(BinaryOp o, ValueId a, ValueId b);
    ValueId quotient(ValueId a, ValueId b, lower::MathForm form = lower::MathForm::plain);
    ValueId times_reciprocal(ValueId a, ValueId b);
    ValueId call(const std::string& function, std::vector<ValueId> args);
    ValueId compare(BinaryOp o, ValueId a, ValueId b);
    ValueId with_own_column(const Expr& e, const Affine& form);
    ValueId form_of_row(const Affine& form, std::int64_t factor, const char* hint);
    ValueId own_column();
    ValueId logical(BinaryOp o, ValueId a, ValueId b);
    ValueId power(ValueId base, double exponent);
    ValueId exponential(const Expr& e, double factor = 1, const Expr& of = {});
    ValueId as_number(ValueId id);
    ValueId as_mask(ValueId id);
    ValueId as_whole(ValueId id);
    ValueId whole(std::string pattern, std::vector<ValueId> args, int precedence, std::vector<int> argument_precedence);
    ValueId lower_integer(const Expr& e, Kind kind);
    ValueId real_part(BinaryOp op, ValueId x, const Expr& by);
    ValueId choose(ValueId condition, ValueId a, ValueId b);
    std::optional<ValueId> by_powers_of_two(BinaryOp op, ValueId x, const Expr& by);
    ValueId lower_integer_binary(const Binary& b, Kind kind);
    ValueId lower(const Expr& e);
    ValueId nonpositive_exponential(const Expr& e, const Binary& difference);
    ValueId lower_unary(const Expr& e, const Unary& u);
    ValueId lower_binary(const Expr& e, const Binary& b);
    ValueId whole_operand(const Expr& e, ValueId value);
    /// `from_tile`: counted from where its tile begins.
    ValueId axis_index(AxisId axis, bool whole = false, bool from_tile = false);
    ValueId read_value(const Read& r);
    ValueId read_in_run(const Read& r);
    std::string place_of_run(VariableId variable, const std::vector<Index>& indices, bool each, bool are_known,
                             std::string& inside) const;
    [[nodiscard]] std::string stride_of_run(ArrayId array, std::size_t dimension, bool are_known) const;
    [[nodiscard]] std::string left_of_run() const;
    ValueId read_by_lane(const Read& r, const Address& address);
    [[nodiscard]] std::string coordinate_sum(AxisId axis, const std::string& lane) const;
    [[nodiscard]] std::string coordinate(AxisId axis, const std::string& lane) const;
    ValueId row_pointer(VariableId variable, const Address& address);

    [[nodiscard]] Value& at(ValueId id) { return values_[static_cast<std::size_t>(id)]; }
    [[nodiscard]] const Value& at(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
    [[nodiscard]] bool wide(const Value& v) const { return v.vec && atom_.vectors > 1; }
    [[nodiscard]] bool tall(const Value& v) const { return v.row && atom_.rows > 1; }
    [[nodiscard]] int level_of(AxisId axis) const;
    void reach(ValueId id, ValueId root);
    [[nodiscard]] std::string definition(ValueId id) const;
    [[nodiscard]] std::string text_at(ValueId id, int precedence) const;
    [[nodiscard]] std::string declaration(ValueId id) const;
    void declare_array(Lines& out, ValueId id) const;

    const Frame& frame_;
    const Step& step_;
    const Atom& atom_;
    ScopeId scope_;
    std::vector<AxisId> loops_;
    int point_level_;
    std::vector<Value> values_;
    std::map<std::string, ValueId> known_;
    std::map<const ExprNode*, ValueId> lowered_;
    std::map<ValueId, Root> roots_;
    struct Given {
        std::string text;
        bool is_vector = false, is_whole = false;
    };
    std::map<VariableId, Given> given_;
    std::map<VariableId, std::function<Element(const Read&)>> in_memory_;
    Names& names_;
    IntegerValues integer_values_;
    const lower::MathChoices& math_;
};

}  // namespace napkin::writers
