#pragma once
// A class of an exported program, as its C sees it: its arrays' places, and formulas of its sizes.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "export/c_formulas.hpp"
#include "export/code.hpp"

namespace napkin {

class ExportedSizes {
public:
    /// What refers to the arguments lives as long as this.
    ExportedSizes(const ExportedProgram& program, const ExportedNames& names, std::size_t index, const KernelSource& source);

    /// Error no-formula: a number of a launch cannot be computed in C.
    [[nodiscard]] Status can_be_written() const;
    [[nodiscard]] int num_parts() const { return num_parts_; }
    /// A name of the class' own.
    [[nodiscard]] std::string name(const char* what) const;

protected:
    /// A pointer to memory: an array of the caller's, or a part of the workspace.
    struct Place {
        int given = -1;   ///< the number of the caller's array
        int offset = -1;  ///< the number of the workspace's part
    };
    /// A function's lines, with formulas of the sizes that are its parameters.
    struct Body {
        explicit Body(const ExportedSizes& of);
        Body(const Body&) = delete;
        Body& operator=(const Body&) = delete;
        void add(const std::string& line) { lines += "    " + line + "\n"; }
        std::string whole(const Expr& formula) { return formulas.whole(formula); }
        /// With commas; "1" where there is none, as C has no arrays without elements.
        std::string list(const std::vector<Expr>& all);

        std::string lines;
        c::Formulas formulas;
    };

    template <class F>
    void each_entry(const F& f) const {
        std::visit([&](const auto& code) { std::for_each(code.entries.begin(), code.entries.end(), f); }, source_);
    }
    [[nodiscard]] const cuda::CudaSource* on_gpu() const { return std::get_if<cuda::CudaSource>(&source_); }
    /// The parameters that are sizes, and more.
    [[nodiscard]] std::string parameters(const std::string& more) const;
    static std::string function(const std::string& type, const std::string& name, const std::string& parameters,
                                const std::string& lines);
    [[nodiscard]] std::vector<Expr> sizes(ArrayId array) const;
    static Expr product(const std::vector<Expr>& all, std::size_t from = 0);
    static std::vector<Expr> dense(const std::vector<Expr>& sizes);
    [[nodiscard]] Expr bytes_of(ArrayId array) const;
    /// Where an array begins.
    [[nodiscard]] std::string address(ArrayId array) const;

    const ExportedProgram& program_;
    const ExportedNames& names_;
    std::size_t index_;
    const Compilation& made_;
    const KernelSource& source_;
    const Diagram& diagram_;
    ByAxis<Expr> extents_;
    std::map<ArrayId, Place> places_;
    std::set<ArrayId> used_;  ///< by kernels
    int num_parts_ = 0;       ///< of the workspace

private:
    std::string size_of(AxisId axis, c::Formulas& formulas) const;
};

}  // namespace napkin
