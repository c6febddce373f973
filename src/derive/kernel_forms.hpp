#pragma once
// Kernels of a derivation one by one, for whoever chooses among them.
#include <vector>

#include "derive/derived.hpp"

namespace napkin {

class KernelBuilder;

/// Makes the kernels that are chosen in each region, and the record from the source to them. The builder is of the
/// normal form, and is used up.
void build_kernels(Derived& derived, KernelBuilder& builder);

class KernelForms {
public:
    explicit KernelForms(const Derived& derived);

    /// The derivation with these kernels alone. What the others compute is input.
    [[nodiscard]] Derived of(const std::vector<Gathering>& kernels) const;
    /// The ways to stream the gathering's equations, its own first: along each axis that they reduce, and with all that
    /// is reduced whole. Where overrides say what is streamed, there is no other way.
    [[nodiscard]] std::vector<Gathering> streamed(const Gathering& gathering) const;

private:
    const Derived& derived_;
    Diagram normal_;
};

/// The regions that the equations may be gathered into. The first are the derivation's own. Then there are, for each
/// axis, those that stream it wherever it is reduced, and last one for each equation. Where options say which kernels
/// there are, or what they stream, there are the own ones alone.
std::vector<std::vector<Region>> gatherings_of(const Derived& derived);

/// The same derivation with these kernels in each region. They may be none of its alternatives, and become one.
Derived with_kernels(const Derived& derived, const std::vector<std::vector<Gathering>>& kernels);

}  // namespace napkin
