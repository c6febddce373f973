# How every target of this repository is compiled, and the glob that all of them use.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()

# ccache, told to see through the path of the checkout, so that clones of the repository share what they compiled.
find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
endif()

# What is compiled more often than it runs long is not optimized in a release. Sanitizers say themselves how much.
set(napkin_not_optimized)
set(napkin_optimized)
if(NOT NAPKIN_SANITIZE)
    set(napkin_not_optimized $<$<CONFIG:Release>:-O0>)
    set(napkin_optimized $<$<CONFIG:Release>:-O1>)
endif()
# With the inlining of GCC's -O2, its -O1 makes plans in the same time and compiles the planner's files a quarter
# faster. GCC collects its garbage from a heap of 400 MB on, in place of 128. Half of the tool then compiles in 33 s and
# not in 42 (GCC 12, 2026-11-26). Files that took 0.7 GB take 0.9.
set(napkin_gcc_options)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(napkin_gcc_options $<$<CONFIG:Release>:-finline-functions>
        $<$<CONFIG:Release>:-finline-small-functions> $<$<CONFIG:Release>:-findirect-inlining>
        $<$<CONFIG:Release>:-fpartial-inlining> "SHELL:--param ggc-min-heapsize=400000")
endif()

# napkin_glob(variable pattern): the files below the source directory that match, looked up again at every build.
function(napkin_glob variable pattern)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS LIST_DIRECTORIES OFF "${PROJECT_SOURCE_DIR}/${pattern}")
    set(${variable} "${found}" PARENT_SCOPE)
endfunction()

# napkin_unity(variable sources): what to compile in place of the sources where CMAKE_UNITY_BUILD is set, as in a
# release. These files include up to 40 sources of one folder each. Headers and templates are then compiled once for all
# of them, in a third of the time. Names in a folder's anonymous namespaces therefore differ. (CMake's own would hold
# absolute paths, and no two clones share what they compiled.)
function(napkin_unity variable)
    if(NOT CMAKE_UNITY_BUILD)
        set(${variable} "${ARGN}" PARENT_SCOPE)
        return()
    endif()
    set(parts)
    foreach(source IN LISTS ARGN)
        cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE path)
        cmake_path(GET path PARENT_PATH folder)
        math(EXPR part "0${count_${folder}} / 40")
        math(EXPR count_${folder} "0${count_${folder}} + 1")
        list(APPEND parts ${folder}/${part})
        string(APPEND text_${folder}/${part} "#include \"${path}\"\n")
    endforeach()
    list(REMOVE_DUPLICATES parts)
    foreach(part IN LISTS parts)
        file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/unity/${part}.cpp" CONTENT "${text_${part}}" @ONLY)
    endforeach()
    list(TRANSFORM parts REPLACE "(.+)" "${PROJECT_BINARY_DIR}/unity/\\1.cpp")
    set(${variable} "${parts}" PARENT_SCOPE)
endfunction()

# napkin_target(target): warnings and sanitizers.
function(napkin_target target)
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
    target_compile_options(${target} PRIVATE -Wall -Wextra ${napkin_gcc_options})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        # GCC 12 warns about code of its own string class here (GCC bug 105651). Clang has no warning for locals alone.
        target_compile_options(${target} PRIVATE -Wshadow=local -Wno-restrict)
        if(CMAKE_UNITY_BUILD)
            # A class of an included source may hold what is in an anonymous namespace there.
            target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
        endif()
    endif()
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
        # std::stable_sort of GCC 12's library calls a function that the same library calls deprecated.
        target_compile_options(${target} PRIVATE -Wno-deprecated-declarations)
    endif()
    if(NAPKIN_WERROR)
        target_compile_options(${target} PRIVATE -Werror)
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
            # Guesses of the optimizer, wrong now and then about correct code: shown, but no reason to stop.
            target_compile_options(${target} PRIVATE -Wno-error=maybe-uninitialized -Wno-error=array-bounds
                -Wno-error=stringop-overflow -Wno-error=stringop-overread -Wno-error=free-nonheap-object)
        endif()
    endif()
    if(NAPKIN_SANITIZE)
        target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
        target_compile_options(${target} PRIVATE
            -fsanitize=${NAPKIN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
        # PUBLIC, so that whatever links the static library links the sanitizers' run time too.
        target_link_options(${target} PUBLIC -fsanitize=${NAPKIN_SANITIZE})
    endif()
    if(NAPKIN_FUZZ)
        target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
endfunction()

# napkin_quick_malloc(target): of a program. A plan is made of many small objects, for which mimalloc's malloc takes a
# fifth less of its time. Sanitizers bring their own.
find_library(MIMALLOC_LIBRARY mimalloc)
mark_as_advanced(MIMALLOC_LIBRARY)
function(napkin_quick_malloc target)
    if(MIMALLOC_LIBRARY AND NOT NAPKIN_SANITIZE)
        target_link_options(${target} PRIVATE "LINKER:--push-state,--no-as-needed,${MIMALLOC_LIBRARY},--pop-state")
    endif()
endfunction()
