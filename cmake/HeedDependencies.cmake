# SPDX-License-Identifier: Apache-2.0
# heed_find(missing what ...)   finds the libraries that heed is linked with; `missing` becomes the list of those that
# are not there. The build uses it, and so does the installed package for users of the static libraries: nothing of the
# machine that heed was built on goes into what is installed.
#
#   hwy             hwy::hwy
#   threads         Threads::Threads
#   sentencepiece   heed::sentencepiece
#   zlib            ZLIB::ZLIB
function(heed_find missing)
  set(not_found "")
  foreach(what IN LISTS ARGN)
    if(what STREQUAL "hwy")
      find_package(hwy QUIET)
      set(target hwy::hwy)
    elseif(what STREQUAL "threads")
      find_package(Threads QUIET)
      set(target Threads::Threads)
    elseif(what STREQUAL "sentencepiece")
      heed_import(sentencepiece HEADER sentencepiece_processor.h LIBRARIES sentencepiece sentencepiece_train)
      set(target heed::sentencepiece)
    elseif(what STREQUAL "zlib")
      find_package(ZLIB QUIET)
      set(target ZLIB::ZLIB)
    endif()
    if(NOT TARGET ${target})
      list(APPEND not_found ${what})
    endif()
  endforeach()
  set(${missing} "${not_found}" PARENT_SCOPE)
endfunction()

# heed_import(name HEADER file LIBRARIES name ...)   heed::<name>, where all of it is found.
function(heed_import name)
  cmake_parse_arguments(arg "" "HEADER" "LIBRARIES" ${ARGN})
  if(TARGET heed::${name})
    return()
  endif()
  set(found "")
  foreach(library IN LISTS arg_LIBRARIES)
    find_library(HEED_LIBRARY_${library} ${library})
    mark_as_advanced(HEED_LIBRARY_${library})
    list(APPEND found ${HEED_LIBRARY_${library}})
  endforeach()
  find_path(HEED_INCLUDE_${name} ${arg_HEADER})
  mark_as_advanced(HEED_INCLUDE_${name})
  if("${found};${HEED_INCLUDE_${name}}" MATCHES "NOTFOUND")
    return()
  endif()
  add_library(heed::${name} INTERFACE IMPORTED)
  set_target_properties(heed::${name} PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${HEED_INCLUDE_${name}}" INTERFACE_LINK_LIBRARIES "${found}")
endfunction()
