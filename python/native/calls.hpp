#pragma once
// A program that Python calls with arrays. What a call does:
//
//   arrays by position or name → views → entry of their types and shapes → outputs → napkin_call
//
// Invariant: an instance is the text with the types of one combination of arrays; an entry knows its instance and the
// outputs' shapes for one combination of shapes. Both are made by the first call that needs them, and stay. They are
// read and made under the interpreter's lock. napkin_call runs without it.
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "python/native/arrays.hpp"

namespace napkin::python {

/// What a program is made of, besides its text.
struct Spoken {
    std::string text, name, diagram, schedule;
    bool has_diagram = false, has_schedule = false, is_batch_invariant = false;
    std::vector<std::pair<std::string, std::int64_t>> sizes;
};

class CalledProgram {
public:
    /// Throws ErrorIsSet with the helpers' error.
    explicit CalledProgram(Spoken spoken);

    /// The result, or a tuple of several. `arguments`: a tuple. `words`: a dict or null, with names of inputs, `out`
    /// and `stream`. Throws ErrorIsSet.
    Object call(PyObject* arguments, PyObject* words);
    /// The same without the run, for graphs that are captured later: None.
    Object prepare(PyObject* arguments, PyObject* words);

    /// The program of the text alone.
    [[nodiscard]] const napkin_program* program() const { return instances_.front()->program.get(); }
    /// Its arrays: (name, type, open, axes, sizes of axes) of each input and output; type as (code, bits).
    [[nodiscard]] Object arrays() const;
    /// The text with types for arrays that have none, given by name as (code, bits).
    [[nodiscard]] Object typed_text(PyObject* types) const;
    /// The sum of a number of programs, as napkin_program_kernels, over all instances.
    [[nodiscard]] std::size_t sum_of(std::size_t (*number)(const napkin_program*)) const;

private:
    struct Free {
        void operator()(napkin_program* program) const { napkin_program_free(program); }
    };
    using Owned = std::unique_ptr<napkin_program, Free>;
    struct Instance {
        std::vector<napkin_type> types;  ///< of inputs and outputs; bits 0: not given
        Owned program;
    };
    struct Entry {
        std::vector<std::int64_t> key;
        Instance* instance = nullptr;
        std::vector<std::int64_t> output_shapes;
    };
    /// The arrays of one call.
    struct Call {
        std::vector<PyObject*> inputs;
        std::vector<PyObject*> given;  ///< outputs, null where they are to be made
        std::vector<View> views;       ///< of inputs, then of outputs that are given
        std::vector<std::int64_t> key;
        void* stream = nullptr;
        bool is_new = false;
    };

    [[nodiscard]] Owned parsed(const std::vector<napkin_type>& types) const;
    void take_arguments(PyObject* arguments, PyObject* words, Call& call) const;
    void take_word(PyObject* name, PyObject* value, Call& call, PyObject*& stream) const;
    void take_outputs(PyObject* out, Call& call) const;
    void read_arrays(Call& call, PyObject* stream) const;
    const Entry& entry_of(Call& call);
    Instance& instance_of(const std::vector<napkin_type>& types);
    std::vector<Object> outputs_of(Call& call, const Entry& entry) const;
    std::vector<Object> ready(PyObject* arguments, PyObject* words, Call& call, const Entry*& entry);
    static void run(const Call& call, const Entry& entry, bool only_prepare);

    Spoken spoken_;
    std::size_t num_inputs_ = 0, num_outputs_ = 0;
    std::map<std::string, std::size_t, std::less<>> inputs_by_name_;
    std::vector<std::unique_ptr<Instance>> instances_;  ///< the first one is the text as it is
    std::unordered_multimap<std::uint64_t, Entry> entries_;
};

}  // namespace napkin::python
