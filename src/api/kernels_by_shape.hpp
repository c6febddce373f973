#pragma once
// The kernels that the calls of one program made. Each is for the shapes of its arrays and for where they lie.
//
// Invariant: a kernel's key is the place and every size of every array, in the program's order. So arrays with one key
// are all taken by one kernel or by none. To find a kernel takes no derivation, no plan, no allocation and no lock.
//
// A kernel for other sizes takes over a known plan where that is near enough to the best one, and its code where the
// text is the same.
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/loaded_kernel.hpp"

namespace napkin {

class KernelsByShape {
public:
    /// A diagram of that text. `own`: its name, its sizes where shapes do not say them, and a schedule.
    KernelsByShape(std::shared_ptr<const Source> source, Diagram diagram, const PipelineOptions& own);

    /// The kernel for arrays of these shapes, there; planned and compiled where there is none yet. It stays as long as
    /// this does. Calls for others that are not there wait meanwhile. Errors: view-count, view-null, view-device,
    /// view-type, view-sizes, view-strides; those of the pipeline.
    Result<const LoadedKernel*> of(Arrays arrays);
    /// The sizes of each output, for inputs of these shapes. Errors: view-count, view-sizes; those of sizes.
    [[nodiscard]] Result<std::vector<std::vector<std::int64_t>>> output_sizes(Arrays inputs) const;
    [[nodiscard]] std::size_t count() const { return count_.load(); }
    /// Different codes among these.
    [[nodiscard]] std::size_t num_codes() const { return num_codes_.load(); }
    /// Views that calls copied.
    [[nodiscard]] std::size_t num_copies() const;

private:
    /// Shapes of arrays whose numbers of axes are the program's.
    struct Shapes {
        Location place;
        Arrays arrays;
    };
    /// A kernel in the list of its hash. What is in a list stays there, so that readers need no lock.
    struct Node {
        std::vector<std::int64_t> key;
        std::shared_ptr<const LoadedKernel> kernel;
        const Node* next;
    };
    template <class F>
    static bool each_of(const Shapes& shapes, const F& f);
    [[nodiscard]] static std::size_t list_of(const Shapes& shapes);
    /// Whether the arrays, or the first of them, have as many axes as the program has them.
    [[nodiscard]] bool have_shapes(Arrays arrays) const;
    [[nodiscard]] const LoadedKernel* find(const Shapes& shapes) const;
    [[nodiscard]] Result<std::shared_ptr<const LoadedKernel>> make(const Shapes& shapes);
    /// A known plan, at the sizes of a call.
    struct Served {
        std::size_t plan;
        Compilation at;
    };
    /// The fastest of the known plans, or of one alone. `by_code`: among those whose code is there; else among those
    /// that leave no size whole that varies.
    [[nodiscard]] std::optional<Served> served(Location place, const PipelineOptions& options,
                                               std::optional<std::size_t> alone, bool by_code) const;
    /// What run_pipeline makes with these options, by a known plan where one is near enough to the best, or where there
    /// are as many codes as a program may have.
    [[nodiscard]] Result<Compilation> planned(Location place, const PipelineOptions& options);
    /// Keeps a plan made for these sizes, or in its place one that takes others, too.
    [[nodiscard]] Result<Compilation> take_new(Location place, Compilation made, const PipelineOptions& options);

    [[nodiscard]] PipelineOptions options_for(std::map<std::string, std::int64_t> sizes, Pass until) const;

    std::shared_ptr<const Source> source_;
    Diagram diagram_;
    PipelineOptions own_;
    std::vector<TakenArray> taken_;  ///< without sizes
    std::array<std::atomic<const Node*>, 1024> lists_{};
    std::atomic<std::size_t> count_ = 0, num_codes_ = 0;

    std::mutex making_;  ///< of what follows: one kernel is made at a time
    std::vector<std::unique_ptr<const Node>> nodes_;
    std::vector<std::shared_ptr<const LoadedKernel>> codes_;  ///< kernels of different code
    std::vector<Compilation> plans_;                          ///< that were made anew
    std::vector<Location> locations_;                         ///< by plan
    std::map<std::string, std::int64_t> first_sizes_;         ///< of the first call
    std::set<std::string> varied_;                            ///< axes whose sizes later calls had otherwise
    /// By place and the powers of two of all sizes: the plan that is taken there.
    std::map<std::pair<Location, std::map<std::string, int>>, std::size_t> taken_over_;
};

}  // namespace napkin
