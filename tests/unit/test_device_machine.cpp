// Which machine's file is a GPU's, and on which GPUs code for a machine runs: from what a driver says of a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/gpu/device_machine.hpp"

namespace napkin::test_device_machine {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

gpu::DeviceInfo device(const std::string& name, int major, int minor) {
    gpu::DeviceInfo out;
    out.name = name, out.major = major, out.minor = minor;
    return out;
}

std::vector<Machine> built_in_machines() {
    std::vector<Machine> out;
    for (const std::string& name : machine_names())
        if (name != "host") out.push_back(load_machine(name).value());  // the same on any processor
    return out;
}

/// What is said where no machine is found.
std::string refusal(const gpu::DeviceInfo& at_hand, const std::vector<Machine>& machines) {
    const auto found = gpu::machine_of(at_hand, machines);
    if (found) return "found " + found->name;
    EXPECT_EQ(found.errors()[0].code, "unknown-machine");
    EXPECT_EQ(found.errors()[0].exit_code, ExitCode::machine_lacks);
    return found.errors()[0].message + "\n" + found.errors()[0].hint;
}

TEST(DeviceMachine, IsTheOneThatDescribesTheDevice) {
    const auto machines = built_in_machines();
    EXPECT_EQ(gpu::machine_of(device("NVIDIA H200", 9, 0), machines)->name, "h200");
    EXPECT_EQ(gpu::machine_of(device("NVIDIA H100 PCIe", 9, 0), machines)->name, "h100-pcie");
    EXPECT_EQ(gpu::machine_of(device("NVIDIA H100 80GB HBM3", 9, 0), machines)->name, "h100-sxm5");
    EXPECT_EQ(gpu::machine_of(device("NVIDIA GeForce RTX 4090", 8, 9), machines)->name, "rtx-4090");
}

TEST(DeviceMachine, WhereNoneDescribesItThoseOfItsArchitectureAreNamed) {
    const auto machines = built_in_machines();
    EXPECT_THAT(refusal(device("NVIDIA GH200 480GB", 9, 0), machines),
                AllOf(HasSubstr("NVIDIA GH200 480GB (sm_90a)"),
                      HasSubstr("--machine h100-pcie or --machine h100-sxm5 or --machine h200 or --machine h800"),
                      Not(HasSubstr("b200"))));
    EXPECT_THAT(refusal(device("NVIDIA T4", 7, 5), machines),
                AllOf(HasSubstr("--machine FILE.toml"), HasSubstr("architecture = \"sm_75\""), Not(HasSubstr("h200"))));
}

TEST(DeviceMachine, CodeRunsOnEveryDeviceOfItsArchitecture) {
    const Machine h100 = load_machine("h100-sxm5").value();
    const auto same = gpu::note_on_device(device("NVIDIA H200", 9, 0), load_machine("h200").value());
    ASSERT_TRUE(same.ok());
    EXPECT_EQ(*same, "");
    const auto other_name = gpu::note_on_device(device("NVIDIA GH200 480GB", 9, 0), h100);
    ASSERT_TRUE(other_name.ok()) << render(other_name.errors());
    EXPECT_THAT(*other_name,
                AllOf(HasSubstr("planned for NVIDIA H100 80GB HBM3"), HasSubstr("runs on NVIDIA GH200 480GB")));

    const auto older = gpu::note_on_device(device("NVIDIA A100-SXM4-80GB", 8, 0), h100);
    ASSERT_FALSE(older.ok());
    EXPECT_EQ(older.errors()[0].code, "other-gpu");
    EXPECT_EQ(older.errors()[0].exit_code, ExitCode::machine_lacks);
    Machine unsaid = h100;
    unsaid.architecture.clear();
    EXPECT_FALSE(gpu::note_on_device(device("NVIDIA GH200 480GB", 9, 0), unsaid).ok())
        << "a file that does not say its architecture describes only what it names";
}

}  // namespace
}  // namespace napkin::test_device_machine
