#include <fmt/format.h>

#include <algorithm>

#include "support/text.hpp"
#include "tile/parse_expr.hpp"
#include "tile/print.hpp"

namespace napkin {
namespace {

template <class T>
int index_of_name(const std::vector<T>& things, const std::string& name) {
    const auto found = std::find_if(things.begin(), things.end(), [&](const T& t) { return t.name == name; });
    return found == things.end() ? -1 : static_cast<int>(found - things.begin());
}

/// One line at a time; statements nest by their indentation.
class TileParser {
public:
    TileParser(std::string_view text, const Derived& derived)
        : source_(std::make_shared<const Source>(Source{"<tile>", std::string(text)})), diagram_(derived.diagram) {
        program_.diagram = diagram_;
        names_.axis = [this](const std::string& name) { return index_of_name(diagram_.axes, name); };
        names_.array = [this](const std::string& name) {
            return program_.kernels.empty() ? -1 : index_of_name(kernel().variables, name);
        };
        names_.axes = names_of(diagram_.axes);
        for (std::size_t begin = 0; begin <= source_->text.size();) {
            const std::size_t end = std::min(source_->text.find('\n', begin), source_->text.size());
            Cursor line(source_, begin, end);
            if (!line.at_end()) lines_.push_back(line);
            begin = end + 1;
        }
    }

    Result<SizedProgram> run() {
        parse_header();
        while (!error_ && has_line()) parse_kernel();
        if (error_) return *error_;
        return std::move(program_);
    }

private:
    TileKernel& kernel() { return program_.kernels.back(); }
    [[nodiscard]] bool has_line() const { return next_ < lines_.size(); }
    Cursor& line() { return lines_[next_]; }

    /// Ends the line: nothing may be left of it, unless the rest is only there to be looked at.
    void finish_line(bool ignore_rest = false) {
        if (!ignore_rest && !line().at_end())
            line().fail("tile-syntax", line().position(), "the line goes on where it should end");
        if (line().error()) error_ = line().error();
        ++next_;
    }

    bool need_line(const char* what) {
        if (error_ || has_line()) return !error_;
        const auto end = static_cast<std::uint32_t>(source_->text.size());
        error_ = Diagnostic{"tile-syntax",      {source_, end, end}, "the tile program ends too early", what, {}, {},
                            ExitCode::bad_input};
        return false;
    }

    void parse_header() {
        if (!need_line("`tiles of` and the diagram's name")) return;
        line().expect("tiles"), line().expect("of");
        finish_line(true);
        if (!need_line("`sizes` and the axes' extents")) return;
        line().expect("sizes");
        program_.extents.assign(diagram_.axes.size(), 0);
        while (!line().at_end() && !line().error()) {
            const AxisId axis = parse_axis(line(), names_);
            line().expect("=");
            const std::int64_t extent = line().integer();
            if (axis >= 0) program_.extents[static_cast<std::size_t>(axis)] = extent;
            if (!line().take(",")) break;
        }
        for (std::size_t a = 0; a < diagram_.axes.size(); ++a)
            if (program_.extents[a] < 1)
                line().fail("tile-syntax", line().position(), "the sizes miss an axis",
                            fmt::format("{} = a positive number", diagram_.axes[a].name));
        finish_line();
    }

    void parse_kernel() {
        line().expect("kernel");
        program_.kernels.emplace_back();
        const std::vector<std::int64_t> whole(diagram_.axes.size(), 0);
        program_.sizes.push_back({whole, whole, whole});
        kernel().name = std::string(line().rest());
        finish_line(true);
        if (has_line() && line().peek("variable")) {
            finish_line(true);
            while (!error_ && has_line() && !starts_numbered()) parse_variable();
        }
        names_.arrays = names_of(kernel().variables);
        parse_groups();
        if (!error_) kernel().body = parse_list(1);
    }

    bool starts_numbered() {
        const std::string_view text = line().rest();
        return !text.empty() && text[0] >= '0' && text[0] <= '9';
    }

    void parse_variable() {
        Variable v;
        v.name = line().identifier("variable's name");
        const std::size_t begin = line().position();
        const std::string array = line().identifier("array's name");
        v.array = index_of_name(diagram_.arrays, array);
        if (v.array < 0)
            line().fail("unknown-array", begin, fmt::format("no array is called {}", array), {},
                        nearest_name(array, names_of(diagram_.arrays)));
        v.dims = parse_indices(line(), names_);
        const bool gathers = std::any_of(v.dims.begin(), v.dims.end(), [](const Index& i) { return i.is_gathered(); });
        if (v.array >= 0) v.limits = diagram_.array(v.array).axes;
        if (gathers && !line().error()) {
            // The box is that of the read, as if the variable were known already.
            v.gathers = std::move(v.dims);
            const auto self = static_cast<VariableId>(kernel().variables.size());
            kernel().variables.push_back(v);
            Box box = box_of(diagram_, kernel(), *as<Read>(read(self, v.gathers)));
            kernel().variables.pop_back();
            v.dims = std::move(box.dims), v.limits = std::move(box.limits);
        }
        if (v.array >= 0) v.memory_type = diagram_.array(v.array).type;
        finish_line(true);
        kernel().variables.push_back(std::move(v));
    }

    void parse_groups() {
        if (!need_line("`once:` or `for each group of`")) return;
        line().integer();
        if (!line().take("once")) {
            line().expect("for"), line().expect("each"), line().expect("group"), line().expect("of");
            do {
                const AxisId axis = parse_axis(line(), names_);
                kernel().group_axes.push_back(axis);
                set(program_.sizes.back().group, axis, parse_at_a_time());
            } while (line().take(","));
        }
        line().expect(":");
        finish_line();
    }

    static void set(std::vector<std::int64_t>& sizes, AxisId axis, std::int64_t size) {
        if (axis >= 0) sizes[static_cast<std::size_t>(axis)] = size;
    }

    std::int64_t parse_at_a_time() {
        line().expect("(");
        const std::int64_t size = line().integer();
        line().expect("at"), line().expect("a"), line().expect("time"), line().expect(")");
        return size;
    }

    /// Four spaces a level, after the line's number and two spaces; -1 on a line without number.
    int depth_of_line() {
        if (!starts_numbered()) return -1;
        const std::string_view text = line().rest();
        const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
        const std::size_t after = std::min(text.find_first_not_of(' ', digits), text.size());
        return static_cast<int>((after - digits) / 4);  // (2 + 4·depth) / 4
    }

    std::vector<TileStatement> parse_list(int depth) {
        std::vector<TileStatement> list;
        while (!error_ && has_line()) {
            const int here = depth_of_line();
            if (here < depth) break;
            line().integer();
            if (here > depth)
                line().fail("tile-syntax", line().position(),
                            "the line is indented further than the list that it stands in");
            parse_statement(depth, list);
        }
        return list;
    }

    void parse_statement(int depth, std::vector<TileStatement>& list) {
        // A word that is followed by another name is a keyword; a variable may be called the same.
        const std::size_t begin = line().position();
        const std::string word = line().identifier("statement");
        const bool is_keyword = !line().error() && !line().peek("=") && !line().peek("[");
        if (is_keyword && (word == "load" || word == "store" || word == "free")) {
            do {
                const VariableId v = parse_variable_name();
                if (word == "load") list.emplace_back(Load{v});
                if (word == "store") list.emplace_back(Store{v});
                if (word == "free") list.emplace_back(Free{v});
            } while (line().take(","));
            return finish_line();
        }
        if (is_keyword && word == "for") {
            line().expect("each");
            TileLoop loop;
            loop.is_sub = line().take("part");
            if (!loop.is_sub) line().expect("chunk");
            line().expect("of");
            loop.axis = parse_axis(line(), names_);
            TileSizes& sizes = program_.sizes.back();
            set(loop.is_sub ? sizes.sub : sizes.stream, loop.axis, parse_at_a_time());
            if (line().take("in")) kernel().parts = {loop.axis, parse_axis(line(), names_)};
            if (line().take(",")) {
                line().expect("skipped"), line().expect("where");
                do {
                    loop.support.push_back(parse_affine(line(), names_));
                    line().expect("<"), line().expect("0");
                } while (line().take("or"));
            }
            line().expect(":");
            finish_line();
            loop.body = parse_list(depth + 1);
            list.emplace_back(std::make_shared<const TileLoop>(std::move(loop)));
            return;
        }
        if (is_keyword && word == "init") {
            const VariableId v = parse_variable_name();
            line().expect("=");
            const Expr value = parse_expr(line(), names_);
            if (!as<Constant>(value)) line().fail("tile-syntax", begin, "a state begins with a constant");
            if (!line().error()) {
                kernel().variables[static_cast<std::size_t>(v)].is_state = true;
                list.emplace_back(Init{v, as<Constant>(value)->value});
            }
            return finish_line();
        }
        line().move_to(begin);
        Compute compute{parse_variable_name(), std::nullopt, {}, nullptr, nullptr};
        parse_indices(line(), names_);
        line().expect("=");
        if (!line().error()) parse_right_side(compute);
        list.emplace_back(std::move(compute));
        finish_line();
    }

    VariableId parse_variable_name() {
        const std::size_t begin = line().position();
        const std::string word = line().identifier("variable's name");
        const VariableId v = line().error() ? -1 : names_.array(word);
        if (v < 0)
            line().fail("unknown-variable", begin, fmt::format("no variable is called {}", word), {},
                        nearest_name(word, names_.arrays));
        return v;
    }

    std::optional<ReduceOp> take_reduction() {
        const std::size_t before = line().position();
        for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min})
            if (line().take(name(op)) && line().take("over"))
                return op;
            else
                line().move_to(before);
        return std::nullopt;
    }

    void parse_reduction(Compute& compute, ReduceOp op) {
        compute.reduce = op;
        if (!line().take("nothing")) {
            do compute.reduce_axes.push_back(parse_axis(line(), names_));
            while (line().take(","));
        }
        line().expect(":");
        compute.body = parse_expr(line(), names_);
    }

    void parse_right_side(Compute& compute) {
        if (const auto op = take_reduction()) return parse_reduction(compute, *op);
        const std::size_t begin = line().position();
        // max(carry, max over x: body)
        for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
            if (line().rest().find(fmt::format(", {} over ", name(op))) != std::string_view::npos && line().take(name(op))) {
                line().expect("(");
                compute.carry = parse_expr(line(), names_);
                line().expect(",");
                if (const auto inner = take_reduction(); inner == op) {
                    parse_reduction(compute, op);
                    return line().expect(")");
                }
            }
            line().move_to(begin);
        }
        Expr first = parse_expr(line(), names_);
        if (line().take("+") || line().take("*")) {
            compute.carry = std::move(first);
            if (const auto op = take_reduction()) return parse_reduction(compute, *op);
            return line().fail("tile-syntax", line().position(), "the tile program cannot be read here",
                               "`sum over` or `prod over`");
        }
        compute.body = std::move(first);
    }

    std::shared_ptr<const Source> source_;
    const Diagram& diagram_;
    SizedProgram program_;
    NameTable names_;
    std::vector<Cursor> lines_;
    std::size_t next_ = 0;
    std::optional<Diagnostic> error_;
};

}  // namespace

Result<SizedProgram> parse_tile(std::string_view text, const Derived& derived) {
    return TileParser(text, derived).run();
}

}  // namespace napkin
