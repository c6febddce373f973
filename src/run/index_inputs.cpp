#include "run/index_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include <fmt/format.h>

#include "diagram/array_sizes.hpp"
#include "diagram/check_indices.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {
/// The values of a view, row-major.
Column column_of(const KernelInput& view, const std::vector<std::int64_t>& sizes) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    Column values(view.type, static_cast<std::size_t>(count), Number());
    const std::vector<std::int64_t> strides = view.strides.empty() ? row_major_strides(sizes) : view.strides;
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t rest = i, offset = 0;
        for (std::size_t d = sizes.size(); d-- > 0;) {
            offset += rest % sizes[d] * strides[d];
            rest /= sizes[d];
        }
        values.set(static_cast<std::size_t>(i),
                   decode_number(view.type, static_cast<const char*>(view.data) + offset * bytes(view.type)));
    }
    return values;
}

}  // namespace

void fill_integers(Tensor& tensor, std::uint64_t seed, std::int64_t least, std::int64_t most) {
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
        // What is normal becomes uniform by its distribution function.
        const double uniform = 0.5 * std::erfc(-normal_number(seed, static_cast<std::uint64_t>(i)) / std::numbers::sqrt2);
        const auto value = least + static_cast<std::int64_t>(uniform * static_cast<double>(most - least + 1));
        tensor.set(i, Number::whole(Kind::i64, std::clamp(value, least, most)));
    }
}

void fill_row_numbers(Tensor& tensor, std::uint64_t seed, std::int64_t rows, bool ascend) {
    fill_integers(tensor, seed, 0, rows);
    if (!ascend || tensor.count() == 0) return;
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < tensor.count(); ++i) numbers.push_back(tensor.number(i).as_whole(Kind::i64));
    numbers.front() = 0, numbers.back() = rows;
    std::sort(numbers.begin(), numbers.end());
    for (std::int64_t i = 0; i < tensor.count(); ++i)
        tensor.set(i, Number::whole(Kind::i64, numbers[static_cast<std::size_t>(i)]));
}

namespace {

/// Whether the values of an input that counts rows are numbers of rows, and ascend where they are offsets.
Status check_row_numbers(const Diagram& diagram, const Extents& extents, ArrayId id, const KernelInput& view) {
    const Array& array = diagram.array(id);
    const std::int64_t rows = extents[array.rows->axis];
    const Column values = column_of(view, view.sizes);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t value = values.at(i).as_whole(Kind::i64);
        const std::int64_t before = i > 0 ? values.at(i - 1).as_whole(Kind::i64) : 0;
        const std::string place = fmt::format("{}[{}] = {}", array.name, i, value);
        if (value < 0 || value > rows)
            return std::vector<Diagnostic>{
                {"row-number-out-of-range", array.range,
                 fmt::format("{} is no number of rows of {}", place, diagram.axis(array.rows->axis).name),
                 fmt::format("0 … {}", rows)}};
        if (array.rows->ascend && value < before)
            return std::vector<Diagnostic>{{"offsets-descend", array.range,
                                            fmt::format("{} lies before {}[{}] = {}", place, array.name, i - 1, before),
                                            "offsets that ascend: a sequence begins where the one before it ends"}};
    }
    return Done{};
}

}  // namespace

Status check_index_inputs(const Diagram& diagram, const Extents& extents, const std::vector<KernelInput>& inputs) {
    const std::vector<ArrayId> deciding = arrays_in_indices(diagram);
    if (inputs.size() != diagram.inputs.size()) return Done{};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Array& array = diagram.array(diagram.inputs[i]);
        if (!array.rows || inputs[i].data == nullptr || inputs[i].type != array.type) continue;
        if (Status good = check_row_numbers(diagram, extents, diagram.inputs[i], inputs[i]); !good) return good;
    }
    if (deciding.empty()) return Done{};
    Values values(diagram.arrays.size());
    for (std::size_t i = 0; i < diagram.inputs.size(); ++i) {
        const ArrayId id = diagram.inputs[i];
        if (!contains(deciding, id)) continue;
        const std::vector<std::int64_t> sizes = array_sizes(diagram, id, extents);
        const KernelInput& view = inputs[i];
        const bool fits = view.sizes == sizes && view.type == diagram.array(id).type && view.data != nullptr &&
                          (view.strides.empty() || view.strides.size() == sizes.size());
        if (!fits) return Done{};
        values[id] = column_of(view, sizes);
    }
    if (auto found = check_indices(diagram, extents, values)) return std::vector<Diagnostic>{std::move(*found)};
    return Done{};
}

ComputedIndices::ComputedIndices(const Diagram& diagram, const Extents& extents, const std::vector<ArrayId>& deciding)
    : diagram_(diagram), extents_(extents), deciding_(deciding), known_(diagram.arrays.size(), false) {
    for (const ArrayId id : diagram.inputs) known_[at(id)] = true;
}

Status ComputedIndices::after(const std::vector<ArrayId>& written,
                              const std::function<Result<KernelInput>(ArrayId)>& in_memory) {
    std::vector<ArrayId> fresh;
    for (const ArrayId id : written) {
        known_[at(id)] = true;
        if (contains(deciding_, id)) fresh.push_back(id);
    }
    if (fresh.empty()) return Done{};
    Values values(diagram_.arrays.size());
    for (const ArrayId id : deciding_) {
        if (!known_[at(id)]) continue;
        const auto view = in_memory(id);
        if (!view) return view.errors();
        values[id] = column_of(*view, view->sizes);
    }
    if (auto found = check_indices(diagram_, extents_, values, fresh))
        return std::vector<Diagnostic>{std::move(*found)};
    return Done{};
}

}  // namespace napkin
