// tests/exec/cudnn/driver.cpp - takes the place of the GPU's driver while cuDNN compiles kernels for GPUs that are not there: modules
// "load", and all else is refused
extern "C" {
enum { success = 0, no_device = 100 };

int cuLibraryLoadData(void** library) { *library = reinterpret_cast<void*>(16); return success; }
int cuLibraryGetKernel(void** kernel) { *kernel = reinterpret_cast<void*>(16); return success; }
int cuLibraryUnload(void) { return success; }
int cuKernelSetAttribute(void) { return success; }

#define REFUSED(name) int name(void) { return no_device; }
REFUSED(cuInit)
REFUSED(cuDriverGetVersion)
REFUSED(cuDeviceGet)
REFUSED(cuDeviceGetCount)
REFUSED(cuDeviceGetAttribute)
REFUSED(cuCtxGetCurrent)
REFUSED(cuCtxGetDevice)
REFUSED(cuCtxGetLimit)
REFUSED(cuCtxPushCurrent)
REFUSED(cuCtxPopCurrent)
REFUSED(cuStreamGetCtx)
REFUSED(cuLaunchKernel)
REFUSED(cuLaunchKernelEx)
REFUSED(cuLaunchCooperativeKernel)
REFUSED(cuLinkCreate)
REFUSED(cuLinkAddData)
REFUSED(cuLinkComplete)
REFUSED(cuLinkDestroy)
REFUSED(cuLibraryLoadFromFile)
REFUSED(cuKernelGetAttribute)
REFUSED(cuFuncGetAttribute)
REFUSED(cuFuncSetAttribute)
REFUSED(cuOccupancyMaxPotentialClusterSize)
REFUSED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSED(cuTensorMapEncodeTiled)
int cuGetErrorName(int status, char const** name) { (void)status; *name = "refused"; return success; }
int cuGetErrorString(int status, char const** text) { (void)status; *text = "refused by the tests' driver"; return success; }
}
