#pragma once
// The modulo schedule of a loop's turn: which statements run for the turn to come, and in which order a warpgroup
// issues all of them, so that its pace is the fastest there is, and of those of the same pace the one with the fewest
// registers. All of it is data; nothing here knows what an operation computes.
//
// A warpgroup issues its operations one after the other. Those of threads keep it until they are done; a product it
// computes its own part of, if any, and sets going, and the matrix unit runs products in the order in which they are
// set going. What touches a product's result waits for it, and for all before it. Warpgroups that share a core all run
// the same order, a turn of each in every interval, and units have the work of all of them in it, whatever the order
// is: so the interval is least where the pace is (Simulator::interval).
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace napkin {

/// Clocks are those of one warpgroup that has its core's units for itself.
struct ModuloOperation {
    std::string name;
    double own = 0;   ///< for which the warpgroup itself computes
    double unit = 0;  ///< of the matrix unit, after that, while the warpgroup goes on; 0: threads do it all
    double latency = 0,
           /// for which its result is waited for besides: alone, and where products are under way meanwhile
        latency_beside = 0;
    bool is_product = false;
    bool outlasts_iteration = false;  ///< of a product: it may be under way as the next turn begins
    std::int64_t rounded = 0;         ///< of a product: registers into which an operand is rounded that lives on
    bool gives_registers = false;     ///< its result takes over the registers of what dies as it is computed
    int bound_to = -1;                ///< the operation that it runs in the same turn as; -1: any turn may be its own
};

/// In the same warpgroup, `to` runs for a turn after `from` has run for that of `distance` turns before.
struct ModuloDependence {
    int from = -1, to = -1, distance = 0;
    /// until the product `from` is done; else it is issued after `from`, and threads are done when they are
    bool waits = false;
    bool is_read = false;  ///< it reads what `from` computes; else one of them writes over what the other has use for
    std::string why = {};  ///< "it reads S", "S has one place"
};

/// What registers hold of a turn, or from turn to turn.
struct ModuloValue {
    std::string name;
    std::int64_t registers = 0;
    bool is_carried = false;         ///< it is always alive
    bool is_halved_to_come = false;  ///< where it waits for the turn to come it is rounded to half of them
    std::vector<int> writers = {}, readers = {};
};

/// A tile that a role of its own brings for each turn, as soon as the stage that it overwrites is free of its readers.
struct ModuloCopy {
    std::string name;
    double clocks = 0;  ///< from asking for it until it is there
    int stages = 1;
    std::vector<int> readers = {};
};

struct ModuloBody {
    std::vector<ModuloOperation> operations;  ///< in the order of the program
    std::vector<ModuloDependence> dependences;
    std::vector<ModuloValue> values;
    std::vector<ModuloCopy> copies;
    std::int64_t registers = std::numeric_limits<std::int64_t>::max();  ///< that a thread has for values
    /// No pace of an order that runs ahead is faster, whatever it overlaps: what the time model's record has measured.
    double least_measured = 0;
};

/// Operations in the order in which they are issued, and by how many turns each runs ahead of the loop, by operation.
/// Where some run ahead, a turn's products are all set going before threads compute anything: then warpgroups can take
/// turns at the matrix unit, and what is waited for in a turn is of that turn. Where none does, the order is the
/// program's, as any other takes as long.
struct ModuloOrder {
    std::vector<int> sequence, ahead;
    [[nodiscard]] bool runs_ahead() const;
    friend bool operator==(const ModuloOrder&, const ModuloOrder&) = default;
};

/// The program's own.
ModuloOrder in_turn(const ModuloBody& body);
/// Products that depend on none run a turn ahead with what is made of them, and the others before that: what the search
/// begins with.
ModuloOrder products_ahead(const ModuloBody& body);

/// The dependences that the order breaks.
std::vector<int> broken_dependences(const ModuloBody& body, const ModuloOrder& order);
/// It breaks none, what is bound together runs in one turn, and products come first where something runs ahead.
bool may_be(const ModuloBody& body, const ModuloOrder& order);
/// Clocks of a turn of a warpgroup that runs this order and has its core for itself.
double clocks_alone(const ModuloBody& body, const ModuloOrder& order);
/// The same of the order in the time model: no less than `least_measured` where it runs ahead, one after the other
/// where it does not, and no faster than stages come round.
double pace_of(const ModuloBody& body, const ModuloOrder& order);
/// One after the other, with nothing beside it.
double clocks_one_by_one(const ModuloBody& body);
/// Registers alive at the operation at which most are.
std::int64_t registers_of(const ModuloBody& body, const ModuloOrder& order);

/// No order has a faster pace than any of these.
struct ModuloBounds {
    double issue = 0;        ///< the warpgroup's own part of all operations
    double unit = 0;         ///< products, one after the other
    double recurrence = 0;   ///< around the cycle of dependences that takes longest for each turn that it goes through
    std::vector<int> cycle;  ///< its dependences, in order; none where no dependence closes one
    /// the tile whose stages take longest to be asked for, filled, read once and freed, for each of them
    double stages = 0;
    int copy = -1;  ///< which one that is
    double measured = 0;
    [[nodiscard]] double pace() const;
};
ModuloBounds bounds_of(const ModuloBody& body);

struct ModuloChoice {
    ModuloOrder order;
    double pace = std::numeric_limits<double>::infinity();
    std::int64_t registers = 0;
};
struct ModuloSearch {
    ModuloChoice best, runner_up;  ///< the runner-up has another pace or other registers; infinite where there is none
    ModuloBounds bounds;
    std::int64_t looked_at = 0;       ///< orders that were timed to their end
    std::int64_t cut = 0;             ///< beginnings of orders that no end makes better, in time or registers
    std::int64_t over_registers = 0;  ///< of those, the ones that take more registers than there are
    bool is_exhaustive = true;        ///< every order was looked at or cut; else the limit came first
    /// No order is faster: the pace is that of a bound, or all others were excluded.
    [[nodiscard]] bool is_proven() const;
};
/// Beginnings of orders that a search looks at, at most.
inline constexpr std::int64_t modulo_limit = 1 << 20;
/// The fastest order by branch and bound, and of those of its pace the one with the fewest registers; of several the
/// one that the search comes to first, which is products_ahead where that is one of them. `wants_runner_up`: what comes
/// second is looked for, too.
ModuloSearch search_order(const ModuloBody& body, std::int64_t limit = modulo_limit, bool wants_runner_up = false);

}  // namespace napkin
