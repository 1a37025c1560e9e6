# cmake/developer.cmake - flags and tools of our own tests, examples and benchmarks; consumers never see them
if(NOT TENSORPAR_JSON OR NOT TENSORPAR_EIGEN OR NOT TENSORPAR_THREADS OR NOT TENSORPAR_PEERS OR NOT TENSORPAR_RANGES OR NOT TENSORPAR_TOOL)
  message(FATAL_ERROR "tests, examples, benchmarks and fuzzers use every part: set TENSORPAR_JSON, TENSORPAR_EIGEN, TENSORPAR_THREADS, TENSORPAR_PEERS, TENSORPAR_RANGES and TENSORPAR_TOOL")
endif()
option(TENSORPAR_WERROR "Treat warnings of our own code as errors (the presets of CMakePresets.json do)" OFF)
option(TENSORPAR_NATIVE "Compile examples and benchmarks for this very processor" ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_EXTENSIONS OFF)

# ccache: precompiled headers need the sloppiness; the base folder lets two checkouts share a cache.
find_program(TENSORPAR_CCACHE ccache)
if(TENSORPAR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    ${TENSORPAR_CCACHE})
  message(STATUS "ccache: ${TENSORPAR_CCACHE}")
endif()

# Other compilers that the header, link and compile-fail tests use where they are installed.
find_program(TENSORPAR_GXX g++)
find_program(TENSORPAR_CLANGXX NAMES clang++-16)
find_program(TENSORPAR_NVCC nvcc HINTS /usr/local/cuda/bin)

# Warnings. g++ 12 invents the four that are not errors (GCC bugs 105329, 105651 and kin).
set(TENSORPAR_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
add_library(tensorpar_developer INTERFACE)
target_compile_options(tensorpar_developer INTERFACE ${TENSORPAR_WARNINGS})
if(TENSORPAR_WERROR)
  target_compile_options(tensorpar_developer INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tensorpar_developer INTERFACE -fconcepts-diagnostics-depth=3 -Wno-error=restrict -Wno-error=maybe-uninitialized
    -Wno-error=array-bounds -Wno-error=stringop-overflow)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(tensorpar_developer INTERFACE -Xclang -fno-pch-timestamp)
endif()
target_link_libraries(tensorpar_developer INTERFACE tensorpar::tensorpar tensorpar::json tensorpar::eigen tensorpar::threads
  tensorpar::peers tensorpar::ranges tensorpar::tool)

# For examples and benchmarks: this processor's instructions. What `native` means enters the command line, so that neither ccache nor a
# kept build folder can hand over code made on another processor.
add_library(tensorpar_native INTERFACE)
target_link_libraries(tensorpar_native INTERFACE tensorpar_developer)
if(TENSORPAR_NATIVE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -E -v -x c++ /dev/null OUTPUT_QUIET ERROR_VARIABLE _native
    RESULT_VARIABLE _failed)
  if(_failed)
    message(STATUS "native: ${CMAKE_CXX_COMPILER} knows no -march=native; examples and benchmarks are compiled for the base processor")
  else()
    string(REGEX MATCHALL " (-m[^\n ]*|--param [^\n ]*|-target-[a-z]+ [^\n ]*)" _native "${_native}")
    string(SHA1 _native "${_native}")
    string(SUBSTRING ${_native} 0 12 _native)
    target_compile_options(tensorpar_native INTERFACE -march=native -DTENSORPAR_NATIVE_CPU=0x${_native})
    if(TENSORPAR_QUICK_PROGRAMS)
      target_compile_options(tensorpar_native INTERFACE -Wno-uninitialized)     # g++ 12 says it of its own header of AVX-512 (PR 105593)
    else()
      target_compile_options(tensorpar_native INTERFACE -O3)     # a tenth faster than -O2, for 40 % more time to compile
    endif()
  endif()
endif()

# For those that tests run for a moment only. Apart from tensorpar_native, whose options would come later and win.
add_library(tensorpar_quick INTERFACE)
target_link_libraries(tensorpar_quick INTERFACE tensorpar_developer)
target_compile_options(tensorpar_quick INTERFACE -O0)

# The library that tests, quick programs and the starter share: with assertions, as tests have them, and little optimised but for kernels and
# for what searches spend their time in.
if(TENSORPAR_COMPILED AND TENSORPAR_QUICK_PROGRAMS)
  target_compile_options(tensorpar_compiled PRIVATE -Og -UNDEBUG -D_GLIBCXX_ASSERTIONS)
  foreach(source kernels mapping program shardings stages)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/${source}.cpp PROPERTIES COMPILE_OPTIONS -O2)
  endforeach()
endif()

# tensorpar_program(TARGET SOURCE): an example or a benchmark. If it is one that tests run for a moment only, what it has in common with
# tests is not compiled again: their explicit instantiations are declared behind it, where they cannot stand in for what it should include.
function(tensorpar_program target source)
  if(NOT TENSORPAR_QUICK_PROGRAMS)
    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE tensorpar_native)
    return()
  endif()
  set(unit "#include \"${source}\"\n")
  set(once "")
  if(TENSORPAR_BUILD_TESTS)
    string(REGEX REPLACE "cpp$" "hpp" header ${source})                         # most of it may be there
    if(NOT EXISTS ${header})
      set(header ${source})
    endif()
    file(STRINGS ${header} executes REGEX "tensorpar/(exec/(executor|trainer)|run).hpp")
    file(STRINGS ${header} searches REGEX "tensorpar/(search/(intra/optimize|joint/joint|plan_training)|tool/tool|plan).hpp")
    file(STRINGS ${header} exact REGEX "(eigen|run)<(double|prime_field)>")     # of which tensorpar::compiled has none
    if(executes AND (exact OR NOT TENSORPAR_COMPILED))
      string(APPEND unit "#include \"support/executors_once.hpp\"\n")
    endif()
    if(searches AND NOT TENSORPAR_COMPILED)
      string(APPEND unit "#include \"support/search_once.hpp\"\n")
    endif()
    if(executes OR searches)
      set(once compiled_once)
    endif()
  endif()
  file(CONFIGURE OUTPUT ${target}.quick.cpp CONTENT "${unit}" @ONLY)
  add_executable(${target} ${CMAKE_CURRENT_BINARY_DIR}/${target}.quick.cpp)
  target_link_libraries(${target} PRIVATE tensorpar_quick ${once} $<TARGET_NAME_IF_EXISTS:tensorpar_compiled>)
  if(once)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  endif()
endfunction()

if(TENSORPAR_CUDA)
  if(NOT TENSORPAR_NVCC)
    message(FATAL_ERROR "TENSORPAR_CUDA is on, but no nvcc was found (neither in PATH nor in /usr/local/cuda/bin)")
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${TENSORPAR_NVCC})
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90)
  endif()
  # nvcc optimises a GPU's code unless told otherwise; -O is about the host's, which would take half of the tests' compile time
  string(APPEND CMAKE_CUDA_FLAGS " -std=c++20")  # CMake 3.25 knows no C++20 of nvcc's
  enable_language(CUDA)
endif()

# tensorpar_mpi_run(NAME TARGET PROCESSES [property value ...]): one ctest entry that runs the target by mpirun. TENSORPAR_MPIRUN is the
# command up to the number of processes.
if(TENSORPAR_MPI)
  set(TENSORPAR_MPIRUN ${MPIEXEC_EXECUTABLE})
  execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE _version ERROR_QUIET)
  if(_version MATCHES "Open MPI|OpenRTE")
    list(APPEND TENSORPAR_MPIRUN --oversubscribe)       # more processes than processors
  endif()
  set(TENSORPAR_MPI_ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
endif()
function(tensorpar_mpi_run name target processes)
  add_test(NAME ${name} COMMAND ${TENSORPAR_MPIRUN} ${MPIEXEC_NUMPROC_FLAG} ${processes} $<TARGET_FILE:${target}>)
  set_tests_properties(${name} PROPERTIES PROCESSORS 2 ENVIRONMENT "${TENSORPAR_MPI_ENVIRONMENT}" ${ARGN})
endfunction()

# tensorpar_runs(TARGET target LABEL label NAME name [ARGS_FILE file]): one ctest entry per line of the file (arguments, split as a shell
# does), or one without arguments when there is no such file. Lines that start with # are comments; one that starts with `then` runs after
# the line before it, where that left its files.
function(tensorpar_runs)
  cmake_parse_arguments(arg "" "TARGET;LABEL;NAME;ARGS_FILE" "" ${ARGN})
  set(runs "")
  if(EXISTS "${arg_ARGS_FILE}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${arg_ARGS_FILE}")
    file(STRINGS "${arg_ARGS_FILE}" runs REGEX "^[^#]")
  endif()
  if(NOT runs)
    set(runs " ")
  endif()
  list(LENGTH runs count)
  set(i 0)
  foreach(run IN LISTS runs)
    math(EXPR i "${i} + 1")
    string(REGEX REPLACE "^then " "" line "${run}")
    separate_arguments(args UNIX_COMMAND "${line}")
    set(test ${arg_LABEL}.${arg_NAME})
    if(count GREATER 1)
      string(APPEND test ".${i}")
    endif()
    set(alone "")
    if(line STREQUAL run)
      set(folder ${CMAKE_CURRENT_BINARY_DIR}/runs/${test})
      file(MAKE_DIRECTORY ${folder})
      set(alone sh -c "rm -rf ./* && exec \"$0\" \"$@\"")            # nothing is left of a run before
    endif()
    add_test(NAME ${test} COMMAND ${alone} $<TARGET_FILE:${arg_TARGET}> ${args} WORKING_DIRECTORY ${folder})
    set_tests_properties(${test} PROPERTIES LABELS ${arg_LABEL} TIMEOUT 600)
    if(NOT line STREQUAL run)   # `then` what follows, where the line before left its files
      set_tests_properties(${test} PROPERTIES DEPENDS ${before})
    endif()
    set(before ${test})
  endforeach()
endfunction()
