// objc.hpp - as much of Objective-C's runtime as Metal-cpp needs, and of Foundation: strings, arrays, errors, pools.
//
// An object is a C++ object that counts its owners; a method is a lambda (self, selector, arguments...) in its class. A selector is its
// name, one pointer for each. A method that a class lacks ends the process with its name: the fake grows when it is needed.
#ifndef WEFT_TESTS_METAL_OBJC_HPP
#define WEFT_TESTS_METAL_OBJC_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace objc
{
typedef const char *selector;
typedef void (*method)(void);
typedef unsigned long integer; // NS::UInteger
typedef long signed_integer;

struct kind;

struct object {
    const kind *isa;
    std::atomic<long> owners{1};
    bool is_class = false;
    object(const char *class_name);
    virtual ~object();
};

// A class. It is an object too: +alloc and its like are methods of its own.
struct kind : object {
    std::string name;
    const kind *super;
    object *(*make)(void); // for +alloc; may be nullptr
    std::unordered_map<selector, method> of_objects, of_class;
    kind(const char *class_name, const kind *super_class, object *(*make_one)(void));
};

selector selector_of(const char *name);
kind *class_of(const char *name); // nullptr: there is none

template <class F> void add_method(kind *k, const char *name, F f)
{
    k->of_objects[selector_of(name)] = reinterpret_cast<method>(+f);
}
template <class F> void add_class_method(kind *k, const char *name, F f)
{
    k->of_class[selector_of(name)] = reinterpret_cast<method>(+f);
}
// A class whose objects are T, for +alloc and init.
template <class T> kind *add_class(const char *name, const char *super = "NSObject")
{
    return new kind(name, class_of(super), []() -> object * { return new T; });
}

template <class T> T *retain(T *o)
{
    if (o)
        o->owners++;
    return o;
}
void release(object *o);
void autorelease_object(object *o); // of the innermost pool of this thread
template <class T> T *autorelease(T *o)
{
    autorelease_object(o);
    return o;
}

// ---- Foundation ----

struct string : object {
    std::string text;
    explicit string(std::string t = "") : object("NSString"), text(std::move(t))
    {
    }
};
struct array : object {
    std::vector<object *> items; // owned
    array() : object("NSArray")
    {
    }
    ~array() override;
};
struct error : object {
    std::string text;
    long code;
    error(std::string t, long c) : object("NSError"), text(std::move(t)), code(c)
    {
    }
};

std::string text_of(const object *s);         // of a string, a constant one too
string *make_string(const std::string &text); // of the pool
// Fills out, where it is not nullptr, with an error of the pool.
void say_error(error **out, const std::string &text, long code);

// Objects that are alive, and those that were handed out with no pool to release them.
long objects_alive();
long objects_without_pool();

// What a rule of the runtime is broken by; metal_fake.cpp says it.
void broken(const char *format, ...) __attribute__((format(printf, 1, 2)));

void setup_foundation();
void setup_metal(); // metal_fake*.cpp
} // namespace objc

#endif
