#include "eigen_once.hpp"

template class tensorpar::compute::eigen<float>;
template class tensorpar::compute::eigen<double>;
template class tensorpar::compute::eigen<tensorpar::prime_field>;
