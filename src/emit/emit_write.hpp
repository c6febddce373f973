#pragma once
// The writers: each appends the code of one kind of statement.
#include "emit/emit_frame.hpp"

namespace napkin::writers {

void write_load(const Frame& frame, Lines& out, const Step& step);
void write_store(const Frame& frame, Lines& out, VariableId variable, ScopeId scope);
/// The pointer to where the tile of a result goes that is written in place.
void write_target(const Frame& frame, Lines& out, VariableId variable, ScopeId scope);
void write_init(const Frame& frame, Lines& out, const Init& init);
/// The loop nest of a compute statement; inside of the panel's loop when it runs along the kernel's vector axis.
/// `before`: of the group before, a statement that runs in these loops.
void write_compute(const Frame& frame, Lines& out, const Step& step, const Step* before = nullptr);
/// The two values combined, and the prelude's name of what combines all of a vector.
std::string combined(ReduceOp op, const std::string& a, const std::string& b);
const char* horizontal(ReduceOp op);

/// C++ name of a storage type in the prelude.
std::string memory_type(DType type);
/// Σ of the axes' first values in the scope for an affine form, and the largest counterpart: text of its lowest and
/// highest value.
struct OwnRows;
std::string lowest(const Frame& frame, const Affine& form, ScopeId scope, const OwnRows* own = nullptr);
std::string highest(const Frame& frame, const Affine& form, ScopeId scope, const OwnRows* own = nullptr);
/// Whether these are of type Index; else they are of 64 bits.
bool fits_index(const Frame& frame, const Affine& form, ScopeId scope);
/// On a matrix unit, the rows of some of a block's warps in place of all: they begin so far behind the tile's first
/// one.
struct OwnRows {
    std::string first;
    std::int64_t count;
};

}  // namespace napkin::writers
