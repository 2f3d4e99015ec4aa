// metal_shaders.cpp - the shaders compiled, and pipelines of their kernels.
#include "runtime/exec/metal_gpu.hpp"
#include "runtime/exec/metal_text.h"

#include <cstdio>

metal_shaders *metal_compile(metal_gpu *g, const char *maps, metal_why *why)
{
    metal_pool pool;
    NS::Error *error = nullptr;
    const metal_text_file made = {"kernels/metal/maps.msl", maps};
    const std::string text = metal_text_join(metal_text_files, metal_text_count,
                                             maps ? &made : nullptr, "kernels/metal/phase.metal");
    MTL::CompileOptions *how = MTL::CompileOptions::alloc()->init();
    how->setLanguageVersion(MTL::LanguageVersion3_1);
    how->setFastMathEnabled(false); // sums are in the order that they are written in
    MTL::Library *library = g->device->newLibrary(metal_string(text.c_str()), how, &error);
    how->release();
    if (!library)
        metal_say_error(why, error, "its compiler does not say why");
    return library ? new metal_shaders{g->device, library} : nullptr;
}

void metal_shaders_free(metal_shaders *s)
{
    metal_pool pool;
    s->library->release();
    delete s;
}

metal_pipeline *metal_pipeline_make(metal_shaders *s, const char *name, const uint32_t *constants,
                                    int n, metal_why *why)
{
    metal_pool pool;
    NS::Error *error = nullptr;
    MTL::FunctionConstantValues *values = MTL::FunctionConstantValues::alloc()->init();
    for (int i = 0; i < n; i++)
        values->setConstantValue(&constants[i], MTL::DataTypeUInt, NS::UInteger(i));
    MTL::Function *function = s->library->newFunction(metal_string(name), values, &error);
    values->release();
    MTL::ComputePipelineState *state =
        function ? s->device->newComputePipelineState(function, &error) : nullptr;
    if (!function)
        metal_say_error(why, error, "the shaders have no such kernel");
    else if (!state)
        metal_say_error(why, error, "its compiler does not say why");
    if (function)
        function->release();
    return state ? new metal_pipeline{state} : nullptr;
}

void metal_pipeline_free(metal_pipeline *p)
{
    metal_pool pool;
    p->state->release();
    delete p;
}

int metal_threads_max(const metal_pipeline *p)
{
    return int(p->state->maxTotalThreadsPerThreadgroup());
}
