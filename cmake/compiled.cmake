# cmake/compiled.cmake - what tensorpar::compiled is made of, in this project and in an installation that has its sources alone

# tensorpar_add_compiled(target folder prefix): a library of the sources in the folder, static unless BUILD_SHARED_LIBS says otherwise.
# `prefix`: what the names of the parts' targets begin with. The macro that it defines is the version of the headers, which they compare.
function(tensorpar_add_compiled target folder prefix)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  add_library(${target} ${sources})
  target_link_libraries(${target} PUBLIC ${prefix}json ${prefix}eigen ${prefix}threads)
  string(REGEX REPLACE "^([0-9]+)[.]([0-9]+).*" "\\1;\\2" version "${tensorpar_VERSION}")
  list(GET version 0 major)
  list(GET version 1 minor)
  math(EXPR number "1000 * ${major} + ${minor}")
  target_compile_definitions(${target} PUBLIC TENSORPAR_COMPILED=${number})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()
