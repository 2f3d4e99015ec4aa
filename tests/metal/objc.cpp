// objc.cpp - classes, selectors, owners and pools; the classes of Foundation.
#include "tests/metal/objc.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace objc
{

namespace
{
// Never destroyed: objects may be released while the process ends.
std::map<std::string, kind *> &classes()
{
    static auto *all = new std::map<std::string, kind *>;
    return *all;
}

std::atomic<long> alive, without_pool;

struct pool : object {
    size_t depth = 0;
    pool() : object("NSAutoreleasePool")
    {
    }
};
thread_local std::vector<std::vector<object *>> pools;

// What clang makes of MTLSTR("text").
struct constant_string {
    const void *isa;
    long flags;
    const char *text;
    long bytes;
};

void setup()
{
    static std::once_flag once;
    std::call_once(once, [] {
        setup_foundation();
        setup_metal();
    });
}

method find(const object *o, selector s)
{
    for (const kind *k = o->is_class ? static_cast<const kind *>(o) : o->isa; k; k = k->super) {
        const auto &methods = o->is_class ? k->of_class : k->of_objects;
        auto at = methods.find(s);
        if (at != methods.end())
            return at->second;
    }
    return nullptr;
}
} // namespace

extern "C" {
char __CFConstantStringClassReference[64];
void objc_nil(void);
}

static bool is_constant(const void *o)
{
    return *static_cast<const void *const *>(o) == __CFConstantStringClassReference;
}

object::object(const char *class_name) : isa(class_name ? class_of(class_name) : nullptr)
{
    alive++;
}

object::~object()
{
    alive--;
}

kind::kind(const char *class_name, const kind *super_class, object *(*make_one)(void))
    : object(nullptr), name(class_name), super(super_class), make(make_one)
{
    classes()[name] = this;
    is_class = true;
    alive--; // classes are not counted
}

array::~array()
{
    for (object *o : items)
        release(o);
}

selector selector_of(const char *name)
{
    static std::mutex lock;
    static auto *all = new std::unordered_map<std::string, char *>;
    std::lock_guard<std::mutex> hold(lock);
    char *&s = (*all)[name];
    if (!s)
        s = strdup(name);
    return s;
}

kind *class_of(const char *name)
{
    auto at = classes().find(name);
    return at == classes().end() ? nullptr : at->second;
}

void release(object *o)
{
    if (!o)
        return;
    long left = --o->owners;
    if (left < 0)
        broken("%s is released more often than it was retained", o->isa->name.c_str());
    if (left == 0)
        delete o;
}

void autorelease_object(object *o)
{
    if (!o)
        return;
    if (pools.empty())
        without_pool++;
    else
        pools.back().push_back(o);
}

std::string text_of(const object *s)
{
    if (!s)
        return "";
    if (is_constant(s))
        return reinterpret_cast<const constant_string *>(s)->text;
    return static_cast<const string *>(s)->text;
}

string *make_string(const std::string &text)
{
    return autorelease(new string(text));
}

void say_error(error **out, const std::string &text, long code)
{
    if (out)
        *out = autorelease(new error(text, code));
}

long objects_alive()
{
    return alive;
}

long objects_without_pool()
{
    return without_pool;
}

static void pool_end(pool *p)
{
    while (pools.size() > p->depth) {
        std::vector<object *> last = std::move(pools.back());
        pools.pop_back();
        for (object *o : last)
            release(o);
    }
    delete p;
}

static void setup_objects()
{
    kind *o = new kind("NSObject", nullptr, nullptr);
    add_class_method(o, "alloc", [](const kind *k, selector) { return k->make(); });
    add_method(o, "init", [](object *self, selector) { return self; });
    add_method(o, "retain", [](object *self, selector) { return retain(self); });
    add_method(o, "release", [](object *self, selector) { release(self); });
    add_method(o, "autorelease", [](object *self, selector) { return autorelease(self); });
    add_method(o, "retainCount", [](object *self, selector) { return integer(self->owners); });
    add_method(o, "hash", [](object *self, selector) { return integer(self); });
    add_method(o, "isEqual:", [](object *self, selector, object *other) { return self == other; });
    add_method(o, "description",
               [](object *self, selector) { return make_string(self->isa->name); });
    add_method(o, "respondsToSelector:", [](object *self, selector, selector s) {
        return find(self, s) != nullptr;
    });
    add_method(o, "methodSignatureForSelector:", [](object *, selector, selector) {
        return static_cast<object *>(nullptr);
    });
    add_method(o, "setLabel:", [](object *, selector, object *) {});
    add_method(o, "label", [](object *, selector) { return static_cast<object *>(nullptr); });

    kind *p = add_class<pool>("NSAutoreleasePool");
    add_method(p, "init", [](pool *self, selector) {
        self->depth = pools.size();
        pools.emplace_back();
        return self;
    });
    add_method(p, "drain", [](pool *self, selector) { pool_end(self); });
    add_method(p, "release", [](pool *self, selector) { pool_end(self); });
}

static void setup_strings()
{
    kind *s = add_class<string>("NSString");
    add_class_method(s, "string", [](const kind *, selector) { return make_string(""); });
    add_class_method(s, "stringWithCString:encoding:",
                     [](const kind *, selector, const char *t, integer) { return make_string(t); });
    add_method(s, "initWithCString:encoding:", [](string *self, selector, const char *t, integer) {
        self->text = t;
        return self;
    });
    add_method(s, "initWithBytesNoCopy:length:encoding:freeWhenDone:",
               [](string *self, selector, char *t, integer n, integer, bool own) {
                   self->text.assign(t, n);
                   if (own)
                       free(t);
                   return self;
               });
    add_method(s, "UTF8String", [](string *self, selector) {
        return is_constant(self) ? reinterpret_cast<constant_string *>(self)->text
                                 : self->text.c_str();
    });
    add_method(s, "length", [](string *self, selector) { return integer(text_of(self).size()); });
    add_method(s, "isEqualToString:", [](string *self, selector, string *other) {
        return text_of(self) == text_of(other);
    });

    // The class of constant strings, which nobody owns.
    kind *c = new kind("NSConstantString", s, nullptr);
    add_method(c, "retain", [](object *self, selector) { return self; });
    add_method(c, "release", [](object *, selector) {});
    add_method(c, "autorelease", [](object *self, selector) { return self; });
}

void setup_foundation()
{
    setup_objects();
    setup_strings();
    kind *a = add_class<array>("NSArray");
    add_method(a, "count", [](array *self, selector) { return integer(self->items.size()); });
    add_method(
        a, "objectAtIndex:", [](array *self, selector, integer i) { return self->items.at(i); });
    kind *e = new kind("NSError", class_of("NSObject"), nullptr);
    add_method(e, "localizedDescription",
               [](error *self, selector) { return make_string(self->text); });
    add_method(e, "code", [](error *self, selector) { return self->code; });
    add_method(e, "domain",
               [](error *, selector) { return make_string("MTLCommandBufferErrorDomain"); });
}

} // namespace objc

// ---- what Metal-cpp calls ----

using namespace objc;

extern "C" {
selector sel_registerName(const char *name)
{
    return selector_of(name);
}
const char *sel_getName(selector s)
{
    return s;
}
kind *objc_lookUpClass(const char *name)
{
    setup();
    return class_of(name);
}
kind *objc_getClass(const char *name)
{
    return objc_lookUpClass(name);
}
object *objc_getProtocol(const char *)
{
    return nullptr;
}

// Of objc_send.S: what to jump to.
method objc_method(object *o, selector s)
{
    if (!o)
        return objc_nil;
    if (is_constant(o)) {
        static kind *constant = class_of("NSConstantString");
        for (const kind *k = constant; k; k = k->super) {
            auto at = k->of_objects.find(s);
            if (at != k->of_objects.end())
                return at->second;
        }
        broken("a constant string has no method %s", s);
        return objc_nil;
    }
    method m = find(o, s);
    if (!m) {
        const kind *k = o->is_class ? static_cast<kind *>(o) : o->isa;
        fprintf(stderr, "fake Metal: %c[%s %s] is not provided\n", o->is_class ? '+' : '-',
                k->name.c_str(), s);
        abort();
    }
    return m;
}
}
