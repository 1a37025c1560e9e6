#include "executors_once.hpp"

#ifndef TENSORPAR_COMPILED
template class tensorpar::executor<tensorpar::compute::eigen<float>, tensorpar::comm::threads>;
#endif
template class tensorpar::executor<tensorpar::compute::eigen<double>, tensorpar::comm::threads>;
template class tensorpar::executor<tensorpar::compute::eigen<tensorpar::prime_field>, tensorpar::comm::threads>;
