#pragma once
// The JSON class, compiled once for whoever uses it: its members are in json.cpp.
#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
