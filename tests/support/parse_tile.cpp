#include "support/parse_tile.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "support/ids.hpp"
#include "support/text.hpp"
#include "syntax/builtins.hpp"
#include "syntax/parser.hpp"
#include "syntax/plain_expression.hpp"

namespace napkin {
namespace {

/// One line at a time; statements nest by their indentation. The words and expressions are the language's.
class TileParser {
public:
    TileParser(std::string_view text, const Derived& derived)
        : source_(std::make_shared<const Source>(Source{"<tile>", std::string(text)})), diagram_(derived.diagram) {
        program_.diagram = diagram_;
        names_.axes = names_of(diagram_.axes);
        begin_line();
    }

    Result<SizedProgram> run() {
        parse_header();
        while (!error_ && has_line()) parse_kernel();
        if (error_) return *error_;
        return std::move(program_);
    }

private:
    TileKernel& kernel() { return program_.kernels.back(); }
    [[nodiscard]] bool has_line() const { return parser_.has_value(); }
    LineParser& line() { return *parser_; }

    /// Goes to the next line that is not empty.
    void begin_line() {
        parser_.reset();
        while (next_ <= source_->text.size() && !parser_) {
            const std::size_t end = std::min(source_->text.find('\n', next_), source_->text.size());
            lexical_ = {};
            tokens_ = lex_line(source_, next_, end, lexical_);
            next_ = end + 1;
            if (!tokens_.tokens.empty()) parser_.emplace(source_, tokens_, diagnostics_);
        }
    }

    /// Ends the line: nothing may be left of it, unless the rest is only there to be looked at.
    void finish_line(bool ignore_rest = false) {
        if (!ignore_rest) line().finish();
        std::vector<Diagnostic> errors = diagnostics_.take();
        // What cannot be read as tokens counts as far as the line was read.
        const std::size_t read = !errors.empty() ? errors[0].range.begin : ignore_rest ? line().peek().begin : next_;
        for (Diagnostic& d : lexical_.take())
            if (d.range.begin < read) errors.insert(errors.begin(), std::move(d));
        if (!errors.empty() && !error_) error_ = errors[0];
        begin_line();
    }

    bool need_line(const char* what) {
        if (error_ || has_line()) return !error_;
        const auto end = static_cast<std::uint32_t>(source_->text.size());
        error_ = Diagnostic{"expected-token",   {source_, end, end}, "the tile program ends too early", what, {}, {},
                            ExitCode::bad_input};
        return false;
    }

    void expect_word(std::string_view word) {
        if (line().accept_word(word) || line().failed()) return;
        line().fail(Code::expected_token, line().range(line().peek()), fmt::format("'{}' should stand here", word),
                    fmt::format("'{}'", word));
    }
    void expect_words(std::initializer_list<std::string_view> words) {
        for (const std::string_view word : words) expect_word(word);
    }

    /// The place of a name among others, or -1 with an error.
    template <class Id>
    Id place(const std::vector<std::string>& names, const std::string& what) {
        const AstWord word = line().name("the name of " + what);
        const auto found = std::find(names.begin(), names.end(), word.text);
        if (found != names.end()) return Id::of(found - names.begin());
        line().fail(what == "an axis" ? Code::unknown_axis : Code::unknown_array, word.range,
                    fmt::format("no {} is called {}", what.substr(what.find(' ') + 1), word.text), {},
                    did_you_mean(word.text, names));
        return -1;
    }
    AxisId parse_axis() { return place<AxisId>(names_.axes, "an axis"); }
    VariableId parse_variable_name() { return place<VariableId>(names_.arrays, "a variable"); }

    Expr value_of(const AstNode& node) {
        return line().failed() ? constant(0) : plain_expression(node, names_, diagnostics_);
    }
    Expr parse_expr() { return value_of(line().expression()); }

    void parse_header() {
        if (!need_line("`tiles of` and the diagram's name")) return;
        expect_words({"tiles", "of"});
        finish_line(true);
        if (!need_line("`sizes` and the axes' extents")) return;
        expect_word("sizes");
        program_.extents.assign(diagram_.axes.size(), 0);
        while (!line().at_end() && !line().failed()) {
            const AxisId axis = parse_axis();
            line().expect("=");
            const std::int64_t extent = line().whole_number("the axis' extent");
            if (axis >= 0) program_.extents[axis] = extent;
            if (!line().accept(",")) break;
        }
        for (const AxisId a : diagram_.axes.ids())
            if (program_.extents[a] < 1)
                line().fail(Code::expected_token, line().range(line().peek()), "the sizes miss an axis",
                            fmt::format("{} = a positive number", diagram_.axes[a].name));
        finish_line();
    }

    void parse_kernel() {
        expect_word("kernel");
        program_.kernels.emplace_back();
        const std::vector<std::int64_t> whole(diagram_.axes.size(), 0);
        program_.sizes.push_back({whole, whole, whole});
        const std::size_t begin = line().peek().begin;
        kernel().name = source_->text.substr(begin, next_ - 1 - begin);
        finish_line(true);
        names_.arrays.clear();
        if (has_line() && line().is_word("variable")) {
            finish_line(true);
            while (!error_ && has_line() && !starts_numbered()) parse_variable();
        }
        parse_groups();
        if (!error_) kernel().body = parse_list(1);
    }

    bool starts_numbered() { return line().peek().kind == TokenKind::number; }

    void parse_variable() {
        Variable v;
        v.name = line().name("a variable's name").text;
        v.array = place<ArrayId>(names_of(diagram_.arrays), "an array");
        if (line().is("[") && !line().failed()) v.dims = plain_indices(line().indices(), names_, diagnostics_);
        const bool gathers = std::any_of(v.dims.begin(), v.dims.end(), [](const Index& i) { return i.is_gathered(); });
        if (v.array >= 0) v.limits = diagram_.array(v.array).axes, v.memory_type = diagram_.array(v.array).type;
        if (gathers && diagnostics_.empty()) {
            // The box is that of the read, as if the variable were known already.
            v.gathers = std::move(v.dims);
            const auto self = VariableId::of(kernel().variables.size());
            kernel().variables.push_back(v);
            Box box = box_of(diagram_, kernel(), *as<Read>(read(self, v.gathers)));
            kernel().variables.pop_back();
            v.dims = std::move(box.dims), v.limits = std::move(box.limits);
        }
        finish_line(true);
        names_.arrays.push_back(v.name);
        kernel().variables.push_back(std::move(v));
    }

    void parse_groups() {
        if (!need_line("`once:` or `for each group of`")) return;
        line().whole_number("the line's number");
        if (!line().accept_word("once")) {
            expect_words({"for", "each", "group", "of"});
            do {
                const AxisId axis = parse_axis();
                kernel().group_axes.push_back(axis);
                set(program_.sizes.back().group, axis, parse_at_a_time());
            } while (line().accept(","));
        }
        line().expect(":");
        finish_line();
    }

    static void set(std::vector<std::int64_t>& sizes, AxisId axis, std::int64_t size) {
        if (axis >= 0) sizes[at(axis)] = size;
    }

    std::int64_t parse_at_a_time() {
        line().expect("(");
        const std::int64_t size = line().whole_number("how many values a step takes");
        expect_words({"at", "a", "time"});
        line().expect(")");
        return size;
    }

    /// Four spaces a level, after the line's number and two spaces; -1 on a line without number.
    int depth_of_line() {
        return starts_numbered() ? static_cast<int>((line().peek(1).begin - line().peek().end) / 4) : -1;
    }

    std::vector<TileStatement> parse_list(int depth) {
        std::vector<TileStatement> list;
        while (!error_ && has_line()) {
            const int here = depth_of_line();
            if (here < depth) break;
            line().whole_number("the line's number");
            if (here > depth)
                line().fail(Code::bad_indentation, line().range(line().peek()),
                            "the line is indented further than the list that it stands in");
            parse_statement(depth, list);
        }
        return list;
    }

    void parse_statement(int depth, std::vector<TileStatement>& list) {
        // A word that is followed by another name is a keyword; a variable may be called the same.
        const bool is_keyword = !line().is("=", 1) && !line().is("[", 1);
        const auto takes = [&](std::string_view word) { return is_keyword && line().accept_word(word); };
        const auto each_variable = [&](const auto& add) {
            do add(parse_variable_name());
            while (line().accept(","));
            finish_line();
        };
        if (takes("load")) return each_variable([&](VariableId v) { list.emplace_back(Load{v}); });
        if (takes("store")) return each_variable([&](VariableId v) { list.emplace_back(Store{v}); });
        if (takes("free")) return each_variable([&](VariableId v) { list.emplace_back(Free{v}); });
        if (takes("for")) return parse_loop(depth, list);
        if (takes("init")) {
            const SourceRange begin = line().range(line().peek());
            const VariableId v = parse_variable_name();
            line().expect("=");
            const Expr value = parse_expr();
            if (!as<Constant>(value)) line().fail(Code::expected_expression, begin, "a state begins with a constant");
            if (!line().failed()) {
                kernel().variables[v].is_state = true;
                list.emplace_back(Init{v, as<Constant>(value)->value});
            }
            return finish_line();
        }
        Compute compute{parse_variable_name(), std::nullopt, {}, nullptr, nullptr};
        if (line().is("[")) (void)line().indices();
        line().expect("=");
        if (!line().failed()) parse_right_side(compute);
        list.emplace_back(std::move(compute));
        finish_line();
    }

    void parse_loop(int depth, std::vector<TileStatement>& list) {
        expect_word("each");
        TileLoop loop;
        loop.is_sub = line().accept_word("part");
        if (!loop.is_sub) expect_word("chunk");
        expect_word("of");
        loop.axis = parse_axis();
        TileSizes& sizes = program_.sizes.back();
        set(loop.is_sub ? sizes.sub : sizes.stream, loop.axis, parse_at_a_time());
        if (line().accept_word("in")) kernel().parts = {loop.axis, parse_axis()};
        if (line().accept(",")) {
            expect_words({"skipped", "where"});
            const SourceRange begin = line().range(line().peek());
            if (!take_support(parse_expr(), loop.support))
                line().fail(Code::expected_expression, begin, "this does not say where chunks are skipped",
                            "sums of axes < 0, joined by or");
        }
        line().expect(":");
        finish_line();
        loop.body = parse_list(depth + 1);
        list.emplace_back(std::make_shared<const TileLoop>(std::move(loop)));
    }

    /// Forms below 0, joined by `or`.
    static bool take_support(const Expr& e, std::vector<Affine>& support) {
        const auto* b = as<Binary>(e);
        if (b && b->op == BinaryOp::logical_or) return take_support(b->a, support) && take_support(b->b, support);
        const std::optional<Affine> form = b && b->op == BinaryOp::lt ? affine_form(b->a) : std::nullopt;
        const auto* zero = form ? as<Constant>(b->b) : nullptr;
        if (zero && zero->value == 0) support.push_back(*form);
        return zero && zero->value == 0;
    }

    /// [carry and operator] op over axes: body
    void parse_right_side(Compute& compute) {
        std::size_t before = 0;
        while (line().peek(before).kind != TokenKind::end && !reduction_at(before)) ++before;
        const std::optional<ReduceOp> op = reduction_at(before);
        if (!op) {
            compute.body = parse_expr();
            return;
        }
        // max(carry, max over x: body), or carry + sum over x: body
        const bool is_call = *op == ReduceOp::max || *op == ReduceOp::min;
        if (before > 0) {
            if (is_call) {
                expect_word(name(*op)), line().expect("(");
                before -= 2;
            }
            const LogicalLine carry = line().take(before - 1);
            LineParser parser(source_, carry, diagnostics_);
            const AstNode node = parser.expression();
            parser.finish();
            compute.carry = parser.failed() ? constant(0) : value_of(node);
            line().expect(is_call ? "," : *op == ReduceOp::sum ? "+" : "*");
        }
        expect_words({name(*op), "over"});
        compute.reduce = *op;
        if (!line().accept_word("nothing")) {
            do compute.reduce_axes.push_back(parse_axis());
            while (line().accept(","));
        }
        line().expect(":");
        compute.body = parse_expr();
        if (compute.carry && is_call) line().expect(")");
    }

    /// The reduction whose name and `over` stand that many tokens further on.
    std::optional<ReduceOp> reduction_at(std::size_t ahead) {
        return line().is_word("over", ahead + 1) ? find_reduction(line().peek(ahead).text) : std::nullopt;
    }

    std::shared_ptr<const Source> source_;
    const Diagram& diagram_;
    SizedProgram program_;
    NameTable names_;
    std::size_t next_ = 0;  ///< where the next line begins
    LogicalLine tokens_;
    Diagnostics diagnostics_, lexical_;
    std::optional<LineParser> parser_;
    std::optional<Diagnostic> error_;
};

}  // namespace

Result<SizedProgram> parse_tile(std::string_view text, const Derived& derived) {
    return TileParser(text, derived).run();
}

}  // namespace napkin
