# The Python package's compiled part, napkin._native, where scikit-build-core builds the package (pyproject.toml). It is
# a module of Python's stable interface, so one file serves CPython 3.10 and all later releases.
if(NOT SKBUILD)
    return()
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
napkin_glob(native_sources python/native/*.cpp)
napkin_unity(native_sources ${native_sources})
add_library(napkin_native MODULE ${native_sources})
napkin_target(napkin_native)
set_target_properties(napkin_native PROPERTIES PREFIX "" OUTPUT_NAME _native SUFFIX .abi3.so)
target_include_directories(napkin_native SYSTEM PRIVATE ${Python_INCLUDE_DIRS})
target_link_libraries(napkin_native PRIVATE napkin_commands)
# Other modules see the function that Python looks for, and nothing else.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/native.map" CONTENT "{ global: PyInit__native; local: *; };\n" @ONLY)
target_link_options(napkin_native PRIVATE "LINKER:--version-script,${PROJECT_BINARY_DIR}/native.map")
install(TARGETS napkin_native LIBRARY DESTINATION napkin COMPONENT python)
