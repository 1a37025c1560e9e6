# tests/package/steps.cmake - what the package tests share
cmake_minimum_required(VERSION 3.25)

# run(command...): stops the test if the command fails; its output is in `output`.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${status}): ${command}\n${out}${err}")
  endif()
  set(output "${out}${err}" PARENT_SCOPE)
endfunction()

# must_fail(regex command...): stops the test unless the command fails and says what the expression asks for.
function(must_fail regex)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  list(JOIN ARGN " " command)
  if(status EQUAL 0)
    message(FATAL_ERROR "succeeded, but should not: ${command}")
  endif()
  string(REGEX REPLACE "[ \n]+" " " said "${out}${err}")
  if(NOT said MATCHES "${regex}")
    message(FATAL_ERROR "'${regex}' is not in what was said by: ${command}\n${out}${err}")
  endif()
endfunction()

# consume(project parts options...): configures, builds and runs a consumer, which must name exactly these parts.
function(consume project parts)
  string(REPLACE ";" "_" name "${project};core;${parts}")
  string(REPLACE ";" "," with_commas "${parts}")
  run(${CMAKE_COMMAND} -S ${SOURCE}/tests/package/${project} -B ${WORK}/${name} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
    -DPARTS=${with_commas} ${ARGN})
  run(${CMAKE_COMMAND} --build ${WORK}/${name})
  run(${WORK}/${name}/consumer)
  string(REPLACE ";" " " words "core;${parts}")
  string(STRIP "${words}" words)
  string(STRIP "${output}" output)
  if(NOT output MATCHES ": ${words}$")
    message(FATAL_ERROR "expected the parts '${words}', got '${output}'")
  endif()
  message(STATUS "${project}: ${output}")
endfunction()
