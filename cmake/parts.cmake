# cmake/parts.cmake - the core and its optional parts: targets, install rules, and what find_package(tensorpar COMPONENTS ...) reads
include(CMakePackageConfigHelpers)
set(TENSORPAR_CONFIG_DIR "${CMAKE_INSTALL_DATADIR}/cmake/tensorpar")

# Installs the headers, the core's targets file and the package's config and version files.
function(tensorpar_install_core)
  if(NOT TENSORPAR_INSTALL)
    return()
  endif()
  install(TARGETS tensorpar EXPORT tensorpar-targets FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT tensorpar-targets NAMESPACE tensorpar:: DESTINATION ${TENSORPAR_CONFIG_DIR})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tensorpar-config.cmake.in
    ${PROJECT_BINARY_DIR}/cmake/tensorpar-config.cmake INSTALL_DESTINATION ${TENSORPAR_CONFIG_DIR} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/tensorpar-config-version.cmake
    COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
  install(FILES ${PROJECT_BINARY_DIR}/cmake/tensorpar-config.cmake ${PROJECT_BINARY_DIR}/cmake/tensorpar-config-version.cmake
    ${PROJECT_SOURCE_DIR}/cmake/FindZ3.cmake ${PROJECT_SOURCE_DIR}/cmake/FindNCCL.cmake
    ${PROJECT_SOURCE_DIR}/cmake/FindCUDNN.cmake DESTINATION ${TENSORPAR_CONFIG_DIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/ DESTINATION ${TENSORPAR_CONFIG_DIR}/src)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/compiled.cmake DESTINATION ${TENSORPAR_CONFIG_DIR})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/tensorpar)
endfunction()

# tensorpar_part(name PACKAGE package [VERSION v] [PARTS parts] LINK targets): the target tensorpar::name = the core + one third party + the
# named parts, if the option TENSORPAR_<NAME> is on. Installed, it is a component that looks for its package only when asked for.
function(tensorpar_part name)
  cmake_parse_arguments(arg "" "PACKAGE;VERSION" "PARTS;LINK" ${ARGN})
  string(TOUPPER ${name} upper)
  if(NOT TENSORPAR_${upper})
    return()
  endif()
  foreach(part IN LISTS arg_PARTS)
    if(NOT TARGET tensorpar_${part})
      string(TOUPPER ${part} needed)
      message(FATAL_ERROR "TENSORPAR_${upper} needs TENSORPAR_${needed}")
    endif()
    list(APPEND arg_LINK tensorpar_${part})
  endforeach()
  find_package(${arg_PACKAGE} ${arg_VERSION} REQUIRED GLOBAL)
  add_library(tensorpar_${name} INTERFACE)
  add_library(tensorpar::${name} ALIAS tensorpar_${name})
  set_target_properties(tensorpar_${name} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(tensorpar_${name} INTERFACE tensorpar ${arg_LINK})
  if(NOT TENSORPAR_INSTALL)
    return()
  endif()
  install(TARGETS tensorpar_${name} EXPORT tensorpar-${name}-targets)
  install(EXPORT tensorpar-${name}-targets NAMESPACE tensorpar:: DESTINATION ${TENSORPAR_CONFIG_DIR})
  file(WRITE ${PROJECT_BINARY_DIR}/cmake/tensorpar-${name}-needs.cmake "set(_tensorpar_needs ${arg_PACKAGE} ${arg_VERSION})\n")
  install(FILES ${PROJECT_BINARY_DIR}/cmake/tensorpar-${name}-needs.cmake DESTINATION ${TENSORPAR_CONFIG_DIR})
endfunction()

# tensorpar_compiled_library(): the target tensorpar::compiled, of which an installation has the library too.
include(${CMAKE_CURRENT_LIST_DIR}/compiled.cmake)
function(tensorpar_compiled_library)
  foreach(part JSON EIGEN THREADS)
    if(NOT TENSORPAR_${part})
      message(FATAL_ERROR "tensorpar::compiled writes plans, has kernels and runs threads: TENSORPAR_COMPILED needs TENSORPAR_${part}")
    endif()
  endforeach()
  tensorpar_add_compiled(tensorpar_compiled ${PROJECT_SOURCE_DIR}/src tensorpar_)
  add_library(tensorpar::compiled ALIAS tensorpar_compiled)
  set_target_properties(tensorpar_compiled PROPERTIES EXPORT_NAME compiled VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(TENSORPAR_INSTALL)
    install(TARGETS tensorpar_compiled EXPORT tensorpar-compiled-targets)
    install(EXPORT tensorpar-compiled-targets NAMESPACE tensorpar:: DESTINATION ${TENSORPAR_CONFIG_DIR})
  endif()
endfunction()
