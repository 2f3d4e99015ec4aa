// metal_text.cpp - the text of a file with all that it includes.
#include "runtime/exec/metal_text.h"

#include <cstring>
#include <set>

namespace
{

struct joining {
    const metal_text_file *files;
    int n;
    const metal_text_file *instead;
    std::set<std::string> seen;
    std::string out;
};

const metal_text_file *find(const joining &j, const std::string &name)
{
    if (j.instead && name == j.instead->name)
        return j.instead;
    for (int i = 0; i < j.n; i++)
        if (name == j.files[i].name)
            return &j.files[i];
    return nullptr;
}

// The name in a line that includes a file of ours; empty: it does not.
std::string included(const std::string &line)
{
    const size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#')
        return "";
    const size_t word = line.find_first_not_of(" \t", hash + 1);
    if (word == std::string::npos || line.compare(word, 7, "include") != 0)
        return "";
    const size_t from = line.find('"', word);
    const size_t to = from == std::string::npos ? from : line.find('"', from + 1);
    return to == std::string::npos ? "" : line.substr(from + 1, to - from - 1);
}

bool is_table(const std::string &name)
{
    return name.size() > 4 && name.compare(name.size() - 4, 4, ".def") == 0;
}

void say_line(joining &j, int line, const char *name)
{
    j.out += "#line " + std::to_string(line) + " \"" + name + "\"\n";
}

void add(joining &j, const metal_text_file &f)
{
    int line = 1;
    say_line(j, line, f.name);
    for (const char *at = f.text; *at; line++) {
        const char *end = std::strchr(at, '\n');
        const std::string text = end ? std::string(at, end) : std::string(at);
        const std::string name = included(text);
        const metal_text_file *other = name.empty() ? nullptr : find(j, name);
        at = end ? end + 1 : at + text.size();
        if (!other) {
            j.out += text + "\n";
            continue;
        }
        if (is_table(name) || j.seen.insert(name).second)
            add(j, *other);
        say_line(j, line + 1, f.name);
    }
}

} // namespace

std::string metal_text_join(const metal_text_file *files, int n, const metal_text_file *instead,
                            const char *name)
{
    joining j = {files, n, instead, {name}, ""};
    const metal_text_file *first = find(j, name);
    if (first)
        add(j, *first);
    return j.out;
}
