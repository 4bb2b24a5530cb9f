/* Preloaded, it lets one call fail with EIO, as a failing disk does.

   MOELAWS_FAULT is CALL:N, such as rename:3: the N-th such call, from 0, that concerns a file whose
   path has MOELAWS_FAULT_BELOW in it. A write concerns the file that the descriptor is open on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(const char *call, const char *path)
{
    static int left, is_read = 0;
    const char *fault = getenv("MOELAWS_FAULT"), *below = getenv("MOELAWS_FAULT_BELOW");
    size_t length = strlen(call);
    if (!fault || !below || strncmp(fault, call, length) || fault[length] != ':')
        return 0;
    if (!strstr(path, below))
        return 0;
    if (!is_read) {
        left = atoi(fault + length + 1);
        is_read = 1;
    }
    if (left-- != 0)
        return 0;
    errno = EIO;
    return 1;
}

static int fails_on(const char *call, int file)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size < 0 ? 0 : size] = 0;
    return fails(call, path);
}

int rename(const char *from, const char *to)
{
    int (*next)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    return fails("rename", to) ? -1 : next(from, to);
}

int unlink(const char *path)
{
    int (*next)(const char *) = dlsym(RTLD_NEXT, "unlink");
    return fails("unlink", path) ? -1 : next(path);
}

ssize_t write(int file, const void *data, size_t size)
{
    ssize_t (*next)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    return fails_on("write", file) ? -1 : next(file, data, size);
}

int fsync(int file)
{
    int (*next)(int) = dlsym(RTLD_NEXT, "fsync");
    return fails_on("fsync", file) ? -1 : next(file);
}
