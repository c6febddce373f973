#pragma once
// The form of a diagram's rows whose groups hold them whole.
#include <variant>

#include "support/least_form.hpp"

namespace napkin {

/// Among the forms with the fewest kernels, the one with the fewest loops over chunks.
inline Derived in_whole_rows(const Derived& derived) {
    return least_form(derived, [](const Derived& form) {
        constexpr double of_a_kernel = 10;
        double loops = 0;
        for (const Kernel& kernel : form.kernels) {
            loops += of_a_kernel;
            for (const Stage& stage : kernel.stages) loops += std::holds_alternative<Loop>(stage) ? 1 : 0;
        }
        return loops;
    });
}

}  // namespace napkin
