// The module napkin._native: the type Program, and the commands.
#include <string>
#include <vector>

#include "napkin/command.hpp"
#include "python/native/calls.hpp"

namespace napkin::python {

Helpers& helpers() {
    static Helpers all;
    return all;
}

namespace {

struct ProgramObject {
    PyObject_HEAD CalledProgram* program;
};

CalledProgram& program_of(PyObject* self) { return *reinterpret_cast<ProgramObject*>(self)->program; }

/// Program(text, name, diagram, sizes, schedule, batch_invariant); diagram and schedule may be None, sizes is a dict.
PyObject* make_program(PyTypeObject* type, PyObject* arguments, PyObject*) {
    return guarded([&] {
        Spoken spoken;
        const char *text = nullptr, *name = nullptr, *diagram = nullptr, *schedule = nullptr;
        Py_ssize_t length = 0;
        PyObject* sizes = nullptr;
        int is_batch_invariant = 0;
        if (PyArg_ParseTuple(arguments, "s#szO!zp", &text, &length, &name, &diagram, &PyDict_Type, &sizes, &schedule,
                             &is_batch_invariant) == 0)
            throw ErrorIsSet();
        spoken.is_batch_invariant = is_batch_invariant != 0;
        spoken.text.assign(text, static_cast<std::size_t>(length));
        spoken.name = name;
        if (diagram != nullptr) spoken.has_diagram = true, spoken.diagram = diagram;
        if (schedule != nullptr) spoken.has_schedule = true, spoken.schedule = schedule;
        Py_ssize_t at = 0;
        PyObject *axis = nullptr, *value = nullptr;
        while (PyDict_Next(sizes, &at, &axis, &value) != 0) {
            const long long size = PyLong_AsLongLong(value);
            if (size == -1 && PyErr_Occurred() != nullptr) throw ErrorIsSet();
            spoken.sizes.emplace_back(text_of(axis), size);
        }
        auto made = std::make_unique<CalledProgram>(std::move(spoken));
        auto* const allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
        Object self = Object::owned(allocate(type, 0));
        reinterpret_cast<ProgramObject*>(self.get())->program = made.release();
        return self.release();
    });
}

void free_program(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    delete reinterpret_cast<ProgramObject*>(self)->program;
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

PyObject* call_program(PyObject* self, PyObject* arguments, PyObject* words) {
    return guarded([&] { return program_of(self).call(arguments, words).release(); });
}
PyObject* prepare_program(PyObject* self, PyObject* arguments, PyObject* words) {
    return guarded([&] { return program_of(self).prepare(arguments, words).release(); });
}
PyObject* arrays_of(PyObject* self, PyObject*) {
    return guarded([&] { return program_of(self).arrays().release(); });
}
PyObject* typed_text_of(PyObject* self, PyObject* types) {
    return guarded([&] { return program_of(self).typed_text(types).release(); });
}
template <std::size_t (*number)(const napkin_program*)>
PyObject* sum_of(PyObject* self, PyObject*) {
    return guarded([&] { return PyLong_FromSize_t(program_of(self).sum_of(number)); });
}
PyObject* num_inputs_of(PyObject* self, PyObject*) {
    return guarded([&] { return PyLong_FromSize_t(napkin_program_inputs(program_of(self).program())); });
}
PyObject* name_of(PyObject* self, PyObject*) {
    return guarded([&] { return PyUnicode_FromString(napkin_program_name(program_of(self).program())); });
}

/// Words of a command line as C++ has them.
std::vector<std::string> words_of(PyObject* list) {
    std::vector<std::string> words;
    const Py_ssize_t count = PySequence_Size(list);
    if (count < 0) throw ErrorIsSet();
    for (Py_ssize_t i = 0; i < count; ++i)
        words.emplace_back(text_of(Object::owned(PySequence_GetItem(list, i)).get()));
    return words;
}

/// (words, input) -> (exit code, what it printed, messages)
PyObject* command(PyObject*, PyObject* arguments) {
    return guarded([&]() -> PyObject* {
        PyObject* list = nullptr;
        const char* input = nullptr;
        if (PyArg_ParseTuple(arguments, "Os", &list, &input) == 0) throw ErrorIsSet();
        const std::vector<std::string> words = words_of(list);
        const std::string text = input;
        cli::Captured captured;
        Py_BEGIN_ALLOW_THREADS captured = cli::run_captured(words, text);
        Py_END_ALLOW_THREADS const auto text_from = [](const std::string& bytes) {
            return Object::owned(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
        };
        const Object out = text_from(captured.out), err = text_from(captured.err);
        return Py_BuildValue("(iOO)", captured.code, out.get(), err.get());
    });
}

/// (words) -> exit code; output goes to the process' own streams.
PyObject* main_command(PyObject*, PyObject* list) {
    return guarded([&]() -> PyObject* {
        const std::vector<std::string> words = words_of(list);
        std::vector<const char*> argv{"napkin"};
        for (const std::string& word : words) argv.push_back(word.c_str());
        int code = 0;
        Py_BEGIN_ALLOW_THREADS code = cli::run_command(static_cast<int>(argv.size()), argv.data());
        Py_END_ALLOW_THREADS return PyLong_FromLong(code);
    });
}

/// (error, view, empty, note): the functions that Helpers has.
PyObject* set_up(PyObject*, PyObject* arguments) {
    return guarded([&]() -> PyObject* {
        Helpers& all = helpers();
        if (PyArg_ParseTuple(arguments, "OOOO", &all.error, &all.view, &all.empty, &all.note) == 0) throw ErrorIsSet();
        for (PyObject* one : {all.error, all.view, all.empty, all.note}) Py_INCREF(one);
        Py_RETURN_NONE;
    });
}

PyCFunction with_words(PyCFunctionWithKeywords function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyObject* make_module() {
    static PyMethodDef methods_of_program[] = {
        {"prepare", with_words(prepare_program), METH_VARARGS | METH_KEYWORDS, nullptr},
        {"_arrays", arrays_of, METH_NOARGS, nullptr},
        {"_typed_text", typed_text_of, METH_O, nullptr},
        {"_kernels", sum_of<napkin_program_kernels>, METH_NOARGS, nullptr},
        {"_codes", sum_of<napkin_program_codes>, METH_NOARGS, nullptr},
        {"_copies", sum_of<napkin_program_copies>, METH_NOARGS, nullptr},
        {"_num_inputs", num_inputs_of, METH_NOARGS, nullptr},
        {"_name", name_of, METH_NOARGS, nullptr},
        {}};
    static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make_program)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(free_program)},
                                  {Py_tp_call, reinterpret_cast<void*>(call_program)},
                                  {Py_tp_methods, methods_of_program},
                                  {}};
    static PyType_Spec spec = {"napkin._native.Program", sizeof(ProgramObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    static PyMethodDef functions[] = {{"command", command, METH_VARARGS, nullptr},
                                      {"main", main_command, METH_O, nullptr},
                                      {"set_up", set_up, METH_VARARGS, nullptr},
                                      {}};
    static PyModuleDef definition = {
        PyModuleDef_HEAD_INIT, "napkin._native", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};
    Object module = Object::owned(PyModule_Create(&definition));
    Object program = Object::owned(PyType_FromSpec(&spec));
    check(PyModule_AddObject(module.get(), "Program", program.release()));
    check(PyModule_AddStringConstant(module.get(), "version", napkin_version()));
    return module.release();
}

}  // namespace
}  // namespace napkin::python

PyMODINIT_FUNC PyInit__native() { return napkin::python::guarded(napkin::python::make_module); }
