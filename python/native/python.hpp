#pragma once
// Python's stable interface of 3.10, which 3.10 and all later releases load, and its references as values.
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <utility>

namespace napkin::python {

/// Python's error is set, and is on its way to the caller.
struct ErrorIsSet : std::exception {};

/// A reference that is owned.
class Object {
public:
    Object() = default;
    /// Takes over a new reference; null throws ErrorIsSet.
    static Object owned(PyObject* object) {
        if (object == nullptr) throw ErrorIsSet();
        return Object(object);
    }
    static Object borrowed(PyObject* object) {
        Py_XINCREF(object);
        return Object(object);
    }
    Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Object& operator=(Object&& other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    ~Object() { Py_XDECREF(object_); }

    [[nodiscard]] PyObject* get() const { return object_; }
    PyObject* release() { return std::exchange(object_, nullptr); }
    explicit operator bool() const { return object_ != nullptr; }

private:
    explicit Object(PyObject* object) : object_(object) {}
    PyObject* object_ = nullptr;
};

/// What a call gives that reports errors as -1.
inline void check(int result) {
    if (result < 0) throw ErrorIsSet();
}

/// A string that lives for the whole process, as names of attributes do.
inline PyObject* interned(const char* text) { return Object::owned(PyUnicode_InternFromString(text)).release(); }

[[noreturn]] inline void fail(PyObject* type, const char* message) {
    PyErr_SetString(type, message);
    throw ErrorIsSet();
}

/// The text of a str, as long as the object lives.
const char* text_of(PyObject* string);

/// Runs f for a function that Python calls: null, and Python's error, where it throws.
template <class F>
PyObject* guarded(const F& f) noexcept {
    try {
        return f();
    } catch (const ErrorIsSet&) {
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& fault) {
        PyErr_SetString(PyExc_SystemError, fault.what());
    }
    return nullptr;
}

/// The Python side of the module, given to setup() once.
struct Helpers {
    PyObject* error = nullptr;  ///< (text, status, [(code, message, line, column)]) -> exception
    /// (array, stream) -> (address, device type, device, type's code, bits, shape, strides or None, read-only, owner),
    /// or None where it is no array
    PyObject* view = nullptr;
    PyObject* empty = nullptr;  ///< (prototype, shape, type's code, bits) -> array
    PyObject* note = nullptr;   ///< (name) -> object with stop(), which says that something takes long
};
Helpers& helpers();

}  // namespace napkin::python
