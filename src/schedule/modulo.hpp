#pragma once
// The modulo schedule of a loop's iteration: which statements run for the next iteration, and in which order a
// warpgroup issues all of them. It has the fastest pace, and of those of the same pace the fewest registers. All of it
// is data; nothing here knows what an operation computes.
//
// A warpgroup issues its operations one after the other. An operation of threads keeps it until it is done. For a
// product it computes its own part, if any, and issues the product. The tensor core runs products in the order of
// issue. What touches a product's result waits for it, and for all products before it. Warpgroups that share an SM all
// run the same order, with one iteration of each in every interval. In an interval, units have the work of all of them,
// whatever the order is. So the interval is least where the pace is (Simulator::interval).
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace napkin {

/// Clocks are those of one warpgroup that has its SM's units to itself.
struct ModuloOperation {
    std::string name;
    double own = 0;   ///< for which the warpgroup itself computes
    double unit = 0;  ///< of the tensor core, after that, while the warpgroup goes on; 0: threads do it all
    double latency = 0,
           /// for which its result is also waited for: alone, and where products are in flight meanwhile
        latency_beside = 0;
    bool is_product = false;
    bool outlasts_iteration = false;  ///< of a product: it may be in flight as the next iteration begins
    /// For a product: registers into which it rounds an operand that lives on.
    std::int64_t rounded = 0;
    bool gives_registers = false;  ///< its result takes over the registers of what dies as it is computed
    int bound_to = -1;             ///< the operation in whose iteration it runs; -1: any iteration may be its own
};

/// In the same warpgroup, `to` runs for an iteration after `from` has run for the iteration that is `distance` before
/// it.
struct ModuloDependence {
    int from = -1, to = -1, distance = 0;
    /// `to` waits until the product `from` is done. Else it is issued after `from`; threads are done when they go on.
    bool waits = false;
    /// It reads what `from` computes. Else one of them overwrites what the other still needs.
    bool is_read = false;
    std::string why = {};  ///< "it reads S", "S has one place"
};

/// What registers hold within an iteration, or from one iteration to the next.
struct ModuloValue {
    std::string name;
    std::int64_t registers = 0;
    bool is_carried = false;         ///< it is always alive
    bool is_halved_to_come = false;  ///< where it waits for the next iteration it is rounded to half of its registers
    std::vector<int> writers = {}, readers = {};
};

/// A tile that producer warps copy for each iteration, as soon as its readers have released the stage that it
/// overwrites.
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
    /// No order that runs ahead has a faster pace, whatever it overlaps: the least that the time model's record has
    /// measured.
    double least_measured = 0;
};

/// Operations in the order in which they are issued, and by how many iterations each runs ahead of the loop, by
/// operation. Where some run ahead, an iteration's products are all issued before threads compute anything. Then
/// warpgroups can ping-pong, and what is waited for in an iteration is of that iteration. Where none does, the order is
/// the program's, as any other takes as long.
struct ModuloOrder {
    std::vector<int> sequence, ahead;
    [[nodiscard]] bool runs_ahead() const;
    friend bool operator==(const ModuloOrder&, const ModuloOrder&) = default;
};

/// The program's own order, with nothing ahead.
ModuloOrder in_turn(const ModuloBody& body);
/// Products that depend on no other run one iteration ahead, with what is made of them. The other products run before
/// what is made of the first ones. The search begins with this order.
ModuloOrder products_ahead(const ModuloBody& body);

/// The dependences that the order breaks.
std::vector<int> broken_dependences(const ModuloBody& body, const ModuloOrder& order);
/// It breaks none, operations that are bound together run in one iteration, and products come first where something
/// runs ahead.
bool may_be(const ModuloBody& body, const ModuloOrder& order);
/// Clocks of an iteration of a warpgroup that runs this order and has its SM to itself.
double clocks_alone(const ModuloBody& body, const ModuloOrder& order);
/// The same in the time model. An order that runs ahead takes no less than `least_measured`. Any other takes its
/// operations one after the other. No order is faster than stages come round.
double pace_of(const ModuloBody& body, const ModuloOrder& order);
/// Clocks of the operations one after the other, with nothing beside them.
double clocks_one_by_one(const ModuloBody& body);
/// Registers that are alive at the operation where most are.
std::int64_t registers_of(const ModuloBody& body, const ModuloOrder& order);

/// Lower bounds: no order has a faster pace than any of these.
struct ModuloBounds {
    double issue = 0;        ///< the warpgroup's own part of all operations
    double unit = 0;         ///< products, one after the other
    double recurrence = 0;   ///< around the cycle of dependences that takes most clocks an iteration
    std::vector<int> cycle;  ///< its dependences, in order; none where no dependence closes one
    /// for the tile whose stages take longest to be asked for, filled, read once and released; divided by their number
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
    std::int64_t looked_at = 0;  ///< orders that were timed to their end
    /// Beginnings of orders that no end makes better, in time or registers.
    std::int64_t cut = 0;
    /// Orders and beginnings of orders that take more registers than there are.
    std::int64_t over_registers = 0;
    bool is_exhaustive = true;  ///< every order was looked at or cut; else the limit came first
    /// No order is faster: the pace is that of a bound, or all other orders were excluded.
    [[nodiscard]] bool is_proven() const;
};
/// The most beginnings of orders that a search looks at.
inline constexpr std::int64_t modulo_limit = 1 << 20;
/// The fastest order by branch and bound, and of those of its pace one with the fewest registers. Among equal orders it
/// is the first of these: the program's order, products_ahead, those of the search. `wants_runner_up`: the second-best
/// is looked for, too.
ModuloSearch search_order(const ModuloBody& body, std::int64_t limit = modulo_limit, bool wants_runner_up = false);

}  // namespace napkin
