# cmake --install: libheed_attention.so and its headers, for find_package(heed COMPONENTS attention) and for pkg-config,
# and the command line. It needs Highway and threads, and nothing else; no header of either is seen by its users.
include(CMakePackageConfigHelpers)

if(TARGET heed)
  install(TARGETS heed RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# A sanitized library would ask its users to link the sanitizer's run time.
if(HEED_SANITIZE)
  return()
endif()

add_library(heed_attention_shared SHARED $<TARGET_OBJECTS:heed_base> $<TARGET_OBJECTS:heed_attention>)
# Before 1.0 a minor version may break, so the soname carries it.
set_target_properties(heed_attention_shared PROPERTIES
  OUTPUT_NAME heed_attention EXPORT_NAME attention LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_link_libraries(heed_attention_shared PRIVATE hwy::hwy Threads::Threads)
target_compile_features(heed_attention_shared INTERFACE cxx_std_20)
target_include_directories(heed_attention_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS heed_attention_shared EXPORT heed-attention LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(public_headers
  heed/base/allocator.h heed/base/error.h heed/base/export.h heed/base/half.h heed/base/parallel.h heed/base/rng.h heed/base/view.h heed/base/workspace.h
  heed/kernels/attention/attention.h heed/kernels/attention/dropout.h heed/kernels/attention/kv_view.h
  heed/kernels/attention/mask.h heed/kernels/attention/observe.h
  heed/kernels/attention/targets.h)
foreach(header IN LISTS public_headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/heed)
install(EXPORT heed-attention NAMESPACE heed:: DESTINATION ${package_dir})
configure_package_config_file(cmake/heedConfig.cmake.in heedConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(heedConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heedConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/heedConfigVersion.cmake
  DESTINATION ${package_dir})

# Relative to the file itself, so that 'cmake --install --prefix' and a moved tree work.
file(RELATIVE_PATH pkgconfig_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/heed-attention.pc.in heed-attention.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heed-attention.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
