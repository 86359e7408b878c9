# SPDX-License-Identifier: Apache-2.0
# cmake --install: the libraries of HeedLibraries.cmake with their public headers, for find_package(heed) and for
# pkg-config, and the command line.
include(CMakePackageConfigHelpers)

if(TARGET heed_cli)
  install(TARGETS heed_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(HEED_SANITIZE)
  return()
endif()

# Each kind in a file of its own: whoever uses shared libraries is not asked for what the static ones need.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/heed)
foreach(component IN LISTS HEED_COMPONENTS)
  foreach(kind shared static)
    install(TARGETS heed_${component}_${kind} EXPORT heed-${component}-${kind}
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT heed-${component}-${kind} NAMESPACE heed:: DESTINATION ${package_dir})
  endforeach()
endforeach()
configure_package_config_file(cmake/heedConfig.cmake.in heedConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(heedConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heedConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/heedConfigVersion.cmake
  cmake/HeedDependencies.cmake DESTINATION ${package_dir})

# All headers but those that the list calls internal.
file(STRINGS cmake/internal_headers.txt internal REGEX "^[^#]")
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} heed/*.h)
foreach(pattern IN LISTS internal)  # one by one: an expression of CMake has few parentheses
  list(FILTER headers EXCLUDE REGEX "^${pattern}$")
endforeach()
if(HEED_ATTENTION_ONLY)
  list(FILTER headers INCLUDE REGEX "^heed/(attention[.]h|base/|kernels/attention/)")
endif()
foreach(header IN LISTS headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

# Relative to the file itself, so that 'cmake --install --prefix' and a moved tree work.
file(RELATIVE_PATH pkgconfig_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
set(package_of_attention heed-attention)
set(package_of_heed heed)
foreach(component IN LISTS HEED_COMPONENTS)
  set(package ${package_of_${component}})
  configure_file(cmake/${package}.pc.in ${package}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
