// metal_fake.cpp - settings, counts, rules, and the device.
#include "tests/metal/metal_fake.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fake
{
std::recursive_mutex lock;
metal_fake_count count;

namespace
{
struct setting_row {
    const char *name;
    int64_t value;
};
#define SETTING(name, value, meaning) {#name, value},
setting_row settings[] = {METAL_FAKE_SETTINGS(SETTING)};
#undef SETTING

setting_row *find_setting(const char *name, size_t length)
{
    for (setting_row &s : settings)
        if (strlen(s.name) == length && strncmp(s.name, name, length) == 0)
            return &s;
    fprintf(stderr, "fake Metal has no setting %.*s\n", int(length), name);
    abort();
}

void read_environment()
{
    static bool done;
    const char *p = getenv("WEFT_FAKE_METAL");
    if (done)
        return;
    done = true;
    for (; p && *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, "=");
        find_setting(p, n)->value = p[n] ? strtoll(p + n + 1, nullptr, 0) : 1;
        p += strcspn(p, " ");
    }
}

bool collects;
std::string told, told_last;
} // namespace

int64_t setting(const char *name)
{
    FAKE_HOLD;
    read_environment();
    return find_setting(name, strlen(name))->value;
}

device::device() : object("MTLDevice")
{
}

static device *device_at(int index)
{
    static std::vector<device *> all; // as long as the process
    FAKE_HOLD;
    while (int(all.size()) <= index)
        all.push_back(new device);
    return all[size_t(index)];
}

static bool has_family(objc::signed_integer f)
{
    const objc::signed_integer APPLE_1 = 1001, MAC_2 = 2002, COMMON_1 = 3001, METAL_3 = 5001;
    int64_t family = setting("family");
    return (f >= APPLE_1 && f < APPLE_1 + family) || (f == MAC_2 && family >= 7) ||
           (f >= COMMON_1 && f <= COMMON_1 + 2) || (f == METAL_3 && family >= 7);
}

static void setup_device(kind *d)
{
    add_method(d, "name",
               [](device *, selector) { return objc::make_string("Apple GPU of the tests"); });
    add_method(d, "supportsFamily:", [](device *, selector, objc::signed_integer f) {
        return has_family(f);
    });
    add_method(d, "hasUnifiedMemory", [](device *, selector) { return true; });
    add_method(d, "isLowPower", [](device *, selector) { return false; });
    add_method(d, "isHeadless", [](device *, selector) { return false; });
    add_method(d, "registryID", [](device *, selector) { return uint64_t(1); });
    add_method(d, "recommendedMaxWorkingSetSize",
               [](device *, selector) { return uint64_t(setting("working_set")); });
    add_method(d, "maxBufferLength",
               [](device *, selector) { return integer(setting("buffer_max")); });
    add_method(d, "maxThreadgroupMemoryLength",
               [](device *, selector) { return integer(LANES_SHARED_MAX); });
    add_method(d, "maxThreadsPerThreadgroup", [](device *, selector) {
        return size{LANES_THREADS_MAX, LANES_THREADS_MAX, LANES_THREADS_MAX};
    });
    add_method(d, "currentAllocatedSize", [](device *, selector) {
        FAKE_HOLD;
        return integer(count.buffer_bytes + count.wrapped_bytes + count.heap_bytes);
    });
}
} // namespace fake

namespace objc
{
void setup_metal()
{
    kind *d = new kind("MTLDevice", class_of("NSObject"), nullptr);
    fake::setup_device(d);
    fake::setup_memory(d);
    fake::setup_shaders(d);
    fake::setup_commands(d);
}

void broken(const char *format, ...)
{
    char text[1000];
    std::lock_guard<std::recursive_mutex> hold(fake::lock);
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!fake::collects) {
        fprintf(stderr, "Metal's rules: %s\n", text);
        abort();
    }
    fake::told += (fake::told.empty() ? "" : "\n") + std::string(text);
}
} // namespace objc

extern "C" {
void metal_fake_set(const char *name, int64_t value)
{
    FAKE_HOLD;
    fake::read_environment();
    fake::find_setting(name, strlen(name))->value = value;
}
int64_t metal_fake_get(const char *name)
{
    return fake::setting(name);
}
void metal_fake_collect(void)
{
    fake::collects = true;
}
const char *metal_fake_told(void)
{
    FAKE_HOLD;
    fake::told_last = fake::told;
    fake::told.clear();
    return fake::told_last.c_str();
}
void metal_fake_counts(metal_fake_count *out)
{
    FAKE_HOLD;
    *out = fake::count;
    out->objects = objc::objects_alive();
    out->without_pool = objc::objects_without_pool();
}

objc::kind *objc_lookUpClass(const char *name);

fake::device *MTLCreateSystemDefaultDevice(void)
{
    objc_lookUpClass("MTLDevice");
    return fake::setting("devices") > 0 ? objc::retain(fake::device_at(0)) : nullptr;
}
objc::array *MTLCopyAllDevices(void)
{
    objc_lookUpClass("MTLDevice");
    objc::array *a = new objc::array;
    for (int i = 0; i < fake::setting("devices"); i++)
        a->items.push_back(objc::retain(fake::device_at(i)));
    return a;
}
objc::array *MTLCopyAllDevicesWithObserver(void *, void *)
{
    return MTLCopyAllDevices();
}
void MTLRemoveDeviceObserver(const void *)
{
}
}
