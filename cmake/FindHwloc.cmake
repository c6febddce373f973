# Finds hwloc, which has no CMake package of its own, and defines Hwloc::Hwloc.
find_path(HWLOC_INCLUDE_DIR hwloc.h)
find_library(HWLOC_LIBRARY hwloc)
mark_as_advanced(HWLOC_INCLUDE_DIR HWLOC_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Hwloc REQUIRED_VARS HWLOC_LIBRARY HWLOC_INCLUDE_DIR)
if(Hwloc_FOUND AND NOT TARGET Hwloc::Hwloc)
    add_library(Hwloc::Hwloc UNKNOWN IMPORTED)
    set_target_properties(Hwloc::Hwloc PROPERTIES
        IMPORTED_LOCATION "${HWLOC_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${HWLOC_INCLUDE_DIR}")
endif()
