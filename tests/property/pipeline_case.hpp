#pragma once
// One diagram taken through every room up to the tile program, everything checked against its definition.
#include <cstdint>
#include <string>
#include <vector>

#include "check/probe.hpp"
#include "derive/derive.hpp"
#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"

namespace napkin::pipeline {

struct Case {
    Diagram diagram;
    Extents extents;
    PartitionSizes sizes;
    Form form = Form::unscaled;
    bool fuse = true;
    Rewriting rewriting = {};
    Probe probe = Probe::normal;  ///< the kind of the inputs' values
    std::uint64_t seed = 0;       ///< of them
};

/// None of the rewritings that a plan chooses among, or one of them.
Rewriting random_rewriting(std::uint64_t seed);

/// Random extents, sizes and options for a diagram; the same seed gives the same case.
Case make_case(const Diagram& diagram, std::uint64_t seed, Probe probe = Probe::normal);

/// The diagram, the sizes and the options, for the message of a failing test.
std::string describe(const Case& c);

/// What was seen on the way, so that a test can say how much it covered.
struct Coverage {
    std::int64_t kernels = 0, fused_kernels = 0, loops = 0, states = 0, merges = 0, steps = 0, chunks_skipped = 0,
                 halos = 0, subloops = 0, parts = 0, exact_letters = 0, bounding_letters = 0;
};

/// Runs the case through the whole pipeline. Returns "" if all of this holds, else what does not:
/// - every derivation step, the derived form, its merged streams and the tile program give what the definition gives;
/// - all verifiers are silent, and the interpreter's counts are the model's;
/// - H, M and work in letters are these counts or, where sizes do not divide or chunks are skipped, no less;
/// - the printed program reads back.
/// All of it is tried with reductions cut by subloops and streams cut into parts too. Whatever is thrown is a failure
/// too.
std::string failure_of(const Case& c, Coverage& seen);

/// A failing case made small, as a program that can be run, and how it fails. Sizes come from the seed and change as
/// axes go, so a few seeds are tried for each variant.
std::string made_small(const Case& c);

}  // namespace napkin::pipeline
