# tests/package/install.cmake - install, move the installation, and find it from outside
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
file(REMOVE_RECURSE ${WORK}/first ${WORK}/moved ${WORK}/fewer ${WORK}/all_build ${WORK}/fewer_build)
file(GLOB old ${WORK}/find_package_*)
file(REMOVE_RECURSE ${WORK}/none ${old})
set(configure ${CMAKE_COMMAND} -S ${SOURCE} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DTENSORPAR_BUILD_TESTS=OFF
  -DTENSORPAR_BUILD_EXAMPLES=OFF -DTENSORPAR_BUILD_BENCH=OFF)
run(${configure} -B ${WORK}/all_build -DTENSORPAR_Z3=${Z3} -DTENSORPAR_MPI=${MPI} -DTENSORPAR_PEERS=ON -DTENSORPAR_RANGES=ON
  -DTENSORPAR_TOOL=ON -DTENSORPAR_BUILD_TOOL=OFF)
run(${CMAKE_COMMAND} --install ${WORK}/all_build --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/moved)

file(GLOB_RECURSE ours RELATIVE ${SOURCE}/include ${SOURCE}/include/*.hpp ${SOURCE}/include/*.cuh)
file(GLOB_RECURSE installed RELATIVE ${WORK}/moved/${HEADERS_DIR} ${WORK}/moved/${HEADERS_DIR}/*)
list(LENGTH ours count)
list(LENGTH installed installed_count)
if(NOT ours STREQUAL installed)
  message(FATAL_ERROR "include/ has ${count} headers, the installation ${installed_count}")
endif()
message(STATUS "${count} headers installed")

set(find -DCMAKE_PREFIX_PATH=${WORK}/moved)
set(parts "json;eigen;threads;peers;ranges;tool")
if(Z3)
  list(APPEND parts z3)
endif()
if(MPI)
  list(APPEND parts mpi)
endif()
set(hide -DCMAKE_DISABLE_FIND_PACKAGE_Z3=ON -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON -DCMAKE_DISABLE_FIND_PACKAGE_Threads=ON
  -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -DCMAKE_DISABLE_FIND_PACKAGE_range-v3=ON)
consume(find_package "" ${find} ${hide})  # the core asks for no part's third party
consume(find_package "json" ${find} -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
set(once "")
if(EXISTS ${BUILD}/libtensorpar_compiled.a)
  set(once -DCOMPILED_ONCE=${BUILD}/libtensorpar_compiled.a)
endif()
consume(find_package "${parts}" ${find} ${once})
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/package/find_package -B ${WORK}/none -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} ${find} -DPARTS=tool)

# A graph of one's own, by the consumer; the zoo's, by the program as it is installed.
set(small --cluster logical:2 --batch 48 --effort quick --out ${WORK}/plan.json)
string(REPLACE ";" "_" name "${parts}")
run(${WORK}/find_package_core_${name}/own_tool plan ${small})
if(NOT output MATCHES "mlp on logical:2: 2 devices, 48 samples a step.*predicted step")
  message(FATAL_ERROR "the tool for a graph of one's own says:\n${output}")
endif()
run(${WORK}/find_package_core_${name}/own_tool check ${WORK}/plan.json)
must_fail("no flag --model" ${WORK}/find_package_core_${name}/own_tool plan --model dlrm ${small})
if(PROGRAM)
  file(REMOVE_RECURSE ${WORK}/program)
  run(${CMAKE_COMMAND} --install ${BUILD} --component tool --prefix ${WORK}/program)
  file(GLOB_RECURSE files RELATIVE ${WORK}/program ${WORK}/program/*)
  if(NOT files MATCHES "^[^;]*/tensorpar$")
    message(FATAL_ERROR "the component tool installs ${files}")
  endif()
  run(${WORK}/program/${files} plan --model mlp_unify:layers=2,hidden=64,features=32 ${small})
  run(${WORK}/program/${files} check ${WORK}/plan.json)
  run(${WORK}/program/${files} run-demo --devices 2 --rounds 1)
  if(NOT output MATCHES "chosen plan.*data parallel.*tensor parallel.*one device.*equal steps all have the same parameters")
    message(FATAL_ERROR "the program's demo says:\n${output}")
  endif()
endif()

set(again ${CMAKE_COMMAND} -S ${SOURCE}/tests/package/find_package -B ${WORK}/none -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} ${find})
must_fail("no part 'teleport': it has eigen, json, (mpi, )?peers, ranges, threads" ${again} -DPARTS=teleport)
must_fail("part 'json' needs the package nlohmann_json" ${again} -DPARTS=json -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON)

# An installation that has no library has its sources: they are a part of the caller's build.
run(${again} --fresh -DPARTS=compiled)
run(${CMAKE_COMMAND} --build ${WORK}/none --target help)
if(NOT output MATCHES "tensorpar_compiled")
  message(FATAL_ERROR "the caller's build has no library tensorpar_compiled:\n${output}")
endif()

# An installation without a part says so.
run(${configure} -B ${WORK}/fewer_build -DTENSORPAR_EIGEN=OFF)
run(${CMAKE_COMMAND} --install ${WORK}/fewer_build --prefix ${WORK}/fewer)
must_fail("no part 'eigen'" ${CMAKE_COMMAND} -S ${SOURCE}/tests/package/find_package -B ${WORK}/none -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${CXX} --fresh -DCMAKE_PREFIX_PATH=${WORK}/fewer -DPARTS=eigen)
must_fail("no part 'eigen'" ${CMAKE_COMMAND} -S ${SOURCE}/tests/package/find_package -B ${WORK}/none -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${CXX} --fresh -DCMAKE_PREFIX_PATH=${WORK}/fewer -DPARTS=compiled)
