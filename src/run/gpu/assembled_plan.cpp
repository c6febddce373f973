#include "run/gpu/assembled_plan.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "emit/cuda/emit.hpp"
#include "plan/estimates.hpp"
#include "run/gpu/compiler.hpp"
#include "support/ranges.hpp"

namespace napkin::gpu {
namespace {

/// What the assembler's report says of kernels, by their text. Plans that are tried one after the other differ in a
/// kernel or two: the others are compiled once.
class Reports {
public:
    explicit Reports(const Machine& machine) : machine_(machine) {}

    std::vector<KernelRefusal> refusals_of(const Plan& plan) {
        std::vector<std::string> texts;
        ScheduledProgram unknown;
        std::vector<std::string> text_of_unknown;
        for (const KernelPlan& kernel : plan.kernels) {
            texts.push_back(cuda::emit(ScheduledProgram{{kernel.scheduled}}).text);
            const std::scoped_lock lock(mutex_);
            if (known_.contains(texts.back()) || contains(text_of_unknown, texts.back())) continue;
            unknown.kernels.push_back(kernel.scheduled);
            text_of_unknown.push_back(texts.back());
        }
        if (!unknown.kernels.empty()) compile(unknown, text_of_unknown);
        const std::scoped_lock lock(mutex_);
        return mapped<KernelRefusal>(texts, [&](const std::string& text) { return value_or(known_, text, {}); });
    }

private:
    void compile(const ScheduledProgram& program, const std::vector<std::string>& texts) {
        const cuda::CudaSource source = cuda::emit(program);
        const auto cubin = compile_cuda(cuda::complete(source), machine_.architecture);
        if (!cubin) return;
        const std::scoped_lock lock(mutex_);
        for (const AssemblerReport& report : cubin->kernels)
            for (std::size_t k = 0; k < source.entries.size(); ++k)
                if (source.entries[k].name == report.kernel)
                    known_[texts[k]] = {refusals(report), keeps_memory_alone(report)};
    }

    const Machine& machine_;
    std::mutex mutex_;
    std::map<std::string, KernelRefusal> known_;
};

}  // namespace

Result<AcceptedPlan> assembled_plan(const Derived& derived, const Extents& extents, const Machine& machine,
                                    const PlanOptions& options, const std::function<bool(const Plan&)>& is_wanted) {
    const auto ratings = options.ratings ? options.ratings : std::make_shared<Estimates>();
    const auto plan_without = [&](const std::vector<KernelCandidate>& refused) {
        PlanOptions without = options;
        without.ratings = ratings;
        without.refused = refused;
        return choose_plan(derived, extents, machine, {}, without);
    };
    Reports reports(machine);
    const bool asks = !machine.architecture.empty() && cuda_compiler().ok();
    // Half of the processors: what is compiled may not be needed.
    const std::size_t at_a_time = std::max(1U, std::thread::hardware_concurrency() / 2);
    return accepted_plan(
        plan_without,
        [&](const Plan& plan) {
            const bool is_shown = asks && (!is_wanted || is_wanted(plan));
            return is_shown ? reports.refusals_of(plan) : std::vector<KernelRefusal>(plan.kernels.size());
        },
        at_a_time);
}

}  // namespace napkin::gpu
