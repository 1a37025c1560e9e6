# tests/package/fetch_content.cmake - tensorpar as a part of another project's build
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
file(GLOB old ${WORK}/fetch_content_*)
file(REMOVE_RECURSE ${WORK}/none ${old})
set(hide -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON -DCMAKE_DISABLE_FIND_PACKAGE_doctest=ON)
consume(fetch_content "" -DTENSORPAR_SOURCE=${SOURCE} ${hide})
consume(fetch_content "json;eigen;threads" -DTENSORPAR_SOURCE=${SOURCE})
