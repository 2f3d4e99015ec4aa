/* test_page_text.c - the page as it was compiled in. What it does is tested in a browser (test_page.py). */
#include "runtime/page/page.h"

#include "tests/base/suite.h"

static const char *header_of(const char *name)
{
    for (int i = 0; i < page_index.header_n; i++)
        if (strcmp(page_index.header[i].name, name) == 0)
            return page_index.header[i].value;
    return NULL;
}

START_TEST(is_whole)
{
    ck_assert_uint_eq(strlen(page_index.bytes), page_index.n);
    ck_assert_int_eq(strncmp(page_index.bytes, "<!doctype html>", 15), 0);
    ck_assert_ptr_nonnull(strstr(page_index.bytes, "\nmain();\n"));
    ck_assert_str_eq(page_index.bytes + page_index.n - 8, "</html>\n");
    ck_assert_uint_lt(page_index.n, 256 * 1024);
}
END_TEST

START_TEST(has_its_headers)
{
    const char *policy = header_of("Content-Security-Policy");
    ck_assert_str_eq(header_of("Content-Type"), "text/html; charset=utf-8");
    ck_assert_ptr_nonnull(policy);
    ck_assert_int_eq(strncmp(policy, "default-src 'none'; script-src 'sha256-", 39), 0);
    ck_assert_ptr_nonnull(strstr(policy, "; frame-ancestors 'none'; "));
    ck_assert_ptr_null(strstr(policy, "unsafe"));
    size_t n = strlen(page_index.etag);
    ck_assert(n == 34 && page_index.etag[0] == '"' && page_index.etag[n - 1] == '"');
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("page");
    tcase_add_test(tc, is_whole);
    tcase_add_test(tc, has_its_headers);
    return suite_run("page", tc, SUITE_FORK);
}
