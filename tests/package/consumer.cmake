# tests/package/consumer.cmake - the program of every consumer project, linked to the parts named in PARTS
add_executable(consumer ${CMAKE_CURRENT_LIST_DIR}/consumer.cpp)
target_link_libraries(consumer PRIVATE tensorpar::tensorpar)
foreach(part IN LISTS PARTS)
  string(TOUPPER ${part} upper)
  target_link_libraries(consumer PRIVATE tensorpar::${part})
  target_compile_definitions(consumer PRIVATE WITH_${upper})
endforeach()
