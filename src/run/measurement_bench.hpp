#pragma once
// What all measurements of a machine share: its figures so far, the code that is timed, threads, and memory.
#include <cstdint>
#include <string>

#include "machine/machine.hpp"
#include "run/jit.hpp"
#include "run/memory.hpp"
#include "run/workers.hpp"

namespace napkin {

/// So many repetitions on so many values of the memory.
using TimedCode = void (*)(std::int64_t repetitions, void* memory, std::int64_t count);

struct MeasurementBench {
    /// Memory for what no cache holds. Throws std::bad_alloc where there is none.
    MeasurementBench(Machine machine, const JitModule& module);

    [[nodiscard]] double cores() const { return machine.cores.value; }
    [[nodiscard]] int threads() const { return static_cast<int>(machine.num_cores()); }
    [[nodiscard]] Figure measured(double value, const std::string& what) const;
    [[nodiscard]] TimedCode kernel(const std::string& name) const {
        return reinterpret_cast<TimedCode>(module.symbol(name));
    }
    /// Bytes a core that stay in a level and in none below it.
    [[nodiscard]] double footprint(std::size_t l) const;
    /// Numbers between 1/2 and 1: products of which neither grow nor vanish.
    template <class T>
    void fill() {
        T* const to = static_cast<T*>(memory.get());
        const std::int64_t count = values * static_cast<std::int64_t>(sizeof(float)) / static_cast<std::int64_t>(sizeof(T));
        for (std::int64_t i = 0; i < count; ++i) to[i] = T(0.5) + T(i % 61) / T(128);
    }

    Machine machine;
    const JitModule& module;
    Workers workers;
    std::string day;
    Memory memory;
    std::int64_t values = 0;  ///< that the memory holds, f32
};

}  // namespace napkin
