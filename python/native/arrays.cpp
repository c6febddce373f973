#include "python/native/arrays.hpp"

#include <algorithm>
#include <string>

namespace napkin::python {
namespace {

/// DLPack's number of the default stream, which is null in CUDA.
constexpr long long default_stream = 1;

struct Names {
    PyObject *exchange = interned("__dlpack_c_exchange_api__"), *dlpack = interned("__dlpack__"),
             *device = interned("__dlpack_device__"), *max_version = interned("max_version"),
             *stream = interned("stream");
    PyObject* version = Object::owned(Py_BuildValue("(ii)", 1, 1)).release();
    PyObject* no_arguments = Object::owned(PyTuple_New(0)).release();
};
const Names& names() {
    static const Names all;
    return all;
}

/// The attribute; empty where there is none.
Object attribute(PyObject* object, PyObject* name) {
    if (PyObject* found = PyObject_GetAttr(object, name)) return Object::owned(found);
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw ErrorIsSet();
    PyErr_Clear();
    return {};
}

const DLPackExchangeAPI* exchange_of(PyObject* type) {
    const Object capsule = attribute(type, names().exchange);
    if (!capsule || PyCapsule_CheckExact(capsule.get()) == 0) return nullptr;
    const auto* found = static_cast<const DLPackExchangeAPI*>(
        PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
    if (found == nullptr) throw ErrorIsSet();
    while (found != nullptr && found->version.major != 1) found = found->previous;
    return found;
}

/// The capsule is used up, as DLPack has it, and its tensor is ours.
template <class Managed>
Managed* taken(PyObject* capsule, const char* name, const char* used) {
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    if (managed == nullptr || PyCapsule_SetName(capsule, used) != 0) throw ErrorIsSet();
    return managed;
}

std::int64_t whole(PyObject* number) {
    const long long value = PyLong_AsLongLong(number);
    if (value == -1 && PyErr_Occurred() != nullptr) throw ErrorIsSet();
    return value;
}

/// Where a library says why it cannot allocate.
void raise(void*, const char* kind, const char* message) {
    PyErr_SetString(std::string_view(kind) == "MemoryError" ? PyExc_MemoryError : PyExc_RuntimeError, message);
}

}  // namespace

TypeOfArrays& type_of(PyObject* array) {
    static std::vector<std::unique_ptr<TypeOfArrays>> all;  // guarded by the interpreter's lock
    auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(array));
    for (const auto& known : all)
        if (known->type == type) return *known;
    TypeOfArrays made{nullptr, exchange_of(type), static_cast<bool>(attribute(type, names().dlpack))};
    made.type = Object::borrowed(type).release();  // so that no other type comes to lie there
    return *all.emplace_back(std::make_unique<TypeOfArrays>(made));
}

View::View(PyObject* array, void* stream) {
    TypeOfArrays& type = type_of(array);
    if (type.exchange != nullptr) {
        const DLPackExchangeAPI& api = *type.exchange;
        if (api.tensor_from_object != nullptr) {
            check(api.tensor_from_object(array, &array_));
        } else {
            check(api.managed_from_object(array, &managed_));
            array_ = managed_->tensor;
            read_only_ = (managed_->flags & 1) != 0;
        }
    } else if (!type.has_dlpack || !read_capsule(array, type, stream)) {
        read_interface(array, stream);
    }
}

/// False where the array's library cannot describe it in this way; other ways may be open.
bool View::read_capsule(PyObject* array, TypeOfArrays& type, void* stream) {
    const Object device = Object::owned(PyObject_CallMethodObjArgs(array, names().device, nullptr));
    const bool on_gpu = whole(Object::owned(PySequence_GetItem(device.get(), 0)).get()) == NAPKIN_ON_GPU;
    const Object method = Object::owned(PyObject_GetAttr(array, names().dlpack));
    const auto called = [&] {
        const Object words = Object::owned(PyDict_New());
        if (type.takes_version) check(PyDict_SetItem(words.get(), names().max_version, names().version));
        if (on_gpu) {
            const auto number = stream != nullptr ? static_cast<long long>(reinterpret_cast<std::intptr_t>(stream))
                                                  : default_stream;
            check(PyDict_SetItem(words.get(), names().stream, Object::owned(PyLong_FromLongLong(number)).get()));
        }
        return PyObject_Call(method.get(), names().no_arguments, words.get());
    };
    PyObject* made = called();
    if (made == nullptr && type.takes_version && PyErr_ExceptionMatches(PyExc_TypeError) != 0) {
        PyErr_Clear();
        type.takes_version = false;
        made = called();
    }
    if (made == nullptr) {
        if (PyErr_ExceptionMatches(PyExc_BufferError) == 0) throw ErrorIsSet();
        PyErr_Clear();
        return false;
    }
    const Object capsule = Object::owned(made);
    if (PyCapsule_IsValid(made, "dltensor_versioned") != 0) {
        managed_ = taken<DLManagedTensorVersioned>(made, "dltensor_versioned", "used_dltensor_versioned");
        if (managed_->version.major != 1) fail(PyExc_BufferError, "napkin reads DLPack 1");
        array_ = managed_->tensor;
        read_only_ = (managed_->flags & 1) != 0;
    } else {
        old_ = taken<DLManagedTensor>(made, "dltensor", "used_dltensor");
        array_ = old_->tensor;
    }
    return true;
}

void View::read_interface(PyObject* array, void* stream) {
    const Object number = Object::owned(PyLong_FromVoidPtr(stream));
    Object read = Object::owned(PyObject_CallFunctionObjArgs(helpers().view, array, number.get(), nullptr));
    if (read.get() == Py_None) {
        PyErr_Format(PyExc_TypeError, "%R is no array: it has neither __dlpack__ nor __array_interface__",
                     reinterpret_cast<PyObject*>(Py_TYPE(array)));
        throw ErrorIsSet();
    }
    const auto item = [&](Py_ssize_t index) { return PyTuple_GetItem(read.get(), index); };
    array_.data = PyLong_AsVoidPtr(item(0));
    if (array_.data == nullptr && PyErr_Occurred() != nullptr) throw ErrorIsSet();
    array_.device = {static_cast<std::int32_t>(whole(item(1))), static_cast<std::int32_t>(whole(item(2)))};
    array_.dtype = {static_cast<std::uint8_t>(whole(item(3))), static_cast<std::uint8_t>(whole(item(4))), 1};
    const Py_ssize_t ndim = PyTuple_Size(item(5));
    const bool strided = item(6) != Py_None;
    for (const Py_ssize_t list : {5, 6})
        for (Py_ssize_t d = 0; d < ndim && (list == 5 || strided); ++d)
            numbers_.push_back(whole(PyTuple_GetItem(item(list), d)));
    array_.ndim = static_cast<std::int32_t>(ndim);
    array_.shape = numbers_.data();
    array_.strides = strided ? numbers_.data() + ndim : nullptr;
    read_only_ = PyObject_IsTrue(item(7)) == 1;
    owner_ = std::move(read);
}

View::View(View&& other) noexcept
    : array_(other.array_),
      read_only_(other.read_only_),
      old_(std::exchange(other.old_, nullptr)),
      managed_(std::exchange(other.managed_, nullptr)),
      owner_(std::move(other.owner_)),
      numbers_(std::move(other.numbers_)) {}

View::~View() {
    if (old_ != nullptr && old_->deleter != nullptr) old_->deleter(old_);
    if (managed_ != nullptr && managed_->deleter != nullptr) managed_->deleter(managed_);
}

void* current_stream(PyObject* array, const napkin_array& view) {
    const DLPackExchangeAPI* api = type_of(array).exchange;
    void* stream = nullptr;
    if (api != nullptr && api->current_stream != nullptr)
        check(api->current_stream(view.device.device_type, view.device.device_id, &stream));
    return stream;
}

Object empty_array(PyObject* prototype, const napkin_array& place, const std::int64_t* shape, int ndim, napkin_type type) {
    if (const DLPackExchangeAPI* api = type_of(prototype).exchange) {
        napkin_array wanted{};
        wanted.device = place.device;
        wanted.ndim = ndim;
        wanted.dtype = type;
        wanted.shape = const_cast<std::int64_t*>(shape);  // it is read alone
        DLManagedTensorVersioned* managed = nullptr;
        void* made = nullptr;
        check(api->allocate(&wanted, &managed, nullptr, raise));
        check(api->object_from_managed(managed, &made));
        return Object::owned(static_cast<PyObject*>(made));
    }
    const Object sizes = Object::owned(PyTuple_New(ndim));
    for (int d = 0; d < ndim; ++d) check(PyTuple_SetItem(sizes.get(), d, PyLong_FromLongLong(shape[d])));
    const Object code = Object::owned(PyLong_FromLong(type.code)), bits = Object::owned(PyLong_FromLong(type.bits));
    return Object::owned(
        PyObject_CallFunctionObjArgs(helpers().empty, prototype, sizes.get(), code.get(), bits.get(), nullptr));
}

}  // namespace napkin::python
