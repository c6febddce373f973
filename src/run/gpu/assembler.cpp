#include "run/gpu/assembler.hpp"
#include "support/ranges.hpp"

#include <fmt/format.h>

#include <regex>
#include <sstream>

namespace napkin::gpu {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
}

/// The function that a remark names as "in function 'f'" or "in the function 'f'"; empty where it names none.
std::string named_in(const std::string& remark) {
    static const std::regex function("function '([^']+)'");
    std::smatch found;
    return std::regex_search(remark, found, function) ? found[1].str() : "";
}

}  // namespace

std::vector<AssemblerReport> reports_in(const std::string& log) {
    static const std::regex entry("Compiling entry function '([^']+)'"), registers("Used ([0-9]+) registers"),
        barriers("used ([0-9]+) barriers"), shared("([0-9]+) bytes smem"),
        stack("([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads");
    std::vector<AssemblerReport> out;
    for (const std::string& line : lines_of(log)) {
        std::smatch found;
        if (std::regex_search(line, found, entry)) {
            out.emplace_back();
            out.back().kernel = found[1];
        }
        if (out.empty()) continue;
        AssemblerReport& report = out.back();
        if (std::regex_search(line, found, registers)) report.registers = std::stoi(found[1]);
        if (std::regex_search(line, found, barriers)) report.barriers = std::stoi(found[1]);
        if (std::regex_search(line, found, shared)) report.shared_bytes = std::stoll(found[1]);
        if (std::regex_search(line, found, stack)) {
            // A function that is called has a line of its own.
            report.stack_bytes = std::max<std::int64_t>(report.stack_bytes, std::stoll(found[1]));
            report.spill_store_bytes += std::stoll(found[2]);
            report.spill_load_bytes += std::stoll(found[3]);
        }
    }
    for (const std::string& remark : remarks_in(log)) {
        const std::string function = named_in(remark);
        const bool known = any_of(out, [&](const auto& r) { return r.kernel == function; });
        for (AssemblerReport& report : out)
            if (!known || report.kernel == function) report.remarks.push_back(remark);
    }
    return out;
}

std::vector<std::string> remarks_in(const std::string& log) {
    static const std::regex code("C75[0-2][0-9]");
    std::vector<std::string> out;
    for (const std::string& line : lines_of(log))
        if (std::regex_search(line, code)) out.push_back(line);
    return out;
}

/// The report does not say where registers are spilled. So few bytes of a thread are what is kept through a kernel's
/// main loop, such as a group's position, or are stored and loaded at its end. Measured on one H200 on 2026-11-24:
/// attention of 256 rows at d = 64 with 20 bytes, four accesses of which are in the loop, takes as long as with none.
constexpr std::int64_t tolerated_spill_bytes = 32;

std::vector<std::string> refusals(const AssemblerReport& report) {
    static const std::regex serialised(
        "wgmma\\.mma_async instructions are serialized( due to (.*?))?( in (the )?function '.*)?$"),
        ignored("'setmaxnreg' ignored(; (.*?))?\\.?$");
    std::vector<std::string> out;
    const auto add = [&](const std::string& what, const std::string& why) {
        const std::string clause = what + (why.empty() ? "" : ": " + why);
        if (!contains(out, clause)) out.push_back(clause);
    };
    for (const std::string& remark : report.remarks) {
        std::smatch found;
        if (std::regex_search(remark, found, serialised))
            add("its wgmma instructions run one after the other", found[2]);
        if (std::regex_search(remark, found, ignored)) add("its setmaxnreg is ignored", found[2]);
    }
    if (std::max(report.spill_store_bytes, report.spill_load_bytes) > tolerated_spill_bytes)
        out.push_back(fmt::format("it spills registers: {} bytes a thread are stored and {} loaded",
                                  report.spill_store_bytes, report.spill_load_bytes));
    else if (report.stack_bytes > std::max(report.spill_store_bytes, report.spill_load_bytes))
        out.push_back(fmt::format("it keeps {} bytes a thread in local memory", report.stack_bytes));
    return out;
}

bool keeps_memory_alone(const AssemblerReport& report) {
    return report.stack_bytes > 0 && report.spill_store_bytes == 0 && report.spill_load_bytes == 0 &&
           refusals(report).size() == 1;
}

}  // namespace napkin::gpu
