#pragma once
// The kernels that the calls of one program made. Each is for the shapes of its arrays and for where they lie.
//
// Invariant: a kernel's key is the place and every size of every array, in the program's order. So arrays with one key
// are all taken by one kernel or by none. A kernel that is found needs no derivation, no plan and no allocation.
//
// A kernel for sizes that are near those of a plan takes over its schedules, and its code where the text is the same.
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/loaded_kernel.hpp"

namespace napkin {

class KernelsByShape {
public:
    /// A diagram of that text.
    KernelsByShape(std::shared_ptr<const Source> source, Diagram diagram);

    /// The kernel for arrays of these shapes, there; planned and compiled where there is none yet. Calls for others
    /// wait meanwhile, calls for those that there are do not. Errors: view-count, view-null, view-device, view-type,
    /// view-sizes, view-strides; those of the pipeline.
    Result<std::shared_ptr<const LoadedKernel>> of(Arrays arrays);
    [[nodiscard]] std::size_t count() const;
    /// Different codes among these.
    [[nodiscard]] std::size_t num_codes() const;

private:
    using Key = std::vector<std::int64_t>;
    /// Shapes of arrays whose numbers of axes are the program's.
    struct Shapes {
        MachineKind place;
        Arrays arrays;
    };
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(const Key& key) const;
        std::size_t operator()(const Shapes& shapes) const;
    };
    struct Same {
        using is_transparent = void;
        bool operator()(const Key& a, const Key& b) const { return a == b; }
        bool operator()(const Shapes& a, const Key& b) const;
        bool operator()(const Key& a, const Shapes& b) const { return operator()(b, a); }
    };
    template <class F>
    static void each_of(const Shapes& shapes, const F& f);
    [[nodiscard]] bool have_shapes(Arrays arrays) const;
    [[nodiscard]] std::shared_ptr<const LoadedKernel> find(const Shapes& shapes) const;
    [[nodiscard]] Result<std::shared_ptr<const LoadedKernel>> make(const Shapes& shapes);
    /// The nearest plan that was made, for these sizes; none where none is near or fits.
    [[nodiscard]] std::optional<Compilation> by_known_plan(MachineKind place, const PipelineOptions& options) const;

    std::shared_ptr<const Source> source_;
    Diagram diagram_;
    std::vector<TakenArray> taken_;  ///< without sizes
    mutable std::mutex looking_;     ///< of kernels_
    std::mutex making_;              ///< one at a time
    std::unordered_map<Key, std::shared_ptr<const LoadedKernel>, Hash, Same> kernels_;
    /// Whoever makes a kernel has these: what was planned anew, and kernels of different code.
    std::vector<Compilation> planned_;
    std::vector<std::shared_ptr<const LoadedKernel>> codes_;
};

}  // namespace napkin
