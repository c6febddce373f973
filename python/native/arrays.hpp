#pragma once
// Arrays of any library as napkin's C interface takes them.
//
// A type that has DLPack's exchange interface (DLPack 1.3: __dlpack_c_exchange_api__) is read and allocated by it,
// without a call of Python. Others are read by __dlpack__. What has neither, or whose numbers DLPack has no name for in
// its library, goes through napkin/_arrays.py, which reads __cuda_array_interface__ and __array_interface__.
#include <napkin/napkin.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "python/native/python.hpp"

namespace napkin::python {

/// These are DLPack 1.3 (dlpack.h), whose DLTensor is napkin_array.
struct DLPackVersion {
    std::uint32_t major, minor;
};
struct DLManagedTensor {
    napkin_array tensor;
    void* context;
    void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
    DLPackVersion version;
    void* context;
    void (*deleter)(DLManagedTensorVersioned*);
    std::uint64_t flags;  ///< 1: read-only
    napkin_array tensor;
};
struct DLPackExchangeAPI {
    DLPackVersion version;
    DLPackExchangeAPI* previous;
    int (*allocate)(napkin_array* prototype, DLManagedTensorVersioned** out, void* context,
                    void (*set_error)(void* context, const char* kind, const char* message));
    int (*managed_from_object)(void* object, DLManagedTensorVersioned** out);
    int (*object_from_managed)(DLManagedTensorVersioned* tensor, void** out);
    int (*tensor_from_object)(void* object, napkin_array* out);  ///< may be null
    int (*current_stream)(std::int32_t device_type, std::int32_t device, void** out);
};

/// What is known of a Python type.
struct TypeOfArrays {
    PyObject* type = nullptr;
    const DLPackExchangeAPI* exchange = nullptr;
    bool has_dlpack = false;
    bool takes_version = true;  ///< its __dlpack__ has the argument max_version
};
TypeOfArrays& type_of(PyObject* array);

/// An array that a call reads or writes, as long as the call takes.
class View {
public:
    /// `stream`: the caller's, of an array on a GPU; null where it names none. Throws ErrorIsSet: TypeError for what is
    /// no array; what the array's own library raises.
    View(PyObject* array, void* stream);
    View(View&& other) noexcept;
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    View& operator=(View&&) = delete;
    ~View();

    [[nodiscard]] const napkin_array& array() const { return array_; }
    [[nodiscard]] bool is_read_only() const { return read_only_; }

private:
    bool read_capsule(PyObject* array, TypeOfArrays& type, void* stream);
    void read_interface(PyObject* array, void* stream);

    napkin_array array_{};
    bool read_only_ = false;
    DLManagedTensor* old_ = nullptr;
    DLManagedTensorVersioned* managed_ = nullptr;
    Object owner_;
    std::vector<std::int64_t> numbers_;  ///< shape and strides, where the array keeps none for us
};

/// The stream that the array's library works on now; null where it does not say.
void* current_stream(PyObject* array, const napkin_array& view);

/// A new array of the prototype's library, on its device. Throws ErrorIsSet.
Object empty_array(PyObject* prototype, const napkin_array& place, const std::int64_t* shape, int ndim, napkin_type type);

}  // namespace napkin::python
