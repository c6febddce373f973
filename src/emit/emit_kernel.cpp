#include "emit/emit_kernel.hpp"

#include <fmt/format.h>

#include <ranges>
#include <set>
#include <utility>

#include "emit/emit_entry.hpp"
#include "emit/emit_fragment.hpp"
#include "emit/emit_frame.hpp"
#include "emit/emit_header.hpp"
#include "emit/emit_k_block_ranges.hpp"
#include "emit/emit_places.hpp"
#include "emit/emit_program.hpp"
#include "machine/block_machine.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {
namespace {

/// A kernel's source: what its roles declare, and their statements.
class KernelWriter {
public:
    KernelWriter(Frame& frame, const lower::KernelProgram& program, std::string entry)
        : frame_(frame), program_(program), entry_(std::move(entry)) {}

    std::string run() {
        ProgramPrinter consumer(frame_, false), producer(frame_, true);
        Lines computes = consumer.code(program_.consumer.body);
        Lines copies = program_.producer ? producer.code(program_.producer->body) : Lines();
        Lines begin = consumer.code(program_.entry), end = consumer.code(program_.consumer.end);
        // The entry's parameters include every number that the other code asks for.
        Lines before = frame_.in_blocks() ? ranges_pass_body(frame_) : Lines();
        write_entry(frame_, out_, entry_);
        write_numbers(frame_, out_);
        write_memory_pointers(frame_, out_);
        write_variable_pointers(frame_, out_);
        if (frame_.in_cluster())
            out_(fmt::format("const unsigned {} = blockIdx.x % {};", cluster_rank_name, frame_.cluster_blocks()));
        out_.append(std::move(begin));
        if (program_.producer) producer_role(std::move(copies));
        if (frame_.on_tensor_cores()) declare_fragments(), declare_counters(program_.consumer.body);
        out_.append(std::move(computes));
        out_.append(std::move(end));
        out_.close();
        return whole(std::exchange(out_, Lines()), consumer, std::move(before));
    }

private:
    /// The kernel behind what it needs: the header, functions of statements and of instructions, the pass before it.
    std::string whole(Lines kernel, const ProgramPrinter& consumer, Lines ranges) {
        write_header(frame_, out_);
        const char* const library = frame_.in_blocks() ? "napkin_gpu" : "napkin_cpu";
        out_(fmt::format("namespace {}::{}_code {{", library, entry_));
        out_("");
        out_(fmt::format("using real = {};", frame_.is_double ? "double" : "float"));
        out_("using vec = Vec<real>;");
        out_("using mask = Mask<real>;");
        out_("");
        if (frame_.on_tensor_cores()) write_coordinates(frame_, out_), out_("");
        for (const std::string& function : consumer.instructions() | std::views::reverse) out_(function);
        out_.append(consumer.functions());
        if (!ranges.is_empty()) out_.append(ranges_pass(frame_, entry_, parameters_on_gpu(frame_), std::move(ranges)));
        out_.append(std::move(kernel));
        out_("");
        out_(fmt::format("}}  // namespace {}::{}_code", library, entry_));
        return out_.text();
    }

    /// The producer: the last warps of the block. One thread issues copies, in the order in which the others wait for
    /// them, as far ahead as stages are free. Rows that lie apart are copied by all its threads. The consumers take the
    /// registers that they give up.
    void producer_role(Lines copies) {
        const lower::Role& role = *program_.producer;
        const RoleRegisters registers = role_registers(frame_.unit.block_registers, role.first_warp, role.warps);
        out_.open(fmt::format("if (warp_of_thread() >= {})", role.first_warp));
        if (registers.copying < registers.launch) out_(fmt::format("keep_registers<{}>();", registers.copying));
        const std::int64_t thread = role.first_warp * frame_.unit.warp_threads;
        out_(copies_single_rows(frame_) ? fmt::format("const int copier_ = thread_of_block() - {};", thread)
                                        : fmt::format("if (thread_of_block() != {}) return;", thread));
        declare_counters(role.body);
        out_.append(std::move(copies));
        out_("return;");
        out_.close();
        if (registers.computing > registers.launch) out_(fmt::format("take_registers<{}>();", registers.computing));
    }

    void declare_fragments() {
        if (frame_.has_bulk_copies()) out_.declare("const int", warp_name, "uniform(warp_of_thread())");
        for (const VariableId id : frame_.layouts.ids())
            if (!frame_.layouts[id].lives.empty() && frame_.is_in_registers(id)) out_(fragment_declaration(frame_, id));
        for (const Step& s : frame_.steps)
            if (const auto* load = std::get_if<Load>(s.statement);
                load && frame_.is_read_by_threads(load->variable) && frame_.shape(load->variable).is_read_by_rows)
                declare_rows(frame_, out_, s);
        declare_rounded(frame_, out_);
        declare_rescale(frame_, out_);
    }

    /// Counters of the role's loops, and flags of the releases that it defers.
    void declare_counters(const lower::Block& role) {
        if (!frame_.on_tensor_cores()) return;
        declare_iteration(frame_, out_, 0);
        for (const ScheduledLoop& l : frame_.loops)
            if (!operands_of(frame_, l.scope).empty()) declare_iteration(frame_, out_, l.scope);
        std::set<VariableId> deferred;
        lower::each_statement(role, [&](const lower::Statement& statement) {
            if (const auto* defer = std::get_if<lower::Defer>(&statement.kind)) deferred.insert(defer->operand);
        });
        for (const VariableId v : deferred) out_(fmt::format("bool {} = false;", deferred_release_name(frame_, v)));
    }

    Frame& frame_;
    const lower::KernelProgram& program_;
    std::string entry_;
    Lines out_;
};

/// Pre: the kernel's text is written, with all its numbers.
lower::LaunchFormulas launch_formulas(const Frame& frame) {
    const lower::SizeFormulas of(frame.lowered);
    lower::LaunchFormulas out{of.groups(), of.blocks(), of.scratch_bytes(), {}, {}};
    if (frame.shapes.range_bytes > 0)
        out.before_blocks = lower::whole_formula(BinaryOp::floor_div, of.range_bytes(),
                                                 integer_constant(k_block_range_bytes));
    for (const LaunchNumbers::Number& number : frame.numbers->all()) out.numbers.push_back(number.of_launch);
    internal_check(lower::whole_value(out.groups, frame.extents) == frame.num_groups(),
                   "emit: a formula of tiles differs from their number");
    return out;
}

}  // namespace

KernelText kernel_text(const lower::KernelProgram& program, const std::string& entry, std::string_view prelude) {
    Frame frame(program, prelude);
    std::string text = KernelWriter(frame, program, entry).run();
    return {std::move(text), launch_formulas(frame)};
}

}  // namespace napkin::writers
