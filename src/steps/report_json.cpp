#include "steps/report.hpp"
#include "support/json.hpp"

namespace napkin {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view held_names[] = {"memory", "fragments", "threads"};

Json steps_of(const StepReport& report, const KernelSteps& k) {
    Json out{{"name", k.kernel},
             {"warpgroups", k.num_warpgroups},
             {"warpgroup_threads", k.warpgroup_threads},
             {"schedule", k.schedule}};
    for (const CutSize& size : k.sizes) out["sizes"][to_string(size, report.axes)] = size.size;
    for (const PaperStep& step : k.steps) {
        Json changes = Json::array();
        for (const StepChange& c : step.changes) changes.push_back({{"what", c.what}, {"why", c.why}});
        out["steps"].push_back({{"name", step.name},
                                {"changes", std::move(changes)},
                                {"program", step.program},
                                {"validation", step.validation},
                                {"fault", step.fault},
                                {"unkept", step.unkept}});
    }
    out["divisors"] = Json::array();
    for (const SizeDivisor& d : k.divisors.constraints)
        out["divisors"].push_back({{"size", to_string(d.size, report.axes)}, {"value", d.value}, {"cause", d.cause}});
    return out;
}

void add_tables(const KernelSteps& k, Json& out) {
    out["configuration"] = Json::array();
    for (const ConfigurationRow& r : k.configuration)
        out["configuration"].push_back({{"variable", r.places.front().front()},
                                        {"places", r.places},
                                        {"size", r.size},
                                        {"values", r.values},
                                        {"type", name(r.type)},
                                        {"held", held_names[at(r.at)]},
                                        {"stages", r.stages},
                                        {"block_bytes", r.block_bytes},
                                        {"warpgroup_bytes", r.warpgroup_bytes}});
    for (const LevelBudget& b : k.budgets)
        out["budgets"].push_back({{"level", b.level},
                                  {"capacity_bytes", b.capacity_bytes},
                                  {"block_bytes", b.block_bytes},
                                  {"warpgroup_bytes", b.warpgroup_bytes},
                                  {"warpgroups", b.fit()},
                                  {"excess_block_bytes", b.excess_block},
                                  {"excess_warpgroup_bytes", b.excess_warpgroup},
                                  {"excess_thread_bytes", b.excess_thread}});
    const RegisterEstimate& r = k.registers;
    out["registers"] = {
        {"accumulators", r.accumulators},         {"values", r.values},           {"addresses", r.addresses},
        {"addresses_source", r.addresses_reason}, {"total", r.total()},           {"limit", r.limit},
        {"limit_source", r.limit_reason},         {"spills", r.total() > r.limit}};
    const Throughput& t = k.throughput;
    out["throughput"] = {{"rows", Json::array()},
                         {"units", Json::array()},
                         {"lower_bound_clocks", t.lower_bound()},
                         {"tensor_flop_per_s", t.tensor_flop_per_s},
                         {"rows_at_least", Json::object()}};
    for (const ThroughputRow& row : t.rows)
        out["throughput"]["rows"].push_back({{"statement", row.statement},
                                             {"unit", row.unit},
                                             {"type", name(row.type)},
                                             {"operations", row.operations},
                                             {"per_clock", row.per_clock},
                                             {"clocks", row.clocks()}});
    for (const UnitTotal& u : t.units)
        out["throughput"]["units"].push_back({{"unit", u.unit},
                                              {"operations", u.operations},
                                              {"clocks", u.clocks},
                                              {"overhead", u.overhead.share},
                                              {"overhead_source", u.overhead.source},
                                              {"clocks_with_overhead", u.with_overhead()}});
    out["throughput"]["overlap"] = {{"tensor_clocks", t.overlap.tensor_clocks},
                                    {"special_clocks", t.overlap.special_clocks},
                                    {"between_groups", t.overlap.between_groups},
                                    {"within_group", t.overlap.within_group}};
    for (const RowFloor& f : t.floors) out["throughput"]["rows_at_least"][f.level] = f.rows;
}

}  // namespace

nlohmann::ordered_json steps_json(const StepReport& report) {
    Json out{{"diagram", report.diagram}, {"machine", report.machine}, {"kernels", Json::array()}};
    if (report.expected_s) out["seconds"] = *report.expected_s;
    if (!report.no_plan.empty()) out["no_plan"] = report.no_plan;
    for (const KernelSteps& k : report.kernels) {
        Json kernel = steps_of(report, k);
        add_tables(k, kernel);
        kernel["instructions"] = k.instructions;
        kernel["steady_state"] = {{"seconds", k.steady.seconds},
                                  {"group_clocks", k.steady.group_clocks},
                                  {"groups", k.steady.groups},
                                  {"tensor_flop_per_s", k.steady.tensor_flop_per_s},
                                  {"bound_by", k.steady.bound_by}};
        kernel["order_of_issue"] = k.order;
        kernel["charts"] = Json::array();
        for (const StreamChart& chart : k.charts)
            kernel["charts"].push_back(chart_json(chart, report.axes[at(chart.stream)]));
        out["kernels"].push_back(std::move(kernel));
    }
    return out;
}

nlohmann::ordered_json steps_json(const std::vector<StepsOnMachine>& machines) {
    Json out{{"machines", Json::array()}};
    for (const StepsOnMachine& of : machines) {
        Json entry{{"machine", of.machine}, {"rates", of.rates.text()}};
        of.report ? entry.update(steps_json(*of.report)) : entry.update({{"error", of.why.message}});
        out["machines"].push_back(std::move(entry));
    }
    return out;
}

}  // namespace napkin
