/* fuzz_replay.c - a main for a fuzz target without libFuzzer: feeds it each file named on the command
 * line, and each file directly inside a folder named there. A crash is the failure. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t replayed;

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 1;
    }
    size_t n = 0, cap = 1 << 16;
    uint8_t *data = malloc(cap);
    while (data && (n += fread(data + n, 1, cap - n, f)) == cap)
        data = realloc(data, cap *= 2);
    int failed = !data || ferror(f);
    fclose(f);
    if (failed) {
        fprintf(stderr, "%s: cannot be read\n", path);
        free(data);
        return 1;
    }
    /* An exact copy, so that the address sanitizer sees a read past the end. */
    uint8_t *exact = malloc(n ? n : 1);
    if (exact) {
        memcpy(exact, data, n);
        LLVMFuzzerTestOneInput(exact, n);
        replayed++;
    }
    free(exact);
    free(data);
    return exact == NULL;
}

static int replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        perror(path);
        return 1;
    }
    if (!S_ISDIR(st.st_mode))
        return replay_file(path);
    DIR *d = opendir(path);
    if (!d) {
        perror(path);
        return 1;
    }
    int failed = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char file[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        failed |= replay_file(file);
    }
    closedir(d);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= replay(argv[i]);
    printf("%zu inputs replayed\n", replayed);
    return failed || replayed == 0;
}
