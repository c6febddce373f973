#pragma once
// Seeds spread over processes: a piece that crashes, hangs or runs out of memory costs one seed and is said.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace napkin::campaign {

struct Failure {
    std::uint64_t seed;
    std::string what;  ///< the message, the text
};

/// What a process says of its piece.
class Piece {
public:
    virtual ~Piece() = default;
    /// The seeds from here on are being worked on; where the process dies, the first is the one that is named.
    virtual void begins(std::uint64_t seed) = 0;
    virtual void done(std::uint64_t programs, std::uint64_t kernels) = 0;
    virtual void failed(const Failure& failure) = 0;
};

struct Spread {
    std::uint64_t first = 0, last = 0;  ///< seeds
    std::uint64_t seeds_a_piece = 100;
    int jobs = 1;
    int seconds_a_seed = 120;  ///< a process that says nothing for so long is ended
};

struct Outcome {
    std::uint64_t programs = 0, kernels = 0;
    std::vector<std::uint64_t> failed;  ///< seeds, in order
};

/// Works on the pieces in processes of their own and prints failures as they come.
Outcome run(const Spread& spread, const std::function<void(std::uint64_t first, std::uint64_t last, Piece&)>& work);

}  // namespace napkin::campaign
