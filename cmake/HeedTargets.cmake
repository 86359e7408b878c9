# heed_library(name SOURCES ... LINKS ...)   one static library a folder; LINKS are the folders it may include.
# heed_optimise(target)   the target has kernels: optimised in every build.
# heed_simd(target)   the target has Highway code: which instruction sets it is compiled for.
# heed_test(name SOURCES ... LINKS ... LABELS ...)   one GoogleTest program, found by ctest as a whole.
# heed_test_library(name SOURCES ... LINKS ...)   what several tests share, compiled once.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")  # kernels have more, see heed_optimise

add_library(heed_flags INTERFACE)
target_include_directories(heed_flags INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
target_compile_options(heed_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror)
if(HEED_SANITIZE STREQUAL "address")
  set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(HEED_SANITIZE STREQUAL "thread")
  set(sanitize -fsanitize=thread -fno-omit-frame-pointer)
elseif(NOT HEED_SANITIZE STREQUAL "")
  message(FATAL_ERROR "HEED_SANITIZE is '${HEED_SANITIZE}', expected address, thread or nothing")
endif()
target_compile_options(heed_flags INTERFACE ${sanitize})
if(HEED_SANITIZE)  # g++ 12 sees it in <regex>, where it is not, once code is instrumented
  target_compile_options(heed_flags INTERFACE -Wno-maybe-uninitialized)
endif()
target_link_options(heed_flags INTERFACE ${sanitize})

function(heed_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_library(heed_${name} STATIC ${arg_SOURCES})
  target_link_libraries(heed_${name} PUBLIC heed_flags ${arg_LINKS})
endfunction()

# Vector width is chosen at run time. AVX3 is AVX-512 as of its first servers; what AVX3_DL adds is of no use here.
function(heed_simd target)
  set(disabled "HWY_SSSE3|HWY_AVX3_DL")
  if(HEED_SANITIZE)  # one target less to compile with sanitizers, which takes long; ./dev test says so
    string(APPEND disabled "|HWY_SSE4")
  endif()
  target_compile_definitions(${target} PRIVATE "HWY_DISABLED_TARGETS=(${disabled})")
  target_link_libraries(${target} PUBLIC hwy::hwy)
endfunction()

# The debug build, too, would be unbearable with kernels at -O0; with sanitizers, -O3 takes minutes a file.
function(heed_optimise target)
  if(HEED_SANITIZE)
    target_compile_options(${target} PRIVATE -O1 -fno-math-errno)
  else()
    target_compile_options(${target} PRIVATE -O3 -fno-math-errno -falign-loops=64)
  endif()
endfunction()

# What tests are built with: optimised a little, as most of the time goes into compiling them.
function(heed_test_flags target)
  target_link_libraries(${target} PRIVATE heed_flags GTest::gtest rapidcheck rapidcheck_gtest)
  target_compile_options(${target} PRIVATE -O1)
endfunction()

if(HEED_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  # The headers that every test reads, compiled once: as a program, since a library has other flags.
  file(WRITE ${CMAKE_BINARY_DIR}/test_headers.cc "int main() {}\n")
  add_executable(heed_test_headers ${CMAKE_BINARY_DIR}/test_headers.cc)
  heed_test_flags(heed_test_headers)
  target_precompile_headers(heed_test_headers PRIVATE <gtest/gtest.h> <string> <vector>)
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
  add_executable(${name} ${arg_SOURCES})
  heed_test_flags(${name})
  target_link_libraries(${name} PRIVATE ${arg_LINKS} GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM heed_test_headers)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()
