#pragma once
// Napkin as a library: a diagram in text becomes a fused kernel for this machine.
//
//     auto program = napkin::compile(text, {.sizes = {{"q", 512}, {"x", 512}}});
//     if (!program) return std::cerr << program.error_text(), 1;
//     auto ran = program->run(inputs, outputs);
//
// Nothing here throws for a mistake in the text, the sizes or the views: these come back as errors. Memory that cannot
// be had is std::bad_alloc, and a fault of napkin itself is a std::logic_error whose message begins with "internal
// error".
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <napkin/view.hpp>

namespace napkin {

/// What is wrong, where in the text, and what would be right.
struct Error {
    enum class Kind : std::uint8_t {
        input,    ///< the text, the sizes or the views are wrong
        machine,  ///< the machine lacks something: a compiler, space, a writable folder
    };
    Kind kind = Kind::input;
    std::string code;      ///< stable name, e.g. "unknown-array"
    std::string message;   ///< one line
    int line = 0;          ///< 1-based, 0 when the error is not about a place in the text
    int column = 0;        ///< 1-based, in bytes
    std::string rendered;  ///< message, the line with a caret, what was expected and what is near
};

/// A value, or all the errors that stand in its way.
template <class T>
class [[nodiscard]] Expected {
public:
    Expected(T value) : value_(std::move(value)) {}
    Expected(std::vector<Error> errors) : errors_(std::move(errors)) {}

    explicit operator bool() const { return value_.has_value(); }
    /// Pre: there is a value.
    T& operator*() & { return *value_; }
    const T& operator*() const& { return *value_; }
    T&& operator*() && { return *std::move(value_); }
    T* operator->() { return &*value_; }
    const T* operator->() const { return &*value_; }

    /// Empty exactly when there is a value.
    [[nodiscard]] const std::vector<Error>& errors() const { return errors_; }
    /// All errors as text for people, one after the other.
    [[nodiscard]] std::string error_text() const {
        std::string text;
        for (const Error& error : errors_) text += error.rendered;
        return text;
    }

private:
    std::optional<T> value_;
    std::vector<Error> errors_;
};

/// What is fixed by hand; everything left out is derived.
struct CompileOptions {
    std::string file_name = "<text>";           ///< how errors call the text
    std::string diagram;                        ///< which of the text's diagrams; empty: the last
    std::map<std::string, std::int64_t> sizes;  ///< values along an axis, by name; overrides the text's `sizes`
    /// group (tile) size of an axis: values of it that a core holds at a time
    std::map<std::string, std::int64_t> group;
    std::map<std::string, std::int64_t> stream;  ///< stream (chunk) size of an axis: values that a loop takes at a time
    int threads = 0;                             ///< 0: one a core; at most 4096
    std::string machine;                         ///< a machine's name or a .toml file; empty: this computer
    /// A derivation that is new to this computer is tried against its definition on small sizes, for some milliseconds;
    /// what was found good is kept in the user's cache.
    bool validate = true;
    bool batch_invariant = false;  ///< the bits of a row of a result do not depend on how many rows there are
    bool auxiliary = false;        ///< results stay finished after every step (paper, Table 4) instead of at the end
};

/// One argument or result of a diagram.
struct ArrayInfo {
    std::string name;
    ElementType type = ElementType::f32;
    std::vector<std::string> axes;    ///< names, outermost first
    std::vector<std::int64_t> sizes;  ///< values along each
};

/// The model's figures for one run of the program on the machine it was planned for.
struct Predicted {
    double transfers_values = 0;  ///< H: values moved between memory and the cores, all kernels together
    double memory_values = 0;     ///< M: values that a core holds at a time, the largest over the kernels
    double seconds = 0;           ///< duration
};

/// One result of a run against the diagram's definition in double precision, value by value, each within the error that
/// the definition allows it (docs/check.md).
struct OutputCheck {
    std::string array;
    std::int64_t values = 0;     ///< compared
    std::int64_t beyond = 0;     ///< outside of their bounds: napkin's fault
    std::int64_t unbounded = 0;  ///< that have no bound, as where a divisor may be 0
    /// The value that is farthest out: its coordinates, what it is, what the definition gives, and its bound.
    std::vector<std::int64_t> place;
    double value = 0, reference = 0, bound = 0;
    [[nodiscard]] bool good() const { return beyond == 0; }
    std::string message;  ///< where the value is and what it should be; empty when good
};

/// A compiled diagram: one or more fused kernels, loaded and ready. Copies share the code. Every member may be called
/// from several threads at a time.
class Program {
public:
    /// Runs the kernels. Views come in the order of inputs() and outputs(); each has the type and the sizes stated
    /// there; strides are free. A view with gaps, or with its axes in another order, is copied to and from a dense one.
    /// Errors: view-count, view-type, view-sizes (both sizes), view-strides, view-null, view-overlap.
    [[nodiscard]] std::vector<Error> run(std::span<const ConstView> inputs, std::span<const View> outputs) const;

    /// Runs, and compares the results (a sample of very large ones, drawn by the seed) with the definition: about a
    /// second more.
    [[nodiscard]] Expected<std::vector<OutputCheck>> run_and_check(std::span<const ConstView> inputs,
                                                                   std::span<const View> outputs,
                                                                   std::uint64_t seed = 0) const;

    [[nodiscard]] const std::string& name() const;
    [[nodiscard]] const std::vector<ArrayInfo>& inputs() const;
    [[nodiscard]] const std::vector<ArrayInfo>& outputs() const;

    [[nodiscard]] std::string derivation() const;  ///< how the diagram was fused: the rules used, the folds' equations
    [[nodiscard]] std::string plan() const;        ///< every choice with its reason, as a table
    [[nodiscard]] const std::string& source() const;  ///< the C++ that was compiled
    [[nodiscard]] Predicted prediction() const;
    [[nodiscard]] std::int64_t extra_bytes() const;  ///< memory that a run takes besides its views

    struct Impl;
    explicit Program(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

private:
    std::shared_ptr<const Impl> impl_;
};

/// Parses, derives, plans, emits and compiles one diagram of a text. Plans and compiled code are kept in the user's
/// cache (see `napkin cache`), so the second time takes milliseconds. Safe to call from several threads. Errors:
/// everything that `napkin check` says about a text; sizes that are missing or wrong; choices that break a rule; no
/// compiler on this machine.
Expected<Program> compile(std::string_view text, const CompileOptions& options = {});

/// "0.1.0"
std::string_view version();

}  // namespace napkin
