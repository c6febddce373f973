#pragma once
// The values of one array, row-major: real numbers in double precision, or, where the array's type is an integer,
// 64-bit integers, which doubles would not hold exactly.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <variant>
#include <vector>

#include "algebra/number.hpp"
#include "support/dtype.hpp"

namespace napkin {

class Column {
public:
    Column() = default;
    Column(std::vector<double> values) : cells_(std::move(values)) {}
    Column(std::vector<std::int64_t> values) : cells_(std::move(values)) {}
    Column(std::initializer_list<double> values) : cells_(std::vector<double>(values)) {}
    /// Makes so many cells, as the type wants them: all hold `value`.
    Column(DType type, std::size_t count, const Number& value);

    [[nodiscard]] bool is_whole() const { return cells_.index() == 1; }
    [[nodiscard]] std::size_t size() const { return is_whole() ? wholes().size() : reals().size(); }
    [[nodiscard]] bool empty() const { return size() == 0; }
    void clear() { cells_ = std::vector<double>(); }

    /// The cells. Pre: is_whole() says that these are the ones.
    [[nodiscard]] std::vector<double>& reals() { return std::get<0>(cells_); }
    [[nodiscard]] const std::vector<double>& reals() const { return std::get<0>(cells_); }
    [[nodiscard]] std::vector<std::int64_t>& wholes() { return std::get<1>(cells_); }
    [[nodiscard]] const std::vector<std::int64_t>& wholes() const { return std::get<1>(cells_); }

    /// The cell as a real number: the nearest double of an integer.
    double operator[](std::size_t i) const { return is_whole() ? static_cast<double>(wholes()[i]) : reals()[i]; }
    /// Goes over the cells as real numbers.
    class Iterator {
    public:
        using value_type = double;
        using difference_type = std::ptrdiff_t;
        Iterator() = default;
        Iterator(const Column* column, std::size_t place) : column_(column), place_(place) {}
        double operator*() const { return (*column_)[place_]; }
        Iterator& operator++() {
            ++place_;
            return *this;
        }
        Iterator operator++(int) { return {column_, place_++}; }
        friend bool operator==(const Iterator&, const Iterator&) = default;

    private:
        const Column* column_ = nullptr;
        std::size_t place_ = 0;
    };
    [[nodiscard]] Iterator begin() const { return {this, 0}; }
    [[nodiscard]] Iterator end() const { return {this, size()}; }
    [[nodiscard]] Number at(std::size_t i) const {
        return is_whole() ? Number::whole(Kind::i64, wholes()[i]) : Number::real(reals()[i]);
    }
    /// So many cells that show when they are used: NaN, and in an integer array a number that no program is likely to
    /// make.
    static constexpr std::int64_t unset_whole = 0x2AAAAAAAAAAAAAA;
    static Column unset(DType type, std::size_t count);

    /// Into the cell: an integer cell takes a real number truncated, a real cell the nearest double of an integer.
    void set(std::size_t i, const Number& value) {
        if (is_whole())
            wholes()[i] = value.as_whole(Kind::i64);
        else
            reals()[i] = value.as_real();
    }
    /// The values in the cells that the type wants, integers within its range.
    [[nodiscard]] Column in(DType type) const;
    [[nodiscard]] std::vector<double> to_doubles() const;

    /// Equal cells of one kind; NaN differs from itself.
    friend bool operator==(const Column&, const Column&) = default;

private:
    std::variant<std::vector<double>, std::vector<std::int64_t>> cells_;
};

}  // namespace napkin
