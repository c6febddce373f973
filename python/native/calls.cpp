#include "python/native/calls.hpp"

#include <algorithm>
#include <cstring>

namespace napkin::python {
namespace {

/// Calls that are for arrays of new types or shapes, which may take seconds, are noted.
class Note {
public:
    explicit Note(const char* name) {
        const Object text = Object::owned(PyUnicode_FromString(name));
        note_ = Object::owned(PyObject_CallFunctionObjArgs(helpers().note, text.get(), nullptr));
    }
    Note(const Note&) = delete;
    Note& operator=(const Note&) = delete;
    ~Note() {
        PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
        PyErr_Fetch(&type, &value, &trace);
        if (PyObject* done = PyObject_CallMethod(note_.get(), "stop", nullptr)) {
            Py_DECREF(done);
        } else {
            PyErr_Clear();
        }
        PyErr_Restore(type, value, trace);
    }

private:
    Object note_;
};

/// One step of FNV-1a over whole numbers, with its offset and prime of 64 bits.
std::uint64_t hash_of(const std::vector<std::int64_t>& key) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::int64_t value : key) {
        hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x100000001b3;
        hash ^= hash >> 32;
    }
    return hash;
}

std::int64_t number_of(napkin_type type) { return type.code << 24 | type.bits << 16 | type.lanes; }

struct FreeError {
    void operator()(napkin_error* error) const { napkin_error_free(error); }
};

/// Frees the error, and raises the helpers' one in its place.
[[noreturn]] void raise(napkin_status status, napkin_error* error) {
    const std::unique_ptr<napkin_error, FreeError> owned(error);
    const Object all = Object::owned(PyList_New(0));
    for (std::size_t i = 0; i < napkin_error_count(error); ++i) {
        const Object one = Object::owned(Py_BuildValue("(ssii)", napkin_error_code(error, i), napkin_error_message(error, i),
                                                       napkin_error_line(error, i), napkin_error_column(error, i)));
        check(PyList_Append(all.get(), one.get()));
    }
    const Object made = Object::owned(
        PyObject_CallFunction(helpers().error, "siO", napkin_error_text(error), static_cast<int>(status), all.get()));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.get())), made.get());
    throw ErrorIsSet();
}

/// A number, or what has one as CUDA's stream: __cuda_stream__, or the attribute of torch's or CuPy's.
void* stream_of(PyObject* stream) {
    if (stream == nullptr || stream == Py_None) return nullptr;
    Object number = Object::borrowed(stream);
    if (PyLong_Check(stream) == 0) {
        if (PyObject_HasAttrString(stream, "__cuda_stream__") == 1) {
            const Object pair = Object::owned(PyObject_CallMethod(stream, "__cuda_stream__", nullptr));
            number = Object::owned(PySequence_GetItem(pair.get(), 1));
        } else if (PyObject_HasAttrString(stream, "cuda_stream") == 1) {
            number = Object::owned(PyObject_GetAttrString(stream, "cuda_stream"));
        } else {
            number = Object::owned(PyObject_GetAttrString(stream, "ptr"));
        }
    }
    void* const address = PyLong_AsVoidPtr(number.get());
    if (address == nullptr && PyErr_Occurred() != nullptr) throw ErrorIsSet();
    return address;
}

}  // namespace

const char* text_of(PyObject* string) {
    const char* text = PyUnicode_AsUTF8AndSize(string, nullptr);
    if (text == nullptr) throw ErrorIsSet();
    return text;
}

CalledProgram::CalledProgram(Spoken spoken) : spoken_(std::move(spoken)) {
    instances_.push_back(std::make_unique<Instance>(Instance{{}, parsed({})}));
    num_inputs_ = napkin_program_inputs(program()), num_outputs_ = napkin_program_outputs(program());
    for (std::size_t i = 0; i < num_inputs_; ++i) inputs_by_name_[napkin_program_array_name(program(), i)] = i;
}

CalledProgram::Owned CalledProgram::parsed(const std::vector<napkin_type>& types) const {
    std::vector<napkin_size> sizes;
    for (const auto& [axis, value] : spoken_.sizes) sizes.push_back({axis.c_str(), value});
    const napkin_options options{.diagram = spoken_.has_diagram ? spoken_.diagram.c_str() : nullptr,
                                 .sizes = sizes.data(),
                                 .size_count = sizes.size(),
                                 .schedule = spoken_.has_schedule ? spoken_.schedule.c_str() : nullptr,
                                 .types = types.data(),
                                 .type_count = types.size(),
                                 .batch_invariant = spoken_.is_batch_invariant ? 1 : 0};
    napkin_program* program = nullptr;
    napkin_error* error = nullptr;
    const napkin_status status = napkin_parse_with(spoken_.text.data(), spoken_.text.size(), spoken_.name.c_str(),
                                                   &options, &program, &error);
    if (status != NAPKIN_OK) raise(status, error);
    return Owned(program);
}

void CalledProgram::take_word(PyObject* name, PyObject* value, Call& call, PyObject*& stream) const {
    const char* const word = text_of(name);
    if (const auto input = inputs_by_name_.find(std::string_view(word)); input != inputs_by_name_.end()) {
        if (call.inputs[input->second] != nullptr) {
            PyErr_Format(PyExc_TypeError, "%s is given twice to %s", word, napkin_program_name(program()));
            throw ErrorIsSet();
        }
        call.inputs[input->second] = value;
    } else if (std::strcmp(word, "out") == 0) {
        take_outputs(value, call);
    } else if (std::strcmp(word, "stream") == 0) {
        stream = value;
    } else {
        PyErr_Format(PyExc_TypeError, "%s has no argument '%s'", napkin_program_name(program()), word);
        throw ErrorIsSet();
    }
}

void CalledProgram::take_outputs(PyObject* out, Call& call) const {
    if (out == Py_None) return;
    if (PyTuple_Check(out) == 0 && PyList_Check(out) == 0) {
        if (num_outputs_ == 1) call.given[0] = out;
    } else if (PySequence_Size(out) == static_cast<Py_ssize_t>(num_outputs_)) {
        for (std::size_t i = 0; i < num_outputs_; ++i) {
            // The sequence keeps it for as long as the call.
            const Object one = Object::owned(PySequence_GetItem(out, static_cast<Py_ssize_t>(i)));
            if (one.get() != Py_None) call.given[i] = one.get();
        }
        return;
    }
    if (call.given[0] == nullptr) {
        PyErr_Format(PyExc_TypeError, "out has to be %zu arrays, as %s has results", num_outputs_,
                     napkin_program_name(program()));
        throw ErrorIsSet();
    }
}

void CalledProgram::take_arguments(PyObject* arguments, PyObject* words, Call& call) const {
    const auto count = static_cast<std::size_t>(PyTuple_Size(arguments));
    if (count > num_inputs_) {
        PyErr_Format(PyExc_TypeError, "%s takes %zu arrays, and %zu are given", napkin_program_name(program()),
                     num_inputs_, count);
        throw ErrorIsSet();
    }
    call.inputs.assign(num_inputs_, nullptr);
    call.given.assign(num_outputs_, nullptr);
    for (std::size_t i = 0; i < count; ++i) call.inputs[i] = PyTuple_GetItem(arguments, static_cast<Py_ssize_t>(i));
    PyObject* stream = nullptr;
    if (words != nullptr) {
        Py_ssize_t at = 0;
        PyObject *name = nullptr, *value = nullptr;
        while (PyDict_Next(words, &at, &name, &value) != 0) take_word(name, value, call, stream);
    }
    for (std::size_t i = 0; i < num_inputs_; ++i)
        if (call.inputs[i] == nullptr) {
            PyErr_Format(PyExc_TypeError, "%s is called without %s", napkin_program_name(program()),
                         napkin_program_array_name(program(), i));
            throw ErrorIsSet();
        }
    read_arrays(call, stream);
}

void CalledProgram::read_arrays(Call& call, PyObject* stream) const {
    void* const given = stream_of(stream);
    call.views.reserve(num_inputs_ + num_outputs_);
    for (PyObject* input : call.inputs) call.views.emplace_back(input, given);
    for (PyObject* output : call.given) {
        if (output == nullptr) continue;
        call.views.emplace_back(output, given);
        if (call.views.back().is_read_only()) fail(PyExc_ValueError, "an array of out is read-only");
    }
    // Where nothing is put in, a result that is given says where the program runs.
    if (call.views.empty()) fail(PyExc_TypeError, "a program without arguments needs its results as out");
    const napkin_array& first = call.views.front().array();
    if (first.device.device_type != NAPKIN_ON_CPU) {
        PyObject* const source = call.inputs.empty() ? call.given[0] : call.inputs[0];
        call.stream = stream != nullptr && stream != Py_None ? given : current_stream(source, first);
    }
    call.key = {first.device.device_type, first.device.device_id};
    for (std::size_t i = 0, view = 0; i < num_inputs_ + num_outputs_; ++i) {
        if (i >= num_inputs_ && call.given[i - num_inputs_] == nullptr) {
            call.key.push_back(-1);
            continue;
        }
        const napkin_array& array = call.views[view++].array();
        call.key.push_back(number_of(array.dtype));
        call.key.push_back(array.ndim);
        call.key.insert(call.key.end(), array.shape, array.shape + array.ndim);
    }
}

CalledProgram::Instance& CalledProgram::instance_of(const std::vector<napkin_type>& types) {
    const auto same = [](napkin_type a, napkin_type b) { return number_of(a) == number_of(b); };
    // The text itself is for what it says, and for f32 where it says nothing.
    std::size_t array = 0;
    if (std::ranges::all_of(types, [&](napkin_type type) {
            const napkin_type own = napkin_program_array_type(program(), array++);
            return type.bits == 0 || same(type, own);
        }))
        return *instances_.front();
    for (const auto& known : instances_)
        if (std::ranges::equal(known->types, types, same)) return *known;
    Owned program = parsed(types);
    return *instances_.emplace_back(std::make_unique<Instance>(Instance{types, std::move(program)}));
}

const CalledProgram::Entry& CalledProgram::entry_of(Call& call) {
    const std::uint64_t hash = hash_of(call.key);
    const auto [begin, end] = entries_.equal_range(hash);
    for (auto at = begin; at != end; ++at)
        if (at->second.key == call.key) return at->second;
    call.is_new = true;
    std::vector<napkin_type> types;
    std::vector<const napkin_array*> inputs;
    for (std::size_t i = 0, view = 0; i < num_inputs_ + num_outputs_; ++i) {
        const bool given = i < num_inputs_ || call.given[i - num_inputs_] != nullptr;
        types.push_back(given ? call.views[view++].array().dtype : napkin_type{});
        if (i < num_inputs_) inputs.push_back(&call.views[i].array());
    }
    Entry entry{call.key, &instance_of(types), {}};
    napkin_program* const program = entry.instance->program.get();
    std::size_t axes = 0;
    for (std::size_t i = 0; i < num_outputs_; ++i) axes += napkin_program_array_axes(program, num_inputs_ + i);
    entry.output_shapes.resize(axes + 1);
    const napkin_array* none = nullptr;
    napkin_error* error = nullptr;
    const napkin_status status = napkin_output_shapes(program, inputs.empty() ? &none : inputs.data(), inputs.size(),
                                                      entry.output_shapes.data(), &error);
    if (status != NAPKIN_OK) raise(status, error);
    return entries_.emplace(hash, std::move(entry))->second;
}

std::vector<Object> CalledProgram::outputs_of(Call& call, const Entry& entry) const {
    std::vector<Object> outputs;
    std::vector<View> views;
    const napkin_program* program = entry.instance->program.get();
    const std::int64_t* shape = entry.output_shapes.data();
    auto given = call.views.begin() + static_cast<std::ptrdiff_t>(num_inputs_);
    for (std::size_t i = 0; i < num_outputs_; ++i) {
        const std::size_t axes = napkin_program_array_axes(program, num_inputs_ + i);
        if (call.given[i] != nullptr) {
            outputs.push_back(Object::borrowed(call.given[i]));
            views.push_back(std::move(*given++));
        } else {
            PyObject* const like = call.inputs.empty() ? call.given[0] : call.inputs[0];
            outputs.push_back(empty_array(like, call.views[0].array(), shape, static_cast<int>(axes),
                                          napkin_program_array_type(program, num_inputs_ + i)));
            views.emplace_back(outputs.back().get(), call.stream);
        }
        shape += axes;
    }
    while (call.views.size() > num_inputs_) call.views.pop_back();
    for (View& view : views) call.views.push_back(std::move(view));
    return outputs;
}

void CalledProgram::run(const Call& call, const Entry& entry, bool only_prepare) {
    std::vector<const napkin_array*> arrays;
    for (const View& view : call.views) arrays.push_back(&view.array());
    napkin_program* const program = entry.instance->program.get();
    napkin_error* error = nullptr;
    napkin_status status = NAPKIN_OK;
    const auto called = [&] {
        Py_BEGIN_ALLOW_THREADS status = only_prepare
                                            ? napkin_prepare(program, arrays.data(), arrays.size(), &error)
                                            : napkin_call(program, arrays.data(), arrays.size(), call.stream, &error);
        Py_END_ALLOW_THREADS
    };
    if (call.is_new || only_prepare) {
        const Note note(napkin_program_name(program));
        called();
    } else {
        called();
    }
    if (status != NAPKIN_OK) raise(status, error);
}

std::vector<Object> CalledProgram::ready(PyObject* arguments, PyObject* words, Call& call, const Entry*& entry) {
    take_arguments(arguments, words, call);
    entry = &entry_of(call);
    return outputs_of(call, *entry);
}

Object CalledProgram::call(PyObject* arguments, PyObject* words) {
    Call call;
    const Entry* entry = nullptr;
    std::vector<Object> outputs = ready(arguments, words, call, entry);
    run(call, *entry, false);
    if (outputs.size() == 1) return std::move(outputs[0]);
    Object all = Object::owned(PyTuple_New(static_cast<Py_ssize_t>(outputs.size())));
    for (std::size_t i = 0; i < outputs.size(); ++i)
        check(PyTuple_SetItem(all.get(), static_cast<Py_ssize_t>(i), outputs[i].release()));
    return all;
}

Object CalledProgram::prepare(PyObject* arguments, PyObject* words) {
    Call call;
    const Entry* entry = nullptr;
    const std::vector<Object> outputs = ready(arguments, words, call, entry);
    run(call, *entry, true);
    return Object::borrowed(Py_None);
}

Object CalledProgram::arrays() const {
    Object all = Object::owned(PyList_New(0));
    for (std::size_t i = 0; i < num_inputs_ + num_outputs_; ++i) {
        const std::size_t count = napkin_program_array_axes(program(), i);
        const Object axes = Object::owned(PyList_New(0)), sizes = Object::owned(PyList_New(0));
        for (std::size_t d = 0; d < count; ++d) {
            const Object axis = Object::owned(PyUnicode_FromString(napkin_program_axis_name(program(), i, d)));
            const Object size = Object::owned(Py_BuildValue("z", napkin_program_axis_size(program(), i, d)));
            check(PyList_Append(axes.get(), axis.get()));
            check(PyList_Append(sizes.get(), size.get()));
        }
        const napkin_type type = napkin_program_array_type(program(), i);
        const Object one = Object::owned(Py_BuildValue("(s(ii)iOO)", napkin_program_array_name(program(), i), type.code,
                                                       type.bits, napkin_program_type_is_open(program(), i), axes.get(),
                                                       sizes.get()));
        check(PyList_Append(all.get(), one.get()));
    }
    return all;
}

Object CalledProgram::typed_text(PyObject* types) const {
    std::vector<napkin_type> given(num_inputs_ + num_outputs_, napkin_type{});
    for (std::size_t i = 0; i < given.size(); ++i) {
        PyObject* const pair = PyDict_GetItemString(types, napkin_program_array_name(program(), i));
        if (pair == nullptr) continue;
        int code = 0, bits = 0;
        if (PyArg_ParseTuple(pair, "ii", &code, &bits) == 0) throw ErrorIsSet();
        given[i] = {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
    }
    const Owned program = parsed(given);
    return Object::owned(PyUnicode_FromString(napkin_program_text(program.get())));
}

std::size_t CalledProgram::sum_of(std::size_t (*number)(const napkin_program*)) const {
    std::size_t sum = 0;
    for (const auto& instance : instances_) sum += number(instance->program.get());
    return sum;
}

}  // namespace napkin::python
