#include "tile/verify_form.hpp"

#include <set>

namespace napkin {

bool check_variables(const KernelReport& in) {
    const std::size_t before = in.num_messages();
    std::set<std::string> names;
    for (const Variable& v : in.kernel().variables) {
        if (!names.insert(v.name).second) in.report("two variables are called {}", v.name);
        if (v.array < 0 || static_cast<std::size_t>(v.array) >= in.diagram().arrays.size()) {
            in.report("variable {} is a tile of array {}, which does not exist", v.name, v.array);
            continue;
        }
        const Array& a = in.diagram().array(v.array);
        if (v.dims.size() != v.limits.size())
            in.report("variable {} has {} dimensions and {} limits", v.name, v.dims.size(), v.limits.size());
        if (v.gathers.empty() ? v.dims.size() != a.axes.size() : v.gathers.size() != a.axes.size())
            in.report("variable {} has {} dimensions, its array {} has {}", v.name, v.dims.size(), a.name, a.axes.size());
        for (const Index& dim : v.dims)
            for (const AxisId axis : dim.axes())
                if (!in.is_axis(axis)) in.report("variable {} mentions axis {}, which does not exist", v.name, axis);
    }
    return in.num_messages() == before;
}

void check_dims(const KernelReport& in, VariableId id) {
    const Variable& v = in.variable(id);
    const std::vector<AxisId>& axes = in.diagram().array(v.array).axes;
    for (std::size_t d = 0; d < axes.size(); ++d)
        if (!v.dims[d].is_axis(axes[d]))
            in.report("dimension {} of {} is not the axis {} of its array", d, v.name, in.axis_name(axes[d]));
}

void check_axes(const KernelReport& in, const Compute& compute) {
    const Variable& v = in.variable(compute.variable);
    std::set<AxisId> bound(in.diagram().array(v.array).axes.begin(), in.diagram().array(v.array).axes.end());
    const auto check = [&](const Expr& e, const char* where) {
        for (const AxisId axis : free_axes(e)) {
            if (!in.is_axis(axis))
                in.report("the {} of {} mentions axis {}, which does not exist", where, v.name, axis);
            else if (!bound.contains(axis))
                in.report("the {} of {} mentions {}, which is no axis of its target and not reduced there", where,
                          v.name, in.axis_name(axis));
        }
    };
    if (compute.carry) check(compute.carry, "carry");
    bound.insert(compute.reduce_axes.begin(), compute.reduce_axes.end());
    check(compute.body, "body");
}

}  // namespace napkin
