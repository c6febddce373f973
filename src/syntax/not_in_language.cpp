#include "syntax/not_in_language.hpp"
#include "support/ranges.hpp"

#include <array>

namespace napkin {
namespace {

struct Entry {
    std::string_view name;
    const NotInLanguage* meaning;
};

constexpr NotInLanguage top_k{"selecting the k largest", "argmax(x) S[q, x] is the place of the largest"},
    sorting{"sorting", "max, min, argmax and argmin find extrema"},
    scan{"a scan, of which every element depends on the one before,",
         "a running sum is a sum under a mask: sum(j) where(j <= i, X[j], 0)"},
    random{"a random number", "give random numbers as an argument"},
    control{"control flow", "a choice for each element is where(condition, a, b)"},
    linear_algebra{"a decomposition or an inverse of a matrix", "compute it outside and give it as an argument"};

constexpr std::array entries{
    Entry{"topk", &top_k},
    Entry{"top_k", &top_k},
    Entry{"kthvalue", &top_k},
    Entry{"sort", &sorting},
    Entry{"argsort", &sorting},
    Entry{"median", &sorting},
    Entry{"quantile", &sorting},
    Entry{"percentile", &sorting},
    Entry{"unique", &sorting},
    Entry{"cumsum", &scan},
    Entry{"cumprod", &scan},
    Entry{"cummax", &scan},
    Entry{"scan", &scan},
    Entry{"associative_scan", &scan},
    Entry{"rand", &random},
    Entry{"randn", &random},
    Entry{"random", &random},
    Entry{"dropout", &random},
    Entry{"bernoulli", &random},
    Entry{"multinomial", &random},
    Entry{"if", &control},
    Entry{"for", &control},
    Entry{"while", &control},
    Entry{"cond", &control},
    Entry{"inverse", &linear_algebra},
    Entry{"inv", &linear_algebra},
    Entry{"svd", &linear_algebra},
    Entry{"eig", &linear_algebra},
    Entry{"eigh", &linear_algebra},
    Entry{"qr", &linear_algebra},
    Entry{"cholesky", &linear_algebra},
    Entry{"solve", &linear_algebra},
    Entry{"det", &linear_algebra},
};

}  // namespace

const NotInLanguage* find_not_in_language(std::string_view name) {
    const auto at = find_if(entries, [&](const Entry& e) { return e.name == name; });
    return at == entries.end() ? nullptr : at->meaning;
}

}  // namespace napkin
