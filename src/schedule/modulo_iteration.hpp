#pragma once
// An iteration of a modulo schedule as its operations are issued, and the registers that are alive meanwhile.
#include <cstdint>
#include <vector>

#include "schedule/modulo.hpp"

namespace napkin {

/// Which operations wait for which products: those that a dependence makes wait, whichever iteration it is to.
class AccessedResults {
public:
    explicit AccessedResults(const ModuloBody& body);
    [[nodiscard]] bool touches(int operation, int product) const {
        return accessed_[static_cast<std::size_t>(operation) * num_ + static_cast<std::size_t>(product)];
    }

private:
    std::size_t num_;
    std::vector<bool> accessed_;
};

/// Clocks of a warpgroup alone on its SM. Waits are those that wait_groups.cpp puts between statements.
struct ModuloIteration {
    double now = 0;        ///< it issues nothing before this clock
    double unit_free = 0;  ///< the tensor core has nothing of it after this clock

    void issue(const ModuloBody& body, const AccessedResults& touched, int operation, int ahead);
    /// Waits for products that may not be in flight as the next iteration begins.
    void end(const ModuloBody& body);
    /// What is in flight, and for how long from now. Where this is alike, the next iteration goes like the one before,
    /// but for the clock.
    [[nodiscard]] std::vector<double> state() const;

private:
    struct UnderWay {
        int product, ahead;
        double done;
    };
    void wait_for(std::size_t count);
    std::vector<UnderWay> under_way_;  ///< in the order of issue
};

/// Values alive at each operation of an order, as fragment_registers.hpp counts them. They follow from the operations
/// that the iteration has issued so far.
class AliveValues {
public:
    AliveValues(const ModuloBody& body, const std::vector<int>& ahead)
        : body_(body), ahead_(ahead), placed_(ahead.size()) {}
    /// Registers that are alive while `operation` runs as the next one.
    [[nodiscard]] std::int64_t at_operation(int operation) const;
    void place(int operation) { placed_[static_cast<std::size_t>(operation)] = true; }
    void take_back(int operation) { placed_[static_cast<std::size_t>(operation)] = false; }

private:
    [[nodiscard]] std::int64_t registers(const ModuloValue& value, int operation) const;
    const ModuloBody& body_;
    const std::vector<int>& ahead_;
    std::vector<bool> placed_;
};

}  // namespace napkin
