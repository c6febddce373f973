# One GoogleTest program for each kind of test. Each of its tests is one of ctest's, which spreads them over the cores,
# stops one that hangs and names one that fails. Kinds are also ctest's labels: `ctest -L unit`.
find_package(GTest REQUIRED)
include(GoogleTest)

# napkin_test_program(target sources)
function(napkin_test_program target)
    add_executable(${target} ${ARGN})
    napkin_target(${target})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    # Tests are compiled often and run once, so no optimization is quicker in sum, as long as what they call is the
    # library's own. If both hold an inline function or a template, the linker takes the first copy it meets. So the
    # optimized library comes before the tests' objects.
    target_compile_options(${target} PRIVATE ${napkin_not_optimized})
    target_link_options(${target} PRIVATE -Wl,--whole-archive $<TARGET_FILE:napkin> -Wl,--no-whole-archive)
    target_include_directories(${target} PRIVATE tests)
    target_link_libraries(${target} PRIVATE napkin_internal)
    napkin_quick_malloc(${target})
    if(TARGET napkin-cli)
        add_dependencies(${target} napkin-cli)
    endif()
endfunction()

# Tests compile kernels: into a cache of the build's own, not the user's.
set(test_environment "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/cache" "NO_COLOR=1")
# What is no kind of its own is on the machine on which the kinds are (tests/machines/machine_of_tests.cpp).
set(other_environment ${test_environment} "NAPKIN_MACHINE=${PROJECT_SOURCE_DIR}/tests/machines/cpu-256.toml")

# tests/support: what several kinds share (the examples, random diagrams and how failing ones are reduced).
napkin_glob(support_sources tests/support/*.cpp)
# The paths of the sources and of the tool differ from build to build: one object alone holds them.
set(paths_source "${PROJECT_SOURCE_DIR}/tests/support/paths.cpp")
list(REMOVE_ITEM support_sources "${paths_source}")
napkin_unity(support_sources ${support_sources})
add_library(napkin_test_support STATIC ${support_sources} "${paths_source}")
set_source_files_properties("${paths_source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON COMPILE_DEFINITIONS
    "NAPKIN_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\";NAPKIN_CLI=\"$<$<TARGET_EXISTS:napkin-cli>:$<TARGET_FILE:napkin-cli>>\"")
napkin_target(napkin_test_support)
target_include_directories(napkin_test_support PRIVATE tests)
target_compile_options(napkin_test_support PRIVATE ${napkin_not_optimized})
target_link_libraries(napkin_test_support PUBLIC napkin_internal)

# `cost`: ctest begins with the tests of the highest, so that none of those that take long is left for the end, when one
# core has nothing to do. What follows are options for the compiler.
function(napkin_test_kind kind seconds cost)
    napkin_glob(sources tests/${kind}/*.cpp)
    if(NOT sources)
        return()
    endif()
    napkin_unity(sources ${sources})
    if(NAPKIN_SANITIZE)
        math(EXPR seconds "${seconds} * 10")
    endif()
    napkin_test_program(test_${kind} ${sources} tests/machines/machine_of_tests.cpp)
    target_compile_options(test_${kind} PRIVATE ${ARGN})
    target_link_libraries(test_${kind} PRIVATE napkin_test_support GTest::gmock GTest::gtest GTest::gtest_main)
    gtest_discover_tests(test_${kind} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
        TEST_PREFIX "${kind}." WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
        PROPERTIES LABELS ${kind} TIMEOUT ${seconds} COST ${cost} ENVIRONMENT "${test_environment}")
endfunction()

# The sanitizers make studies of many sizes about seven times slower.
napkin_test_kind(unit 240 1)
# It prints every figure of the papers anew, for which kernels are compiled: 42 s on one core with an empty cache
# (2026-11-28).
napkin_test_kind(text 240 2)
napkin_test_kind(error 60 1)
napkin_test_kind(property 180 2)
# It compares many numbers: without optimization three of its suites take 37 s in place of 26 (2026-11-27).
napkin_test_kind(numeric 300 3 ${napkin_optimized})
napkin_test_kind(gpu 300 3)

# tests/fuzz/NAME.cpp: under libFuzzer with NAPKIN_FUZZ, else with a main that runs the corpus. Either way ctest runs
# the corpus and the texts of the folders that tests/fuzz/seeds.txt names after the target.
file(GLOB fuzzers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp")
foreach(source IN LISTS fuzzers)
    cmake_path(GET source STEM name)
    set(corpus "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
    if(NAPKIN_FUZZ)
        napkin_test_program(fuzz_${name} ${source})
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        set(once -runs=0)
    else()
        napkin_test_program(fuzz_${name} ${source} tests/fuzz/driver/replay.cpp)
        set(once)
    endif()
    if(NOT IS_DIRECTORY "${corpus}")
        set(corpus)
    endif()
    file(STRINGS "${PROJECT_SOURCE_DIR}/tests/fuzz/seeds.txt" seeds REGEX "^${name} ")
    string(REPLACE " " ";" seeds "${seeds}")
    list(REMOVE_ITEM seeds ${name})
    list(TRANSFORM seeds PREPEND "${PROJECT_SOURCE_DIR}/")
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} ${once} ${corpus} ${seeds})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 120 COST 2 ENVIRONMENT "${other_environment}")
endforeach()

# tests/c_api/: the C API, used by C programs. Stand-ins for the driver and the compiler run what a GPU would run,
# and say what they were asked for. The numeric tests check what a GPU computes.
enable_language(C)
function(napkin_c_test name)
    add_executable(c_api_${name} tests/c_api/${name}.c)
    set_target_properties(c_api_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests"
        UNITY_BUILD OFF C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
    target_compile_options(c_api_${name} PRIVATE -Wall -Wextra -Wpedantic $<$<BOOL:${NAPKIN_WERROR}>:-Werror>)
    target_link_libraries(c_api_${name} PRIVATE napkin)
    add_test(NAME c_api.${name} COMMAND c_api_${name})
    set_tests_properties(c_api.${name} PROPERTIES LABELS c_api TIMEOUT 300 ENVIRONMENT "${other_environment};${ARGN}")
endfunction()
napkin_c_test(processor)

add_library(fake_cuda SHARED tests/c_api/fake_cuda.c)
set(fake_cuda_dir "${PROJECT_BINARY_DIR}/tests/fake_cuda")
set_target_properties(fake_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${fake_cuda_dir}" OUTPUT_NAME cuda SUFFIX .so.1
    UNITY_BUILD OFF C_STANDARD 11)
napkin_c_test(launches "LD_LIBRARY_PATH=${fake_cuda_dir}" "NAPKIN_NVRTC=${fake_cuda_dir}/libcuda.so.1")
target_link_libraries(c_api_launches PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
add_dependencies(c_api_launches fake_cuda)

# tests/browser: reports in a headless Chromium. Skipped where there is none; what needs the core, where the target
# napkin-wasm is not built.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND TARGET napkin-cli)
    add_test(NAME browser.report COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/browser/test_report.py"
        "$<TARGET_FILE:napkin-cli>" "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/browser")
    set_tests_properties(browser.report PROPERTIES LABELS browser TIMEOUT 240 COST 3 SKIP_RETURN_CODE 77 ENVIRONMENT "${other_environment}")
endif()

# tests/reference: a second evaluator in NumPy, beside the kernels and the definition.
napkin_test_program(run_texts tests/reference/run_texts.cpp)
target_link_libraries(run_texts PRIVATE napkin_test_support)
if(Python3_FOUND)
    foreach(shard 0 1)
        add_test(NAME reference.numpy_${shard} COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/reference/test_reference.py"
            "$<TARGET_FILE:run_texts>" "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/reference" --shard ${shard}/2)
        set_tests_properties(reference.numpy_${shard} PROPERTIES LABELS reference TIMEOUT 240 COST 2 ENVIRONMENT "${test_environment}")
    endforeach()
endif()

# tests/campaign: random programs in any number over several processes. It runs where nothing is installed but a
# compiler: scripts/carry.sh puts the libraries that it needs into its folder.
napkin_test_program(campaign tests/campaign/campaign.cpp
    tests/property/pipeline_case.cpp tests/numeric/cpu_kernel_case.cpp tests/numeric/group_order.cpp)
target_compile_options(campaign PRIVATE ${napkin_optimized})
target_link_libraries(campaign PRIVATE napkin_test_support CLI11::CLI11)
set_target_properties(campaign PROPERTIES BUILD_RPATH "$ORIGIN")
