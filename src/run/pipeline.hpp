#pragma once
// The chain: text → diagram → derivation → plan → tile program → source → kernel. One function, each pass one line in
// it.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "emit/cpu/emit.hpp"
#include "emit/cuda/emit.hpp"
#include "lower/lower.hpp"
#include "machine/machine.hpp"
#include "plan/plan.hpp"
#include "run/gpu/kernel.hpp"
#include "run/kernel.hpp"
#include "support/result.hpp"
#include "tile/sizes.hpp"

namespace napkin {

/// The passes in order. Their names are those of `--time-passes` and `--print-after`.
enum class Pass : std::uint8_t { parse, machine, derive, choose, size, plan, expand, lower, emit, compile };
inline constexpr Pass all_passes[] = {Pass::parse, Pass::machine, Pass::derive, Pass::choose, Pass::size,
                                      Pass::plan,  Pass::expand,  Pass::lower,  Pass::emit,   Pass::compile};
std::string_view name(Pass pass);

/// What is fixed by hand, and how the passes are watched.
struct PipelineOptions {
    std::string diagram;                        ///< name; empty: the text's last
    std::map<std::string, std::int64_t> sizes;  ///< by axis; they override the text's
    /// choices as the language's schedule has them: "group q = 192", "form = auxiliary"
    std::vector<std::string> schedule = {};
    /// what to_string(Schedule) prints, or parts of it: kept where no rule breaks
    std::shared_ptr<const Source> schedule_file = {};
    bool any_sizes = false;  ///< every axis is of any size, as `sizes q = any` says of one
    bool fuse = true;        ///< false: every equation is a kernel of its own
    /// the bits of a row are the same for any number of rows (plan/batch_invariant.hpp)
    bool batch_invariant = false;
    bool says_price = false;          ///< and a note says the predicted time without it
    std::string machine = {};         ///< name or file; empty: this computer; "gpu": the GPU at hand
    std::optional<DType> types = {};  ///< of every array of floating point, in place of the text's
    Pass until = Pass::compile;       ///< the last pass to run
    /// takes what was chosen from the cache, and keeps there what is chosen (run/plan_cache.hpp)
    bool keep_plan = false;
    /// Whether a plan is worth compiling. Where it is not, its kernels are not shown to the assembler, and it is not
    /// kept. None: each one is.
    std::function<bool(const Plan&)> is_wanted = {};
    std::vector<Pass> print_after = {};
    std::function<void(const std::string&)> print = {};  ///< takes what print_after asks for
};

struct PassTime {
    Pass pass;
    double seconds = 0;
};

/// What is emitted, by the machine's kind.
using KernelSource = std::variant<cpu::CpuSource, cuda::CudaSource>;
/// The source to compile, with its prelude.
std::string complete(const KernelSource& source);
/// The kernels alone.
const std::string& kernels_of(const KernelSource& source);

/// What the passes made; those after `until` are empty.
struct Compilation {
    std::shared_ptr<const Source> source;
    Diagram diagram;
    Extents extents;
    Derived derived;
    Machine machine;
    Plan plan;
    SizedProgram program;
    lower::LoweredProgram lowered;
    KernelSource code;
    std::shared_ptr<const CpuKernel> kernel;     ///< on a CPU
    std::shared_ptr<gpu::GpuKernel> gpu_kernel;  ///< on a GPU
    bool plan_from_cache = false;                ///< and the form
    std::vector<std::string> notes;              ///< what the user should know of the choices, a sentence each
    std::vector<PassTime> times;
};

/// What Pass::compile makes of a CPU's other passes. `alike`: a kernel of the same code, which is taken over. Errors:
/// those of CpuKernel::load.
Result<std::shared_ptr<const CpuKernel>> loaded_on_processor(const Compilation& emitted, const CpuKernel* alike = nullptr);

/// What run_pipeline makes until Pass::plan or Pass::emit with these options, whose sizes are others, on the same
/// machine. The form and the schedules are those that were planned, and their times are of these sizes. None where
/// these do not fit the sizes, or where there is an error.
std::optional<Compilation> at_other_sizes(const Compilation& planned, const PipelineOptions& options);

/// Runs the passes up to options.until. Errors are those of the passes; each pass' result is verified before the next
/// one starts, and what breaks an invariant there is an InternalError.
Result<Compilation> run_pipeline(std::shared_ptr<const Source> source, const PipelineOptions& options);

}  // namespace napkin
