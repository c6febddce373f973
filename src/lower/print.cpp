// The kernel program as text, a line for each statement.
#include <fmt/format.h>

#include "lower/kernel_program.hpp"
#include "lower/registers_alive.hpp"
#include "lower/size_formulas.hpp"
#include "support/ids.hpp"

namespace napkin::lower {
namespace {

std::string text(const MathChoice& choice) {
    if (choice.form == MathForm::own_column) return "column apart";
    const auto* u = as<Unary>(choice.node);
    const BinaryOp b = u ? BinaryOp::mul : as<Binary>(choice.node)->op;
    const std::string_view op = u ? name(u->op) : b == BinaryOp::mul ? "exp" : name(b);
    switch (choice.form) {
        case MathForm::plain:
        case MathForm::own_column: break;
        case MathForm::power_of_two: return fmt::format("{} by exp2", op);
        case MathForm::nonpositive: return fmt::format("{} by exp_nonpositive", op);
        case MathForm::near_error: return fmt::format("{0} by near_{0}", op);
        case MathForm::near_quotient: return fmt::format("{} by near_quotient", op);
        case MathForm::exact_quotient: return fmt::format("{} exactly", op);
        case MathForm::reciprocal: return fmt::format("{} by a reciprocal", op);
        case MathForm::products: return fmt::format("{} by products", op);
    }
    return "";
}

class Printer {
public:
    explicit Printer(const KernelProgram& program) : program_(program), kernel_(*program.kernel) {}

    std::string run() {
        line("kernel {}", kernel_.kernel->name);
        ++depth_;
        block(program_.entry);
        if (program_.producer) role("producer", *program_.producer);
        role("consumer", program_.consumer, kernel_.on_tensor_cores() ? registers() : "");
        return std::move(out_);
    }

    std::string run(const Statement& statement) {
        std::visit([&](const auto& kind) { print(kind); }, statement.kind);
        return std::move(out_);
    }

private:
    template <class... Args>
    void line(fmt::format_string<Args...> format, Args&&... args) {
        out_.append(static_cast<std::size_t>(2 * depth_), ' ');
        fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
        out_ += '\n';
    }
    void role(const char* name, const Role& role, const std::string& more = "") {
        line("{}: {} warps{}", name, role.warps, more);
        ++depth_;
        block(role.body), block(role.end);
        --depth_;
    }
    [[nodiscard]] std::string registers() const {
        const RegistersAlive alive = registers_alive(program_);
        return fmt::format(", {} registers of values alive at {}", alive.most, alive.at);
    }
    void block(const Block& statements) {
        for (const Statement& statement : statements)
            std::visit([&](const auto& kind) { print(kind); }, statement.kind);
    }
    void inside(const Block& statements) {
        ++depth_;
        block(statements);
        --depth_;
    }

    [[nodiscard]] std::string name(VariableId v) const { return kernel_.variable(v).name; }
    [[nodiscard]] std::string name(StepId s) const { return name(variable_of(kernel_.step(s))); }
    /// How the statement's operations are computed, each way once.
    [[nodiscard]] std::string math(StepId s) const {
        std::string out;
        const PointMath& point = program_.math.statements.at(kernel_.step(s).statement).any;
        for (const MathChoice& choice : point.choices)
            if (const std::string way = ", " + text(choice); out.find(way) == std::string::npos) out += way;
        if (!point.factor) return out;
        return fmt::format("{}, then times {:.6g}", out, real_value(point.factor, kernel_.extents));
    }
    [[nodiscard]] std::string axis(LoopId loop) const {
        return kernel_.program->diagram.axis(kernel_.loop(loop).loop->axis).name;
    }
    [[nodiscard]] std::string counter(Iteration i) const {
        std::string of = "tile";
        for (const LoopId l : kernel_.loops.ids())
            if (kernel_.loops[l].scope == i.scope && i.scope > 0) of = axis(l);
        return i.offset == 0 ? of : fmt::format("{}{:+}", of, i.offset);
    }
    [[nodiscard]] std::string tile(const TileRef& t) const {
        return fmt::format("{}[{}]", name(t.operand), counter(t.iteration));
    }
    [[nodiscard]] std::string barrier(const BarrierRef& b) const {
        switch (b.kind) {
            case BarrierKind::full: return "full " + tile(b.tile);
            case BarrierKind::empty: return "empty " + tile(b.tile);
            case BarrierKind::tile_full: return "full next tile";
            case BarrierKind::tile_empty: return "empty next tile";
        }
        return "";
    }

    void print(const ForTiles& s) {
        static constexpr const char* orders[] = {"a range", "strided", "forward and backward", "stream-K",
                                                 "from the queue"};
        line("for tiles, {}", orders[static_cast<std::size_t>(s.order)]);
        inside(s.body);
    }
    void print(const LoopScope& s) { block(s.body); }
    void print(const Bounds& s) { line("bounds of {}{}", axis(s.loop), s.is_own ? ", the warpgroup's own" : ""); }
    void print(const ForBlocks& s) {
        static constexpr const char* which[] = {"", " but the last", " before the warpgroup's own",
                                                " behind the warpgroup's own"};
        line("for {} step {}{}", axis(s.loop),
             kernel_.span(kernel_.loop(s.loop).loop->axis, kernel_.loop(s.loop).scope).tile,
             which[static_cast<std::size_t>(s.blocks)]);
        inside(s.body);
    }
    void print(const If& s) {
        switch (s.condition) {
            case If::any_k_block: line("if any {}", axis(s.loop)); break;
            case If::tile_is_split: line("if the tile is split"); break;
            case If::arrives_second: line("if this warp comes second"); break;
            case If::goes_on: line("if this warp has the tile"); break;
        }
        inside(s.body);
        if (s.otherwise.empty()) return;
        line("else");
        inside(s.otherwise);
    }
    void print(const At& s) {
        line("at {}", counter(s.iteration));
        inside(s.body);
    }
    void print(const ForParts& s) {
        line("for {} parts of columns", kernel_.column_parts->parts);
        inside(s.body);
    }
    void print(const ForPanels& s) {
        line("for panels");
        inside(s.body);
    }
    void print(const ForStaging& s) {
        line("for staging tiles of {}", name(s.step));
        inside(s.body);
    }
    void print(const UseStage&) {}
    void print(const Advance& s) { line("advance {}", counter({s.scope, 0})); }
    void print(const Copy& s) {
        switch (s.way) {
            case Copy::bulk: return line("copy bulk {} -> full", tile(s.tile));
            case Copy::by_threads: return line("copy async {}", tile(s.tile));
            case Copy::load: return line("load {}{}", name(s.step), s.has_barrier_inside ? ", sync inside" : "");
            case Copy::load_rows: return line("load rows {}", name(s.step));
            case Copy::store: return line("store {}", name(s.step));
            case Copy::to_staging: return line("copy {} -> staging", name(s.step));
            case Copy::from_staging: return line("copy bulk staging -> {}", name(s.step));
            case Copy::leave_states: return line("leave states");
        }
    }
    void print(const CopyAhead& s) {
        line("copy ahead for {}{}", axis(s.loop), s.is_first ? ", first iterations" : "");
    }
    void print(const PrefetchTiles&) {}
    void print(const LoadFirstRows& s) { line("load first rows {}", name(s.step)); }
    void print(const Init& s) { line("init {}", name(s.step)); }
    void print(const Mma& s) { line("mma {}; commit", name(s.step)); }
    void print(const Map& s) {
        const bool reduces = std::get<Compute>(*kernel_.step(s.step).statement).reduce.has_value();
        line("{} {}{}{}", reduces ? "reduce" : "map", name(s.step), math(s.step),
             s.has_barrier_inside ? ", sync inside" : "");
    }
    void print(const Rescale& s) {
        line("{} {}, map {}{}, reduce {}", s.is_first ? "move" : "move where needed", name(kernel_.rescale->maximum),
             name(kernel_.rescale->weights), math(kernel_.rescale->weights), name(kernel_.rescale->sum));
    }
    void print(const SumRows&) {}
    void print(const Round& s) { line("round what iteration {} takes", counter({s.scope, s.ahead})); }
    void print(const FinishPipelined& s) { line("finish {} of the last tile", name(s.step)); }
    void print(const MergeStates&) { line("merge states"); }
    void print(const InitBarriers&) { line("init barriers"); }
    void print(const Wait& s) { line("wait {}", barrier(s.barrier)); }
    void print(const Arrive& s) {
        line("arrive {}{}{}", barrier(s.barrier), s.if_deferred ? " where deferred" : "",
             s.when == Arrive::no_k_block  ? fmt::format(" if no {}", axis(s.loop))
             : s.when == Arrive::last_part ? " with the last part"
                                           : "");
    }
    void print(const Defer& s) { line("{} the release of {}", s.value ? "defer" : "end deferring", name(s.operand)); }
    void print(const WaitCopies& s) { line("wait copies {}", s.outstanding); }
    void print(const WaitProducts& s) { line("wait_group {}", s.outstanding); }
    void print(const WaitStaging& s) { line("wait staging {}", s.outstanding); }
    void print(const FenceProxy&) { line("fence proxy"); }
    void print(const FenceStores&) { line("fence stores"); }
    void print(const Sync&) { line("sync"); }
    void print(const CtaBarrier&) { line("barrier of the CTA"); }
    void print(const ClusterBarrier&) { line("barrier of the cluster"); }
    void print(const NamedBarrier& s) {
        line("{}", s.what == NamedBarrier::wait   ? "wait turn"
                   : s.what == NamedBarrier::pass ? "pass turn"
                                                  : "last warpgroup: pass turn to the first");
    }
    void print(const AskTile& s) {
        s.is_with_last_copies ? line("ask for the next tile with the last {}", axis(s.loop))
                              : line("ask for the next tile");
    }
    void print(const WriteTile&) { line("write next tile"); }
    void print(const ReadTile&) { line("read next tile"); }
    void print(const ClaimStates&) { line("claim the tile"); }
    void print(const SignalStates&) { line("signal states"); }
    void print(const WaitStates&) { line("wait states"); }

    const KernelProgram& program_;
    const ScheduledKernel& kernel_;
    int depth_ = 0;
    std::string out_;
};

}  // namespace

std::string to_string(const KernelProgram& program, const Statement& statement) {
    return Printer(program).run(statement);
}
std::string to_string(const KernelProgram& program) { return Printer(program).run(); }

}  // namespace napkin::lower
