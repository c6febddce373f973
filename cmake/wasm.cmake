# The core as WebAssembly, for reports (src/draw/figures.hpp): the folders that a figure comes from, and nothing that
# runs or emits. Target napkin-wasm, where emscripten is installed; not among what is built by default. Beside the tool
# it makes napkin.wasm.gz, which `napkin report` puts into its pages. Target napkin-core-check, where clang and the
# headers of libc++ 14 are: does the core compile with a library as old as emscripten's? It writes nothing, and takes a
# third of the time.
find_program(EMCC_PROGRAM emcc)
find_program(GZIP_PROGRAM gzip)
# emscripten's own version first: a newer clang takes what that one does not.
find_program(CLANG_PROGRAM NAMES clang++-14 clang++-19 clang++)
find_path(LIBCXX_DIR NAMES __config PATHS /usr/lib/llvm-14/include/c++/v1 NO_DEFAULT_PATH)
mark_as_advanced(EMCC_PROGRAM GZIP_PROGRAM CLANG_PROGRAM LIBCXX_DIR)
if(NOT (EMCC_PROGRAM AND GZIP_PROGRAM) AND NOT (CLANG_PROGRAM AND LIBCXX_DIR))
    return()
endif()

set(wasm_dir "${PROJECT_BINARY_DIR}/wasm")
set(wasm_sources)
foreach(folder support algebra report diagram differentiate syntax machine derive cost plan tile schedule lower steps check draw)
    napkin_glob(found src/${folder}/*.cpp)
    list(APPEND wasm_sources ${found})
endforeach()
# The machine at hand, files and whatever looks at what runs.
list(FILTER wasm_sources EXCLUDE REGEX "/machine/(host|measured|load|processor)\\.cpp$")
list(FILTER wasm_sources EXCLUDE REGEX "/support/(cache|files|stack)\\.cpp$")
list(FILTER wasm_sources EXCLUDE REGEX "/check/(first_use|verdict|validate)\\.cpp$")
list(FILTER wasm_sources EXCLUDE REGEX "/lower/interpret[a-z_]*\\.cpp$")
# Whole pages, what is drawn for a terminal or a document, and charts of other things than a setting.
list(FILTER wasm_sources EXCLUDE REGEX "/draw/report_[a-z]+\\.cpp$")
list(FILTER wasm_sources EXCLUDE REGEX "/draw/(circuit_dot|compare|drawings|faults|picture_(json|text|tikz))\\.cpp$")
list(FILTER wasm_sources EXCLUDE REGEX "/draw/(layout|measured|sweep)_chart\\.cpp$")
list(APPEND wasm_sources "${PROJECT_SOURCE_DIR}/src/study/kernel_costs.cpp" "${PROJECT_SOURCE_DIR}/tools/wasm/napkin_figures.cpp"
    "${PROJECT_BINARY_DIR}/generated/std_library_text.cpp" "${PROJECT_BINARY_DIR}/generated/builtin_machine_texts.cpp")

# Headers of libraries that are headers alone, apart from those of this system's C library.
file(MAKE_DIRECTORY "${wasm_dir}/include")
foreach(header fmt/format.h nlohmann/json.hpp toml++/toml.h)
    cmake_path(GET header PARENT_PATH library)
    find_path(found_${library} NAMES ${header} NO_CACHE)
    file(CREATE_LINK "${found_${library}}/${library}" "${wasm_dir}/include/${library}" SYMBOLIC)
endforeach()

set(wasm_common_flags -DFMT_HEADER_ONLY -DNDEBUG "-DNAPKIN_VERSION=\"${PROJECT_VERSION}\""
    -include "${PROJECT_SOURCE_DIR}/tools/wasm/missing_library.hpp" "-I${PROJECT_SOURCE_DIR}/src" "-I${PROJECT_SOURCE_DIR}"
    "-I${wasm_dir}/include")
# Sixteen files of a folder together, as elsewhere.
set(parts)
foreach(source IN LISTS wasm_sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    math(EXPR part "0${wasm_count_${folder}} / 16")
    math(EXPR wasm_count_${folder} "0${wasm_count_${folder}} + 1")
    list(APPEND parts ${folder}_${part})
    string(APPEND wasm_text_${folder}_${part} "#include \"${source}\"\n")
endforeach()
list(REMOVE_DUPLICATES parts)
foreach(part IN LISTS parts)
    file(CONFIGURE OUTPUT "${wasm_dir}/${part}.cpp" CONTENT "${wasm_text_${part}}" @ONLY)
endforeach()

if(CLANG_PROGRAM AND LIBCXX_DIR)
    set(wasm_checks)
    foreach(part IN LISTS parts)
        # No file is made: what is asked for is looked at each time.
        add_custom_command(OUTPUT "${wasm_dir}/${part}.checked"
            COMMAND "${CLANG_PROGRAM}" -std=c++20 -fsyntax-only -w -nostdinc++ -isystem "${LIBCXX_DIR}" ${wasm_common_flags} "${wasm_dir}/${part}.cpp"
            DEPENDS "${PROJECT_BINARY_DIR}/generated/std_library_text.cpp" "${PROJECT_BINARY_DIR}/generated/builtin_machine_texts.cpp"
            COMMENT "Looking at ${part} as emscripten's library has it"
            VERBATIM)
        set_source_files_properties("${wasm_dir}/${part}.checked" PROPERTIES SYMBOLIC TRUE)
        list(APPEND wasm_checks "${wasm_dir}/${part}.checked")
    endforeach()
    add_custom_target(napkin-core-check DEPENDS ${wasm_checks})
endif()

if(NOT EMCC_PROGRAM OR NOT GZIP_PROGRAM)
    return()
endif()

# A page holds the core, which is therefore compiled to be small. Where it is only tried, as in CI, it is compiled in
# less time, and the linker leaves out what is not called.
set(wasm_optimization -Oz)
set(wasm_link_optimization -Oz)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(wasm_optimization -O0)
    set(wasm_link_optimization -O1)
endif()
set(wasm_flags -std=c++20 ${wasm_optimization} -fwasm-exceptions ${wasm_common_flags})
set(wasm_objects)
foreach(part IN LISTS parts)
    set(object "${wasm_dir}/${part}.o")
    add_custom_command(OUTPUT "${object}"
        COMMAND "${EMCC_PROGRAM}" ${wasm_flags} -MMD -MF "${object}.d" -MT "${object}" -c "${wasm_dir}/${part}.cpp" -o "${object}"
        DEPENDS "${wasm_dir}/${part}.cpp" "${PROJECT_SOURCE_DIR}/tools/wasm/missing_library.hpp"
            "${PROJECT_BINARY_DIR}/generated/std_library_text.cpp" "${PROJECT_BINARY_DIR}/generated/builtin_machine_texts.cpp"
        DEPFILE "${object}.d"
        COMMENT "Compiling ${part} to WebAssembly"
        VERBATIM)
    list(APPEND wasm_objects "${object}")
endforeach()
set(wasm_module "${wasm_dir}/napkin.wasm")
set(wasm_packed "${PROJECT_BINARY_DIR}/bin/napkin.wasm.gz")
add_custom_command(OUTPUT "${wasm_packed}"
    COMMAND "${EMCC_PROGRAM}" ${wasm_link_optimization} -fwasm-exceptions -sSTANDALONE_WASM -sALLOW_MEMORY_GROWTH=1 -sINITIAL_MEMORY=33554432
        -sTOTAL_STACK=8388608 --no-entry ${wasm_objects} -o "${wasm_module}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/bin"
    COMMAND sh -c "'${GZIP_PROGRAM}' -9nc '${wasm_module}' > '${wasm_packed}'"
    DEPENDS ${wasm_objects}
    COMMENT "Linking the core as WebAssembly"
    VERBATIM)
add_custom_target(napkin-wasm DEPENDS "${wasm_packed}")
