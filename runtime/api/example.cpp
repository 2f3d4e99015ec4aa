// example.cpp - several answers to one prompt, stepped together: the prompt is evaluated once.
//
//     c++ -std=c++17 example.cpp $(pkg-config --cflags --libs weft) -o example
//     ./example MODEL "Once upon a time" 3
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <weft.h>

template <auto Release> struct releaser {
    template <class T> void operator()(T *p) const { Release(p); }
};
template <class T, auto Release> using owner = std::unique_ptr<T, releaser<Release>>;

using diag = owner<weft_diag, weft_diag_destroy>;
using model = owner<weft_model, weft_model_close>;
using tokenizer = owner<weft_tokenizer, weft_tokenizer_close>;
using session = owner<weft_session, weft_session_destroy>;
using generation = owner<weft_generation, weft_generation_destroy>;

static diag messages(weft_diag_create());

// Throws what the call recorded; `made` is what it handed out.
template <class Owner, class Call> static Owner made(Call call)
{
    typename Owner::pointer p = nullptr;
    if (call(&p) != WEFT_OK)
        throw std::runtime_error(weft_diag_text(messages.get()));
    return Owner(p);
}

static void check(weft_status status)
{
    if (status != WEFT_OK)
        throw std::runtime_error(weft_diag_text(messages.get()));
}

static void run(const char *path, const std::string &prompt, int n)
{
    weft_diag *dg = messages.get();
    auto m = made<model>([&](weft_model **out) { return weft_model_open(dg, path, nullptr, out); });
    auto t = made<tokenizer>([&](weft_tokenizer **out) { return weft_tokenizer_of_model(dg, m.get(), out); });

    weft_session_options room{};
    room.size = sizeof room;
    room.threads = -1;
    room.sequences = n;
    auto s = made<session>([&](weft_session **out) { return weft_session_create(dg, m.get(), &room, out); });

    std::vector<generation> owned;
    std::vector<weft_generation *> answers;
    for (int i = 0; i < n; i++) {
        weft_sampler_options pick{};
        pick.size = sizeof pick;
        weft_sampler_defaults(&pick);
        pick.seed = 7 + i;
        weft_generation_options how{};
        how.size = sizeof how;
        how.seq = i;
        how.max_tokens = 24;
        how.sampler = &pick;
        owned.push_back(made<generation>(
            [&](weft_generation **out) { return weft_generation_create(dg, s.get(), t.get(), &how, out); }));
        answers.push_back(owned.back().get());
    }

    int32_t *ids = nullptr;
    size_t n_id = 0;
    check(weft_encode(dg, t.get(), prompt.data(), prompt.size(), WEFT_ADD_SPECIAL, &ids, &n_id));
    owner<int32_t, weft_free> kept(ids);
    check(weft_generation_prompt(dg, answers[0], ids, n_id));
    std::vector<std::string> text(n);
    bool forked = false, going = true;
    while (going) {
        check(weft_step(dg, s.get(), answers.data(), forked ? answers.size() : 1));
        going = false;
        for (int i = 0; i < (forked ? n : 1); i++) {
            const weft_piece *piece = weft_generation_piece(answers[i]);
            text[i].append(piece->text, piece->bytes);
            going |= piece->end == WEFT_END_NONE;
        }
        if (!forked && weft_generation_piece(answers[0])->token >= 0) {
            // The prompt is evaluated: the others share it, and give answers of their own.
            for (int i = 1; i < n; i++)
                check(weft_generation_fork(dg, answers[0], answers[i], true));
            forked = true;
            going = true;
        }
    }
    for (const std::string &one : text)
        std::cout << prompt << one << "\n";
}

int main(int argc, char **argv)
{
    if (argc != 4 || std::atoi(argv[3]) < 1) {
        std::cerr << "usage: " << argv[0] << " MODEL TEXT COUNT\n";
        return 2;
    }
    try {
        run(argv[1], argv[2], std::atoi(argv[3]));
    } catch (const std::exception &e) {
        std::cerr << e.what();
        return 1;
    }
}
