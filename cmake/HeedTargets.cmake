# SPDX-License-Identifier: Apache-2.0
# heed_library(name SOURCES ... LINKS ... [NEEDS ...] [COMPONENT attention | CUSTOMER])
#   One folder of sources, as a static library for the targets of this build. LINKS are the folders it may include.
#   NEEDS are libraries from outside that its objects call, and that no public header shows. Its objects go into the
#   library heed::heed; with COMPONENT attention, into heed::attention; of a CUSTOMER, which only uses the library, into
#   neither. See HeedLibraries.cmake.
# heed_optimise(target)   the target has kernels: optimised in every build.
# heed_hardly_optimise(target)   the target checks, or reads flags: it shall be compiled fast.
# heed_simd(target)   the target has Highway code: which instruction sets it is compiled for.
# heed_test(name SOURCES ... LINKS ... LABELS ...)   one GoogleTest program, found by ctest as a whole. With ThreadSanitizer
#   only those with the label `threads` are built.
# heed_test_library(name SOURCES ... LINKS ...)   what several tests share, compiled once.
#
# All variables and options that are set here are those of this folder and below: a project that heed is a part of keeps
# its own.

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # one compilation for shared and static libraries
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
  endif()
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")  # kernels have more, see heed_optimise
endif()

# What every target of heed is compiled with.
add_library(heed_flags INTERFACE)
target_include_directories(heed_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_features(heed_flags INTERFACE cxx_std_20)
if(PROJECT_IS_TOP_LEVEL)  # to others they would be noise
  add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
endif()
if(HEED_WERROR)
  add_compile_options(-Werror)
endif()
if(HEED_SANITIZE STREQUAL "address")
  set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(HEED_SANITIZE STREQUAL "thread")
  set(sanitize -fsanitize=thread -fno-omit-frame-pointer)
elseif(NOT HEED_SANITIZE STREQUAL "")
  message(FATAL_ERROR "HEED_SANITIZE is '${HEED_SANITIZE}', expected address, thread or nothing")
endif()
add_compile_options(${sanitize})
if(HEED_SANITIZE)  # g++ 12 sees it in <regex>, where it is not, once code is instrumented
  add_compile_options(-Wno-maybe-uninitialized)
endif()
add_link_options(${sanitize})
if(HEED_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)  # several threads count
  add_link_options(--coverage)
endif()
if(HEED_LIBFUZZER)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HEED_LIBFUZZER: the compiler is ${CMAKE_CXX_COMPILER_ID}, expected Clang, as with CXX=clang++")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

function(heed_library name)
  cmake_parse_arguments(arg "CUSTOMER" "COMPONENT" "SOURCES;LINKS;NEEDS" ${ARGN})
  add_library(heed_${name} STATIC ${arg_SOURCES})
  target_link_libraries(heed_${name} PUBLIC heed_flags ${arg_LINKS} PRIVATE ${arg_NEEDS})
  if(NOT PROJECT_IS_TOP_LEVEL)  # compiled as far as something is linked
    set_target_properties(heed_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  if(NOT arg_CUSTOMER)
    if(NOT arg_COMPONENT)
      set(arg_COMPONENT heed)
    endif()
    set_property(GLOBAL APPEND PROPERTY HEED_FOLDERS_${arg_COMPONENT} heed_${name})
    set_property(GLOBAL APPEND PROPERTY HEED_NEEDS_${arg_COMPONENT} ${arg_NEEDS})
  endif()
endfunction()

# Vector width is chosen at run time. Every instruction set is the same source compiled again: with a sanitizer or coverage one of them,
# AVX2, and the scalar code are enough, unless all are asked for (./dev test --all). AVX3 is AVX-512 as of its first servers; what AVX3_DL adds is of no use here.
function(heed_simd target)
  set(disabled "${HEED_DISABLED_TARGETS}")
  if((HEED_SANITIZE OR HEED_COVERAGE) AND NOT HEED_SANITIZE_ALL_TARGETS)
    string(APPEND disabled "|HWY_SSE4|HWY_AVX3")
  endif()
  target_compile_definitions(${target} PRIVATE "HWY_DISABLED_TARGETS=(${disabled})")
  target_link_libraries(${target} PUBLIC hwy::hwy)
endfunction()

# The debug build, too, would be unbearable with kernels at -O0; with sanitizers or coverage, -O3 takes minutes a file. What
# is no kernel is not optimised with ASan + UBSan (see the preset): the compiler takes three times as long with -O1.
function(heed_optimise target)
  if(HEED_SANITIZE OR HEED_COVERAGE)
    target_compile_options(${target} PRIVATE -O1 -fno-math-errno)
  else()
    target_compile_options(${target} PRIVATE -O3 -fno-math-errno -falign-loops=64)
  endif()
endfunction()

# Most of the time goes into compiling it. Optimising what is instrumented takes two to four times as long.
function(heed_hardly_optimise target)
  if(HEED_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

function(heed_test_flags target)
  target_link_libraries(${target} PRIVATE heed_flags GTest::gtest rapidcheck rapidcheck_gtest)
  heed_hardly_optimise(${target})
endfunction()

if(HEED_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  # The headers that every test reads, compiled once: as a program, since a library has other flags.
  file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cc "int main() {}\n")
  add_executable(heed_test_headers ${PROJECT_BINARY_DIR}/test_headers.cc)
  heed_test_flags(heed_test_headers)
  target_precompile_headers(heed_test_headers PRIVATE <gtest/gtest.h> <string> <vector>)
  # main() of all test programs: one seed for whatever they draw.
  add_library(heed_test_main STATIC ${PROJECT_SOURCE_DIR}/heed/base/testing.cc)
  heed_test_flags(heed_test_main)
  target_link_libraries(heed_test_main PUBLIC heed_base)
endif()

function(heed_test_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  if(HEED_TESTS)
    add_library(heed_${name} STATIC ${arg_SOURCES})
    heed_test_flags(heed_${name})
    target_link_libraries(heed_${name} PUBLIC ${arg_LINKS})
  endif()
endfunction()

function(heed_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT HEED_TESTS)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)
  endif()
  if(HEED_SANITIZE STREQUAL "thread" AND NOT "threads" IN_LIST arg_LABELS)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  heed_test_flags(${name})
  target_link_libraries(${name} PRIVATE ${arg_LINKS} heed_test_main)
  target_precompile_headers(${name} REUSE_FROM heed_test_headers)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()
