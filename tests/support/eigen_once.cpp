#include "eigen_once.hpp"

#ifndef TENSORPAR_COMPILED
template class tensorpar::compute::eigen<float>;
#endif
template class tensorpar::compute::eigen<double>;
template class tensorpar::compute::eigen<tensorpar::prime_field>;
