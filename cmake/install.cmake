# `cmake --install`: the library for find_package(napkin), the tool, the standard library and the machine files.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/napkin")
install(TARGETS napkin EXPORT napkin ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT napkin NAMESPACE napkin:: FILE napkinTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(cmake/napkinConfig.cmake.in "${PROJECT_BINARY_DIR}/napkinConfig.cmake"
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/napkinConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/napkinConfig.cmake" "${PROJECT_BINARY_DIR}/napkinConfigVersion.cmake"
    cmake/FindHwloc.cmake DESTINATION ${package_dir})
if(TARGET napkin-cli)
    install(TARGETS napkin-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    # The core for pages, where it was built: `napkin report` looks for it beside the tool and there.
    install(FILES "${PROJECT_BINARY_DIR}/bin/napkin.wasm.gz" DESTINATION ${CMAKE_INSTALL_DATADIR}/napkin OPTIONAL)
endif()
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} OPTIONAL FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(DIRECTORY lib machines DESTINATION ${CMAKE_INSTALL_DATADIR}/napkin OPTIONAL FILES_MATCHING PATTERN "*.nk" PATTERN "*.toml")
