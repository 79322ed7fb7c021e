/* The functions of libcuda.so.1 that must seem to succeed while cuDNN builds a plan on a machine
 * without a driver; nothing is loaded or launched. cudnn_plans.sh makes a library of them and of
 * the other names, which all fail, and gives it to one program. */
enum { SOMETHING = 16 };

static int give(void **handle)
{
    *handle = (void *)SOMETHING;
    return 0;
}

int cuLibraryLoadData(void **library)
{
    return give(library);
}

int cuLibraryGetKernel(void **kernel)
{
    return give(kernel);
}

int cuLibraryGetModule(void **module)
{
    return give(module);
}

int cuLibraryUnload(void *library)
{
    (void)library;
    return 0;
}

int cuKernelGetFunction(void **function)
{
    return give(function);
}

int cuKernelSetAttribute(void)
{
    return 0;
}

int cuKernelGetAttribute(int *value)
{
    *value = 0;
    return 0;
}

int cuFuncSetAttribute(void)
{
    return 0;
}

int cuModuleLoadData(void **module)
{
    return give(module);
}

int cuModuleGetFunction(void **function)
{
    return give(function);
}

int cuModuleUnload(void *module)
{
    (void)module;
    return 0;
}
