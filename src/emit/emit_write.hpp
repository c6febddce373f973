#pragma once
// The writers: each appends the code of one kind of statement.
#include "emit/emit_frame.hpp"

namespace napkin::writers {

void write_load(const Frame& frame, Lines& out, const Step& step);
void write_store(const Frame& frame, Lines& out, VariableId variable, ScopeId scope);
/// The pointer to the place of a result's tile that is written in place.
/// The last position at which a tile of a view may begin without leaving its array.
std::string last_view_text(const Frame& frame, VariableId variable);
/// How far neighbours along a dimension of the variable's array, which has no gaps, are apart in memory.
std::string stride_text(const Frame& frame, VariableId variable, std::size_t dimension);
/// For a variable in lanes: the name by which the kernel knows where its values lie in memory.
std::string lanes_in_memory(const Frame& frame, VariableId variable);
std::string lanes_type(const Frame& frame, VariableId variable);
void write_target(const Frame& frame, Lines& out, VariableId variable, ScopeId scope);
void write_init(const Frame& frame, Lines& out, const Init& init);
/// The type of an accumulator of a variable in accumulators, and "[rows][vectors]" of each who adds up; "": it has one.
std::string accumulator_type(const Frame& frame, VariableId variable);
std::string accumulator_extents(const Frame& frame, VariableId variable);
/// The loop nest of a compute statement. It stands inside of the panel's loop if it runs along the kernel's vector
/// axis. A statement `before` of the previous group runs in these loops, too.
void write_compute(const Frame& frame, Lines& out, const Step& step, const Step* before = nullptr);
void write_first_sums(const Frame& frame, Lines& out, const Init& init);
/// Stores the sums of a step that adds up in accumulators (schedule/accumulators.hpp).
void write_sums_to_memory(const Frame& frame, Lines& out, const Step& step);
/// The two values combined, and the prelude's name of the function that combines all lanes of a vector.
std::string combined(ReduceOp op, const std::string& a, const std::string& b);
const char* horizontal(ReduceOp op);

/// C++ name of a storage type in the prelude.
std::string memory_type(DType type);
/// Text of the lowest and of the highest value of an affine form over the scope's tile.
struct OwnRows;
std::string lowest(const Frame& frame, const Affine& form, ScopeId scope, const OwnRows* own = nullptr);
std::string highest(const Frame& frame, const Affine& form, ScopeId scope, const OwnRows* own = nullptr);
/// Whether these texts are of type Index; else they are of 64 bits.
bool fits_index(const Frame& frame, const Affine& form, ScopeId scope);
/// On the tensor cores, the rows of some of a block's warps in place of all rows. They begin so far behind the tile's
/// first one.
struct OwnRows {
    std::string first;
    std::int64_t count;
};

}  // namespace napkin::writers
