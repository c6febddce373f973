# bench/NAME.cpp is a program bench_NAME. OpenBLAS, the baseline, is linked where it is found, and NAPKIN_HAVE_OPENBLAS
# tells.
find_package(benchmark REQUIRED)
find_package(OpenBLAS QUIET)

file(GLOB benches CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cpp")
foreach(source IN LISTS benches)
    cmake_path(GET source STEM name)
    add_executable(bench_${name} ${source})
    napkin_target(bench_${name})
    set_target_properties(bench_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
    target_compile_definitions(bench_${name} PRIVATE NAPKIN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_link_libraries(bench_${name} PRIVATE napkin_internal)
    # Those with a main of their own run where this library is not, as on a machine with a GPU.
    file(STRINGS ${source} uses REGEX "benchmark/benchmark.h")
    if(uses)
        target_link_libraries(bench_${name} PRIVATE benchmark::benchmark_main)
    endif()
    if(OpenBLAS_FOUND)
        target_compile_definitions(bench_${name} PRIVATE NAPKIN_HAVE_OPENBLAS)
        target_include_directories(bench_${name} SYSTEM PRIVATE ${OpenBLAS_INCLUDE_DIRS})
        target_link_libraries(bench_${name} PRIVATE ${OpenBLAS_LIBRARIES})
    endif()
endforeach()

# Napkin as a library that scripts load (bench/in_process.py). Its objects are those of executables, whose code may lie
# anywhere; what they call among themselves is bound here.
add_library(napkin_for_scripts SHARED $<TARGET_OBJECTS:napkin>)
set_target_properties(napkin_for_scripts PROPERTIES
    LINKER_LANGUAGE CXX OUTPUT_NAME napkin LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
target_link_options(napkin_for_scripts PRIVATE -Wl,-Bsymbolic)
target_link_libraries(napkin_for_scripts PRIVATE fmt::fmt Hwloc::Hwloc Threads::Threads ${CMAKE_DL_LIBS})
