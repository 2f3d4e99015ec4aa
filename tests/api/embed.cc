/* embed.cc - weft.h in C++17, warnings as errors: the likeliest tokens after a text of ids, as example.c prints them.
 *
 *     embed MODEL COUNT ID... */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>
#include <weft.h>

namespace
{

struct release {
    void operator()(weft_diag *dg) const
    {
        weft_diag_destroy(dg);
    }
    void operator()(weft_model *m) const
    {
        weft_model_close(m);
    }
    void operator()(weft_session *s) const
    {
        weft_session_destroy(s);
    }
};
template <class T> using held = std::unique_ptr<T, release>;

void check(weft_diag *dg, weft_status status)
{
    if (status != WEFT_OK)
        throw std::runtime_error(weft_diag_text(dg));
}

void run(const char *path, int n_new, const std::vector<int32_t> &prompt)
{
    held<weft_diag> dg(weft_diag_create());
    weft_model *m = nullptr;
    check(dg.get(), weft_model_open(dg.get(), path, nullptr, &m));
    held<weft_model> model(m);

    weft_session_options options{};
    options.size = sizeof options;
    options.context = static_cast<int64_t>(prompt.size()) + n_new;
    weft_session *s = nullptr;
    check(dg.get(), weft_session_create(dg.get(), m, &options, &s));
    held<weft_session> session(s);

    std::vector<weft_row> rows;
    for (int32_t id : prompt) {
        weft_row row{};
        row.token = id;
        row.pos = static_cast<int32_t>(rows.size());
        rows.push_back(row);
    }
    rows.back().want = true;
    for (int i = 0; i < n_new; i++) {
        weft_view logits{};
        check(dg.get(), weft_eval(dg.get(), s, rows.data(), static_cast<int64_t>(rows.size())));
        check(dg.get(), weft_output(dg.get(), s, "logits", -1, &logits));
        const float *row = logits.data + (logits.rows - 1) * logits.width;
        weft_row next{};
        next.token = static_cast<int32_t>(std::max_element(row, row + logits.width) - row);
        next.pos = static_cast<int32_t>(weft_length(s, 0));
        next.want = true;
        rows.assign(1, next);
        std::printf("%d\n", next.token);
    }
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    std::vector<int32_t> prompt;
    for (int i = 3; i < argc; i++)
        prompt.push_back(std::atoi(argv[i]));
    try {
        run(argv[1], std::atoi(argv[2]), prompt);
    } catch (const std::exception &e) {
        std::fputs(e.what(), stderr);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
