#include "support/rounded.hpp"

#include <algorithm>
#include <memory>

#include "algebra/number.hpp"

namespace napkin {

namespace {

class KernelRounding {
public:
    explicit KernelRounding(const TileKernel& kernel)
        : kinds_([&kernel](ArrayId read) { return kernel.variables[as_variable(read)].memory_type; }) {}

    std::vector<TileStatement> body(const std::vector<TileStatement>& statements) {
        std::vector<TileStatement> out;
        for (const TileStatement& s : statements) {
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
                TileLoop other = **loop;
                other.body = body((*loop)->body);
                out.emplace_back(std::make_shared<const TileLoop>(std::move(other)));
            } else if (const auto* compute = std::get_if<Compute>(&s)) {
                Compute other = *compute;
                other.body = expression(compute->body);
                if (compute->carry) other.carry = expression(compute->carry);
                out.emplace_back(std::move(other));
            } else {
                out.push_back(s);
            }
        }
        return out;
    }

private:
    Expr expression(const Expr& root) {
        return transform(root, [&](const Expr& e) {
            const bool rounds = as<Read>(e) || as<Unary>(e) || as<Binary>(e);
            return rounds && kinds_(e) == Kind::real ? cast(DType::f32, e) : e;
        });
    }

    Kinds kinds_;
};

}  // namespace

SizedProgram rounded(const SizedProgram& program) {
    SizedProgram out = program;
    for (TileKernel& kernel : out.kernels) {
        const bool is_double = std::any_of(kernel.variables.begin(), kernel.variables.end(), [&](const Variable& v) {
            return v.memory_type == DType::f64 || program.diagram.array(v.array).type == DType::f64;
        });
        if (!is_double) kernel.body = KernelRounding(kernel).body(kernel.body);
    }
    return out;
}

}  // namespace napkin
