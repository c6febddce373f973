#pragma once
// One gathering of equations as a kernel: the two halves of a stream partition, analysis and assembly. They run over
// the part of the diagram that they concern, so that the time does not depend on the rest.
#include <optional>
#include <variant>
#include <vector>

#include "derive/analyse.hpp"
#include "derive/assemble.hpp"

namespace napkin {

/// Builds kernels of one diagram. The diagram stays as it is until rewrite(), which is for the kernels that are kept.
class KernelBuilder {
public:
    KernelBuilder(const Diagram& diagram, Form form);

    [[nodiscard]] const Diagram& diagram() const { return diagram_; }
    [[nodiscard]] const Equation& definition(ArrayId id) const;
    [[nodiscard]] bool is_computed(ArrayId id) const { return at_[at(id)] >= 0; }
    /// The targets of the equations that read the array.
    [[nodiscard]] const std::vector<ArrayId>& readers(ArrayId id) const { return readers_[at(id)]; }
    /// Something that is a result needs it.
    [[nodiscard]] bool is_needed(ArrayId id) const { return needed_[at(id)]; }

    /// Those of the arrays that memory must hold: results, and what other equations read.
    [[nodiscard]] std::vector<ArrayId> outputs_of(const std::vector<ArrayId>& targets) const;
    /// Where the equation stands in the diagram: a gathering's targets are in this order.
    [[nodiscard]] int position(ArrayId id) const { return at_[at(id)]; }

    /// How often the kernel's stream is traversed, or why there is no such kernel.
    std::variant<int, Refusal> traversals(const Gathering& gathering);
    /// The kernel, and the arrays that it and the diagram know until the next call.
    struct Trial {
        Kernel kernel;
        const Diagram* diagram;
    };
    std::optional<Trial> try_kernel(const Gathering& gathering);

    /// Rewrites the diagram for all gatherings, in order, and makes their kernels; steps and refusals are appended.
    /// Once.
    std::vector<Kernel> rewrite(const std::vector<Gathering>& gatherings, std::vector<DerivationStep>& steps,
                                std::vector<Refusal>& refusals);

private:
    /// Puts the gathering's equations alone into the part, over all arrays; false where its stream cannot be.
    bool set_out(const Gathering& gathering);

    Diagram diagram_;
    Form form_;
    std::vector<int> at_;  ///< of each array's equation, or -1
    std::vector<std::vector<ArrayId>> readers_;
    std::vector<bool> needed_;
    std::vector<ValueClass> values_;  ///< of every array
    Diagram part_;                    ///< arrays of the whole diagram, equations of one gathering
};

}  // namespace napkin
