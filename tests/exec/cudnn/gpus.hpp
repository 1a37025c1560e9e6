// tests/exec/cudnn/gpus.hpp - GPUs that are not here, as cuDNN writes their properties down
#pragma once

namespace tests {

inline constexpr char const* h100 = R"({"cudaDeviceId": 0, "deviceName": "NVIDIA H100 80GB HBM3", "deviceVer": 900, "driverVer": 13000,
  "isTccDriver": 0, "l2CacheSize": 52428800, "maxBlockSize": [1024, 1024, 64], "maxGridSize": [2147483647, 65535, 65535], "maxCtasPerSM": 32,
  "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "maxThreadsPerBlock": 1024,
  "maxThreadsPerSM": 2048, "memClockRateKHz": 2619000, "multiProcessorCount": 132, "pciDeviceId": 0, "regsPerBlock": 65536,
  "reservedSharedMemoryPerBlock": 1024, "smClockRateKHz": 1980000, "supportCoopLaunch": 1, "totalGlobalMem": 84942979072, "warpSize": 32})";

inline constexpr char const* a100 = R"({"cudaDeviceId": 0, "deviceName": "NVIDIA A100-SXM4-80GB", "deviceVer": 800, "driverVer": 13000,
  "isTccDriver": 0, "l2CacheSize": 41943040, "maxBlockSize": [1024, 1024, 64], "maxGridSize": [2147483647, 65535, 65535], "maxCtasPerSM": 32,
  "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 166912, "maxThreadsPerBlock": 1024,
  "maxThreadsPerSM": 2048, "memClockRateKHz": 1593000, "multiProcessorCount": 108, "pciDeviceId": 0, "regsPerBlock": 65536,
  "reservedSharedMemoryPerBlock": 1024, "smClockRateKHz": 1410000, "supportCoopLaunch": 1, "totalGlobalMem": 84942979072, "warpSize": 32})";

}  // namespace tests
