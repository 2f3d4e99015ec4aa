/* test_cuda_image.c - libweft_cuda as it was built: of these sources, with images that a driver can be given. */
#include "tests/base/suite.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include "kernels/cuda/image.h"

static const weft_cuda_image *image_load(void)
{
    void *lib = dlopen(WEFT_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(lib != NULL, "%s", dlerror());
    weft_cuda_fn *entry;
    void *found = dlsym(lib, CUDA_ENTRY);
    memcpy(&entry, &found, sizeof entry);
    ck_assert_ptr_nonnull(found);
    ck_assert_ptr_null(dlsym(lib, "cuda_build_id")); /* the entry is its only export */
    return entry();
}

START_TEST(is_of_this_build)
{
    ck_assert_str_eq(image_load()->build, cuda_build_id());
}
END_TEST

/* A fat binary: magic, version and bytes of the header, bytes behind it (fatbinary_section.h of the toolkit). */
static void is_fat(cuda_fatbin f)
{
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t rest_bytes;
    } head;
    ck_assert_uint_gt(f.bytes, sizeof head);
    memcpy(&head, f.at, sizeof head);
    ck_assert_uint_eq(head.magic, 0xba55ed50u);
    ck_assert_uint_eq(head.header_bytes + head.rest_bytes, f.bytes);
}

START_TEST(has_fat_binaries)
{
    const weft_cuda_image *c = image_load();
    is_fat(c->phases);
    is_fat(c->grids);
    ck_assert_ptr_nonnull(strstr(c->made_for, "sm_90a"));
}
END_TEST

SUITE_MAIN("cuda_image", is_of_this_build, has_fat_binaries)
