#pragma once
// Diagrams planned for a GPU by a schedule that is given, and their kernels' values on the CPU against the definition.
#include <optional>
#include <string>
#include <vector>

#include "check/bounded_rows.hpp"
#include "check/probe.hpp"
#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"
#include "emit/cuda/emit.hpp"
#include "machine/machine.hpp"
#include "numeric/block_on_cpu.hpp"
#include "plan/plan.hpp"
#include "run/tensor.hpp"

namespace napkin::cpu_case {

struct Planned {
    Diagram diagram;
    Extents extents;
    Plan plan;
    cuda::CudaSource source;
};

/// `text` with the sizes that it gives, by this schedule; kernels are named after `prefix`. Throws std::runtime_error
/// where that is refused.
Planned planned(const std::string& text, const std::string& schedule, const Machine& machine,
                const std::string& prefix = "k", const Rewriting& rewriting = {});
/// The same for an H200.
Planned planned_on_hopper(const std::string& text, const std::string& schedule, const std::string& prefix = "k");
/// With the first call of the function 1% larger than it is. Throws where it is not called.
Planned with_larger_call(Planned planned, const std::string& call);

/// Attention of logits that are made of S[h, q, x], k being 32: of numbers of this type, with `inputs` beside Q, K and
/// V, each behind a comma.
std::string attention_of_logits(const std::string& logits, const std::string& type, const std::string& sizes,
                                const std::string& inputs = "");

/// The kernels of all in one source.
cuda::CudaSource in_one_source(const std::vector<Planned>& all);

/// Inputs, and what the definition makes of them.
struct Reference {
    Values given;
    BoundedValues values;
};
Reference reference_of(const Planned& p, Probe probe = Probe::normal);
Reference reference_of(const Planned& p, const Values& given);

/// What the kernels make of the reference's inputs, by output; none where threads wait for each other for ever.
std::optional<std::vector<Tensor>> outputs_of(const Planned& p, const Reference& reference, const JitModule& module,
                                              Timing timing);
/// What is wrong with the values that the kernels make; "" where nothing is.
std::string fault_of(const Planned& p, const Reference& reference, const JitModule& module, Timing timing);
/// The same under two timings. In one, asynchronous work is done at once and blocks run in order. In the other, all of
/// it is done as late as possible and blocks run in reverse.
std::string fault_early_or_late(const Planned& p, const Reference& reference, const JitModule& module);
/// The first fault of any of them, with its kernel and its probe. It tries every `shards`-th of all probes, from number
/// `shard` on. Planning and compiling kernels takes longer than running them on a probe, so few shards suffice.
std::string fault_on_probes(const std::vector<Planned>& all, std::size_t shard, std::size_t shards);

}  // namespace napkin::cpu_case
