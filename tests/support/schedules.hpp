#pragma once
// Schedules as text and back.
#include "schedule/schedule.hpp"
#include "syntax/parse.hpp"

namespace napkin {

/// The fields without their reasons, all by hand: what a file says of them.
inline KernelSchedule as_file(KernelSchedule s) {
    for (auto* sizes : {&s.group, &s.stream, &s.subloop})
        for (auto& [axis, choice] : *sizes) choice = {choice.value, "", true};
    if (s.split.value > 1) s.split = {s.split.value, "", true};
    s.threads = {s.threads.value, "", true}, s.rows = {s.rows.value, "", true};
    s.vector_axis_reason = "by hand", s.vector_axis_by_hand = s.panel_by_hand = true;
    for (Atom& a : s.atoms) a.by_hand = true;
    for (Place& p : s.places) p.by_hand = true;
    for (Deferral& d : s.deferrals) d.groups = {d.groups.value, "", true};
    for (Prefetch& p : s.prefetches) p.ahead = {p.ahead.value, "", true};
    if (s.warps.value > 0) s.warps = {s.warps.value, "", true}, s.blocks = {s.blocks.value, "", true};
    return s;
}

inline Result<std::vector<KernelSchedule>> schedules_in(const std::string& text, const TileProgram& program) {
    const auto items = parse_schedule_file(std::make_shared<const Source>(Source{"a.schedule", text}));
    if (!items) return items.errors();
    return schedules_by_hand(*items, program);
}

}  // namespace napkin
