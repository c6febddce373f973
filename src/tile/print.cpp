#include "tile/print.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "support/numbers.hpp"
#include "support/text.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {
class KernelPrinter {
public:
    KernelPrinter(const SizedProgram& program, std::size_t k)
        : program_(program),
          diagram_(program.diagram),
          kernel_(program.kernels[k]),
          sizes_(program.sizes[k]),
          tile_(program.extents),
          uses_(kernel_.variables.size()) {
        names_ = diagram_.names();
        names_.array = [this](ArrayId read) { return kernel_.variables[as_variable(read)].name; };
    }

    std::string run() {
        std::vector<std::string> cuts;
        for (const auto& [axis, size] : groups_of(kernel_, sizes_)) {
            cuts.push_back(fmt::format("{} ({} at a time)", diagram_.axis(axis).name, size));
            tile_[at(axis)] = size;
        }
        add_line(cuts.empty() ? "once:" : fmt::format("for each group of {}:", join(cuts, ", ")));
        print_list(kernel_.body);

        std::string out = fmt::format("kernel {}\n", kernel_.name) + variable_table() + "\n";
        const std::size_t digits = std::to_string(lines_.size()).size();
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            const std::string number = std::to_string(i + 1);
            out += "  " + std::string(digits - number.size(), ' ') + number + "  " + lines_[i] + "\n";
        }
        return out;
    }

private:
    /// The table's row for a variable, collected while the statements are printed.
    struct Use {
        std::optional<std::int64_t> values;
        std::string tile;
        bool loaded = false, stored = false, alive = false;
        std::vector<std::pair<std::size_t, std::size_t>> lives;  ///< numbers of the first and last line
    };

    Use& use(VariableId v) { return uses_[at(v)]; }
    std::string name(VariableId v) const { return kernel_.variables[v].name; }

    void add_line(const std::string& text) { lines_.push_back(std::string(4 * depth_, ' ') + text); }

    void touch(VariableId v) {
        Use& u = use(v);
        if (!std::exchange(u.alive, true)) u.lives.emplace_back(lines_.size(), 0);
        u.lives.back().second = lines_.size();
        if (u.values) return;
        const std::vector<std::int64_t> zero(tile_.size(), 0);
        std::vector<std::string> sizes;
        u.values = 1;
        for (const Index& dim : kernel_.variables[v].dims) {
            const Interval range = range_of(dim, zero, tile_);
            sizes.push_back(std::to_string(range.high - range.low + 1));
            *u.values *= range.high - range.low + 1;
        }
        u.tile = sizes.empty() ? "1" : join(sizes, "×");
    }

    void print_list(const std::vector<TileStatement>& list) {
        ++depth_;
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (const auto* free = std::get_if<Free>(&list[i])) {
                // Lifetimes that end together share a line.
                std::vector<std::string> names;
                for (; free; free = ++i < list.size() ? std::get_if<Free>(&list[i]) : nullptr) {
                    names.push_back(name(free->variable));
                    use(free->variable).alive = false;
                }
                --i;
                add_line("free " + join(names, ", "));
                continue;
            }
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&list[i])) {
                print_loop(**loop);
            } else {
                std::visit([&](const auto& s) { print_one(s); }, list[i]);
            }
            for (const VariableId v : used_variables(kernel_, list[i])) touch(v);
        }
        --depth_;
    }

    void print_loop(const TileLoop& loop) {
        std::vector<std::string> forms;
        for (const Affine& form : loop.support) forms.push_back(to_string(form, names_) + " < 0");
        const std::string skipped = forms.empty() ? "" : ", skipped where " + join(forms, " or ");
        const std::int64_t chunk = k_block_of(loop, sizes_, program_.extents);
        const bool in_part = !loop.is_sub && kernel_.parts.cut(loop.axis);
        add_line(fmt::format("for each {} of {} ({} at a time){}{}:", loop.is_sub ? "part" : "chunk",
                             diagram_.axis(loop.axis).name, chunk,
                             in_part ? " in " + diagram_.axis(kernel_.parts.part).name : "", skipped));
        const std::int64_t extent = std::exchange(tile_[at(loop.axis)], chunk);
        print_list(loop.body);
        tile_[at(loop.axis)] = extent;
    }

    void print_one(const Load& load) { use(load.variable).loaded = true, add_line("load " + name(load.variable)); }
    void print_one(const Store& store) { use(store.variable).stored = true, add_line("store " + name(store.variable)); }
    void print_one(const Init& init) {
        add_line("init " + name(init.variable) + " = " + to_string(constant(init.value), names_));
    }
    void print_one(const Free&) {}
    void print_one(const std::shared_ptr<const TileLoop>&) {}
    void print_one(const Compute& compute) { add_line(element(compute.variable) + " = " + right_side(compute)); }

    /// The variable at its own axes: S[q, x].
    std::string element(VariableId v) const { return to_string(read(v, kernel_.variables[v].dims), names_); }

    std::string right_side(const Compute& c) const {
        std::string body = to_string(c.body, names_);
        if (!c.reduce) return body;
        std::vector<std::string> axes = names_of(diagram_.axes, c.reduce_axes);
        std::string reduced = fmt::format("{} over {}: {}", napkin::name(*c.reduce),
                                          axes.empty() ? "nothing" : join(axes, ", "), body);
        if (!c.carry) return reduced;
        const std::string carry = to_string(c.carry, names_);
        switch (*c.reduce) {
            case ReduceOp::sum: return fmt::format("{} + {}", carry, reduced);
            case ReduceOp::prod: return fmt::format("({}) * {}", carry, reduced);
            case ReduceOp::max:
            case ReduceOp::min: return fmt::format("{}({}, {})", napkin::name(*c.reduce), carry, reduced);
        }
        throw InternalError("unknown reduction");
    }

    std::string variable_table() {
        if (kernel_.variables.empty()) return "";
        std::vector<std::vector<std::string>> rows{
            {"variable", "of", "indices", "tile", "values", "type", "level", "alive"}};
        for (const VariableId i : kernel_.variables.ids()) {
            const Variable& v = kernel_.variables[i];
            const Use& u = uses_[i];
            const auto indices = mapped<std::string>(v.gathers.empty() ? v.dims : v.gathers,
                                                     [&](const Index& index) { return to_string(index, names_); });
            std::vector<std::string> lives;
            for (const auto& [first, last] : u.lives)
                lives.push_back(first == last ? std::to_string(first) : fmt::format("{}–{}", first, last));
            rows.push_back({v.name, diagram_.array(v.array).name, "[" + join(indices, ", ") + "]", u.values ? u.tile : "-",
                            u.values ? std::to_string(*u.values) : "-", std::string(napkin::name(v.memory_type)),
                            u.loaded   ? "ℓ0 → ℓ1"
                            : u.stored ? "ℓ1 → ℓ0"
                                       : "ℓ1",
                            u.values ? join(lives, ", ") : "never"});
        }
        return table(rows, {4}, "  ");
    }

    const SizedProgram& program_;
    const Diagram& diagram_;
    const TileKernel& kernel_;
    const TileSizes& sizes_;
    std::vector<std::int64_t> tile_;  ///< of every axis where the printer is: group size, K block or extent
    std::vector<Use> uses_;           ///< by variable
    ExprNames names_;
    std::vector<std::string> lines_;
    std::size_t depth_ = 0;
};

}  // namespace

std::string to_string(const SizedProgram& program) {
    std::vector<std::string> sizes;
    for (const AxisId a : program.extents.ids())
        sizes.push_back(fmt::format("{} = {}", program.diagram.axes[a].name, program.extents[a]));
    std::string out = fmt::format("tiles of {}\nsizes {}\n", program.diagram.name, join(sizes, ", "));
    for (std::size_t k = 0; k < program.kernels.size(); ++k) out += "\n" + to_string(program, k);
    return out;
}

std::string to_string(const SizedProgram& program, std::size_t kernel) { return KernelPrinter(program, kernel).run(); }

}  // namespace napkin
