// metal_fake_shaders.cpp - libraries, functions and pipelines: texts go through metalc.py, whose results are kept by their hash.
#include "tests/metal/metal_fake.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <unistd.h>

namespace fake
{
using objc::broken;
using objc::release;
using objc::retain;
using objc::say_error;

namespace
{
std::string read_all(FILE *f)
{
    std::string text;
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
        text.append(part, n);
    return text;
}

// Runs metalc.py over a text. False: what it says.
bool compile(const std::string &text, std::string *out)
{
    char name[] = "/tmp/metal_textXXXXXX.metal";
    // The name that Metal has for a text; without it a text would be another one with each file.
    const std::string named = "#line 1 \"program_source\"\n" + text;
    int file = mkstemps(name, 6);
    if (file < 0 || write(file, named.data(), named.size()) != ssize_t(named.size()))
        abort();
    close(file);
    std::string command = std::string(FAKE_METALC) + (setting("race") ? " --race" : "") +
                          " --cache " FAKE_CACHE " " + name + " 2>&1";
    FILE *f = popen(command.c_str(), "r");
    *out = f ? read_all(f) : "";
    bool good = f && pclose(f) == 0;
    unlink(name);
    while (!out->empty() && out->back() == '\n')
        out->pop_back();
    return good;
}

// A text without line `number` of phase.metal.
std::string without_line(const std::string &text, int64_t number)
{
    std::istringstream in(text);
    std::string out, row, file;
    for (int64_t line = 1; std::getline(in, row); line++) {
        char name[200];
        long next;
        if (sscanf(row.c_str(), "#line %ld \"%199[^\"]\"", &next, name) == 2) {
            file = name;
            line = next - 1;
        } else if (line == number && file == "kernels/metal/phase.metal") {
            row.clear();
        }
        out += row + "\n";
    }
    return out;
}

library *make_library(const object *source, objc::error **wrong)
{
    std::string text = objc::text_of(source), path;
    char error[LANES_ERROR_MAX];
    if (setting("broken_shader") == 1)
        text += "\nstatic inline void planted()\n{\n    double wide = 0;\n}\n";
    if (setting("without_line"))
        text = without_line(text, setting("without_line"));
    if (!compile(text, &path)) {
        say_error(wrong, path, 3);
        return nullptr;
    }
    FAKE_HOLD;
    const shader_library *shaders = lanes_open(path.c_str(), error);
    if (!shaders) {
        say_error(wrong, error, 1);
        return nullptr;
    }
    library *l = new library;
    l->shaders = shaders;
    count.libraries++;
    return l;
}

function *make_function(library *l, const std::string &name, const constant_values *values,
                        objc::error **wrong)
{
    const shader_kernel *k = lanes_kernel(l->shaders, name.c_str());
    if (!k) {
        say_error(wrong, "there is no function " + name, 5);
        return nullptr;
    }
    for (const shader_constant *c = l->shaders->constants; c; c = c->next) {
        std::string what =
            "function constant " + std::string(c->name) + " (" + std::to_string(c->index) + ")";
        auto at =
            values ? values->value.find(c->index) : std::map<int, std::string>::const_iterator();
        bool given = values && at != values->value.end();
        if (given && at->second.size() == c->bytes)
            continue;
        if (!given && c->optional)
            continue;
        say_error(wrong, what + (given ? " is of another type" : " is not set"), 3);
        return nullptr;
    }
    function *f = new function(l, k);
    if (values)
        f->value = values->value;
    return f;
}

pipeline *make_pipeline(function *f, objc::error **wrong)
{
    FAKE_HOLD;
    if (!f) {
        broken("newComputePipelineState: there is no function");
        return nullptr;
    }
    if (setting("broken_shader") == 2) {
        say_error(wrong, "Compiler encountered an internal error", 2);
        return nullptr;
    }
    pipeline *p = new pipeline(f);
    if (p->shared_bytes() > LANES_SHARED_MAX) {
        say_error(wrong,
                  "Threadgroup memory size (" + std::to_string(p->shared_bytes()) +
                      ") exceeds the maximum threadgroup memory allowed (" +
                      std::to_string(LANES_SHARED_MAX) + ")",
                  3);
        release(p);
        return nullptr;
    }
    count.pipelines++;
    return p;
}

// Bytes of a type that a function constant may have; 0: it may not.
size_t type_bytes(integer type)
{
    const struct {
        integer type;
        size_t bytes;
    } rows[] = {{3, 4},  {16, 2}, {29, 4}, {33, 4}, {37, 2}, {41, 2},
                {45, 1}, {49, 1}, {53, 1}, {81, 8}, {85, 8}}; // MTL::DataType
    for (const auto &row : rows)
        if (row.type == type)
            return row.bytes;
    return 0;
}
} // namespace

function::function(library *l, const shader_kernel *k)
    : object("MTLFunction"), in(retain(l)), kernel(k)
{
}

function::~function()
{
    release(in);
}

pipeline::pipeline(function *f) : object("MTLComputePipelineState"), of(retain(f))
{
}

pipeline::~pipeline()
{
    release(of);
}

integer pipeline::threads_max() const
{
    integer own = integer(of->kernel->threads_max), all = integer(setting("threads_max"));
    return own && own < all ? own : all;
}

integer pipeline::shared_bytes() const
{
    return integer(of->in->shaders->shared_end - of->in->shaders->shared);
}

static void setup_libraries(kind *d)
{
    add_method(d, "newLibraryWithSource:options:error:",
               [](device *, selector, object *source, object *, objc::error **wrong) {
                   return make_library(source, wrong);
               });
    struct options : object {
        options() : object("MTLCompileOptions")
        {
        }
    };
    kind *o = objc::add_class<options>("MTLCompileOptions");
    for (const char *name :
         {"setFastMathEnabled:", "setMathMode:", "setLanguageVersion:", "setOptimizationLevel:",
          "setMathFloatingPointFunctions:", "setPreserveInvariance:"})
        add_method(o, name, [](object *, selector, integer) {});
    add_method(o, "setPreprocessorMacros:", [](object *, selector, object *) {
        broken("setPreprocessorMacros: the fake has none");
    });
    kind *l = new kind("MTLLibrary", objc::class_of("NSObject"), nullptr);
    add_method(l, "newFunctionWithName:", [](library *self, selector, object *name) {
        return make_function(self, objc::text_of(name), nullptr, nullptr);
    });
    add_method(l, "newFunctionWithName:constantValues:error:",
               [](library *self, selector, object *name, constant_values *v, objc::error **wrong) {
                   return make_function(self, objc::text_of(name), v, wrong);
               });
    add_method(l, "functionNames", [](library *self, selector) {
        objc::array *a = new objc::array;
        for (const shader_kernel *k = self->shaders->kernels; k; k = k->next)
            a->items.push_back(new objc::string(k->name));
        return objc::autorelease(a);
    });
}

void setup_shaders(kind *d)
{
    setup_libraries(d);
    kind *v = objc::add_class<constant_values>("MTLFunctionConstantValues");
    add_method(v, "setConstantValue:type:atIndex:",
               [](constant_values *self, selector, const char *value, integer type, integer index) {
                   size_t bytes = type_bytes(type);
                   if (!bytes)
                       broken("setConstantValue: type %lu is none of a function constant", type);
                   self->value[int(index)].assign(value, bytes);
               });
    kind *f = new kind("MTLFunction", objc::class_of("NSObject"), nullptr);
    add_method(f, "name",
               [](function *self, selector) { return objc::make_string(self->kernel->name); });
    add_method(d, "newComputePipelineStateWithFunction:error:",
               [](device *, selector, function *of, objc::error **wrong) {
                   return make_pipeline(of, wrong);
               });
    kind *p = new kind("MTLComputePipelineState", objc::class_of("NSObject"), nullptr);
    add_method(p, "maxTotalThreadsPerThreadgroup",
               [](pipeline *self, selector) { return self->threads_max(); });
    add_method(p, "threadExecutionWidth",
               [](pipeline *, selector) { return integer(FIBRE_WIDTH); });
    add_method(p, "staticThreadgroupMemoryLength",
               [](pipeline *self, selector) { return self->shared_bytes(); });
}
} // namespace fake
