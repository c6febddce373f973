#pragma once
// Schedules as text and back.
#include <array>
#include <cctype>
#include <random>
#include <sstream>
#include <string>

#include "schedule/schedule.hpp"
#include "support/result.hpp"
#include "syntax/parse.hpp"

namespace napkin {

/// The kind of choice that the word stands for. Pre: there is one.
inline ChoiceKind choice_kind(std::string_view word) {
    for (std::size_t kind = 0; kind < std::size(choice_fields); ++kind)
        if (choice_fields[kind].name == word) return static_cast<ChoiceKind>(kind);
    throw InternalError("no choice has the name " + std::string(word));
}

/// The fields without their reasons, all by hand: what a file says of them.
inline KernelSchedule as_file(KernelSchedule s) {
    for (auto* sizes : {&s.group, &s.stream, &s.subloop})
        for (auto& [axis, choice] : *sizes) choice = {choice.value, "", true};
    if (s.split.value > 1) s.split = {s.split.value, "", true};
    s.threads = {s.threads.value, "", true}, s.rows = {s.rows.value, "", true};
    s.vector_axis = {s.vector_axis.value, "", true}, s.panel_vectors.by_user = true;
    for (Atom& a : s.atoms) a.by_user = true;
    for (Place& p : s.places) p.by_user = true;
    for (TilePipelining& d : s.tile_pipelining) d.groups = {d.groups.value, "", true};
    for (Prefetch& p : s.prefetches) p.ahead = {p.ahead.value, "", true};
    if (s.warps.value > 0) s.warps = {s.warps.value, "", true}, s.blocks = {s.blocks.value, "", true};
    return s;
}

inline Result<std::vector<KernelSchedule>> schedules_in(const std::string& text, const TileProgram& program) {
    const auto items = parse_schedule_file(std::make_shared<const Source>(Source{"a.schedule", text}));
    if (!items) return items.errors();
    return schedule_overrides(*items, program);
}

/// A printed plan with some of its lines and clauses left out, and some of its numbers and words changed.
inline std::string tampered(const std::string& text, std::mt19937_64& random) {
    std::istringstream lines(text);
    std::string out, line;
    while (std::getline(lines, line)) {
        const bool is_plan = line.starts_with("  ");
        if (is_plan && random() % 5 == 0) continue;
        for (std::size_t i = 1; i < line.size(); ++i)
            if (line[i - 1] == ' ' && std::isdigit(line[i]) != 0 && random() % 32 == 0)
                line[i] = static_cast<char>('0' + random() % 10);
        constexpr std::array<std::string_view, 4> words{"buffer", "view", "packed", "panel"};
        for (const std::string_view word : words)
            if (const auto at = line.find(word);
                is_plan && line.starts_with("  place") && at != std::string::npos && random() % 16 == 0)
                line.replace(at, word.size(), words[random() % words.size()]);
        for (const std::string_view clause : {", follows", ", run", " inner", " across", ", nontemporal"})
            if (const auto at = line.find(clause);
                line.starts_with("  atom") && at != std::string::npos && random() % 16 == 0)
                line.erase(at, clause == ", run" ? std::string::npos : clause.size());
        out += line + "\n";
    }
    return out;
}

}  // namespace napkin
