# SPDX-License-Identifier: Apache-2.0
# The libraries that users link, each shared and static, from the objects that the folders have compiled already:
#
#   heed::attention   base and attention; needs Highway and threads
#   heed::heed        everything else that is in the library; it links heed::attention
#
# Inside a build they are the kind that BUILD_SHARED_LIBS says; heed::attention_static and heed::heed_static are static.
# A sanitized library would ask its users to link the sanitizer's run time.
if(HEED_SANITIZE)
  return()
endif()

function(heed_component component)  # heed_component(name OUTPUT name LINKS component ...)
  cmake_parse_arguments(arg "" "OUTPUT" "LINKS" ${ARGN})
  get_property(objects GLOBAL PROPERTY HEED_FOLDERS_${component})
  list(TRANSFORM objects REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  get_property(needs GLOBAL PROPERTY HEED_NEEDS_${component})
  list(REMOVE_DUPLICATES needs)
  foreach(kind SHARED STATIC)
    string(TOLOWER ${kind} suffix)
    set(library heed_${component}_${suffix})
    add_library(${library} ${kind} ${objects})
    set_target_properties(${library} PROPERTIES OUTPUT_NAME ${arg_OUTPUT} LINKER_LANGUAGE CXX)
    target_compile_features(${library} INTERFACE cxx_std_20)
    # As system headers: what a user's compiler warns of is the user's own code.
    target_include_directories(${library} SYSTEM INTERFACE
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    list(TRANSFORM arg_LINKS REPLACE "(.+)" "heed_\\1_${suffix}" OUTPUT_VARIABLE links)
    target_link_libraries(${library} PUBLIC ${links} PRIVATE ${needs})
    if(NOT HEED_INSTALL)
      set_target_properties(${library} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  endforeach()
  # Before 1.0 a minor version may break, so the soname carries it. A missing symbol shows here, not at a user's.
  set_target_properties(heed_${component}_shared PROPERTIES
    EXPORT_NAME ${component} INSTALL_RPATH $ORIGIN
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_link_options(heed_${component}_shared PRIVATE LINKER:-z,defs)
  set_target_properties(heed_${component}_static PROPERTIES EXPORT_NAME ${component}_static)
  add_library(heed::${component}_static ALIAS heed_${component}_static)
  if(BUILD_SHARED_LIBS)
    add_library(heed::${component} ALIAS heed_${component}_shared)
  else()
    add_library(heed::${component} ALIAS heed_${component}_static)
  endif()
endfunction()

set(HEED_COMPONENTS attention)
heed_component(attention OUTPUT heed_attention)
if(NOT HEED_ATTENTION_ONLY)
  list(APPEND HEED_COMPONENTS heed)
  heed_component(heed OUTPUT heed LINKS attention)
endif()
