# tests/package/conan.cmake - the Conan package is made, and a consumer built with it, offline: third parties come from the system
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
set(venv ${SOURCE}/build/conan-venv)
set(conan ${venv}/bin/conan)
if(NOT EXISTS ${venv}/ready)
  file(REMOVE_RECURSE ${venv})
  execute_process(COMMAND ${PYTHON} -m venv ${venv} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(status EQUAL 0)
    execute_process(COMMAND ${venv}/bin/python -m pip --quiet --disable-pip-version-check install "conan>=2,<3" RESULT_VARIABLE status
      OUTPUT_VARIABLE out ERROR_VARIABLE err TIMEOUT 300)
  endif()
  if(NOT status EQUAL 0)
    message("package test skipped: Conan 2 could not be installed with pip into build/conan-venv:\n${out}${err}")
    return()
  endif()
  file(TOUCH ${venv}/ready)
endif()

set(ENV{CONAN_HOME} ${WORK}/conan_home)
file(REMOVE_RECURSE ${WORK}/conan_home ${WORK}/conan_build)
run(${CXX} -dumpversion)
string(REGEX MATCH "^[0-9]+" version "${output}")
run(${conan} profile detect)
run(${conan} remote disable "*")
file(WRITE ${WORK}/conan_home/profiles/system "
[settings]
os=Linux
arch=x86_64
build_type=Release
compiler=gcc
compiler.version=${version}
compiler.libcxx=libstdc++11
compiler.cppstd=20
[platform_requires]
boost/1.74.0
nlohmann_json/3.11.2
eigen/3.4.0
[conf]
tools.build:compiler_executables={'cpp': '${CXX}'}
tools.cmake.cmaketoolchain:generator=${GENERATOR}
tools.cmake.cmaketoolchain:extra_variables={'TENSORPAR_CONSUMER': '${SOURCE}/tests/package'}
")
file(READ ${SOURCE}/include/tensorpar/core/config.hpp config)
string(REGEX REPLACE ".*version_major = ([0-9]+).*version_minor = ([0-9]+).*" "\\1.\\2" release "${config}")

set(create ${conan} create ${SOURCE} -pr:a system --no-remote -tf ${SOURCE}/tests/package/conan
  -c:a tools.cmake.cmake_layout:test_folder=${WORK}/conan_build)
run(${create})
if(NOT output MATCHES "tensorpar ${release}: core json eigen threads")
  message(FATAL_ERROR "the consumer did not run with all parts:\n${output}")
endif()
run(${create} -o "&:eigen=False" -o "&:json=False")
if(NOT output MATCHES "tensorpar ${release}: core threads")
  message(FATAL_ERROR "the consumer did not run with the parts that were left on:\n${output}")
endif()
# The library is of one compiler and build type. Making it takes minutes: once where tests are asked for more effort, else its options alone.
run(${conan} graph info --requires=tensorpar/${release}.0 -pr:a system --no-remote --build=missing -o "tensorpar/*:compiled=True")
if(NOT output MATCHES "package_type: static-library" OR NOT output MATCHES "compiler.version=")
  message(FATAL_ERROR "a package with the library is to depend on the compiler:\n${output}")
endif()
if(DEFINED ENV{TENSORPAR_TEST_EFFORT})
  run(${create} -o "&:compiled=True")
  if(NOT output MATCHES "tensorpar ${release}: core json eigen threads compiled")
    message(FATAL_ERROR "the consumer did not run with the library:\n${output}")
  endif()
endif()
must_fail("needs gcc 12 or newer" ${create} -s compiler.version=11)
message(STATUS "conan: tensorpar ${release}, with all parts and with fewer")
