// tensorpar/ir/machine/device_range.hpp - devices with neighbouring numbers
#pragma once

namespace tensorpar {

/// Devices first .. first + count - 1 of a machine.
struct device_range {
  int first = 0, count = 1;
  friend bool operator==(device_range const&, device_range const&) = default;
};

}  // namespace tensorpar
