#pragma once
// Along which axes a kernel's equations may be streamed, whatever was chosen for it: H* is a minimum over all of them.
#include <map>
#include <memory>
#include <vector>

#include "derive/derived.hpp"

namespace napkin {

class KernelBuilder;

class StreamChoices {
public:
    explicit StreamChoices(const Derived& derived);
    ~StreamChoices();
    StreamChoices(const StreamChoices&) = delete;
    StreamChoices& operator=(const StreamChoices&) = delete;
    /// Forms of one kernel each, over the axes of the derived diagram. The kernel's equations are streamed over each
    /// axis that they reduce and that the calculus can stream. Axes under more reductions come first, and then later
    /// ones. The last form has all that is reduced whole. The order does not depend on the kernel's own stream. If the
    /// equations are no gathering, as those of a part of a stream, the only form is the kernel as it is.
    [[nodiscard]] std::vector<Derived> of(std::size_t kernel);

private:
    const Derived& derived_;
    std::unique_ptr<KernelBuilder> builder_;
    std::map<ArrayId, std::vector<ArrayId>> targets_;  ///< of the gathering that has the array as an output
};

}  // namespace napkin
