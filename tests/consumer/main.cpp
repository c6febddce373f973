// Uses napkin as an installed library, through its public headers only.
#include <napkin/napkin.hpp>

int main() {}
