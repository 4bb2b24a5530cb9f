/* Preloaded, it lets one call fail, as a failing or a full disk does, and lets the clock jump.

   MOELAWS_FAULT is CALL:N:ERRNO, such as rename:3:5: the N-th such call, from 0, that concerns a file
   whose path has MOELAWS_FAULT_BELOW in it; "open" is for writing. It makes the file MOELAWS_FAULT_CAME.
   MOELAWS_CLOCK is SECONDS:N: from its N-th reading on the clock is so many seconds off. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int fails(const char *call, const char *path)
{
    static int left, code, is_read = 0;
    const char *fault = getenv("MOELAWS_FAULT"), *below = getenv("MOELAWS_FAULT_BELOW");
    size_t length = strlen(call);
    if (!fault || !below || strncmp(fault, call, length) || fault[length] != ':')
        return 0;
    if (!strstr(path, below))
        return 0;
    if (!is_read) {
        sscanf(fault + length, ":%d:%d", &left, &code);
        is_read = 1;
    }
    if (left-- != 0)
        return 0;
    close(creat(getenv("MOELAWS_FAULT_CAME"), 0600));
    errno = code;
    return 1;
}

static int fails_on(const char *call, int file)
{
    char link[64], path[4096];
    if (!getenv("MOELAWS_FAULT"))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size < 0 ? 0 : size] = 0;
    return fails(call, path);
}

#define FAILING(type, name, is_lost, parameters, ...)           \
    type name parameters                                        \
    {                                                           \
        type(*next) parameters = dlsym(RTLD_NEXT, #name);       \
        return is_lost ? -1 : next(__VA_ARGS__);                \
    }

FAILING(int, rename, fails("rename", to), (const char *from, const char *to), from, to)
FAILING(int, link, fails("link", to), (const char *from, const char *to), from, to)
FAILING(int, unlink, fails("unlink", path), (const char *path), path)
FAILING(int, mkdir, fails("mkdir", path), (const char *path, mode_t mode), path, mode)
FAILING(ssize_t, write, fails_on("write", file), (int file, const void *data, size_t size), file, data, size)
FAILING(ssize_t, read, fails_on("read", file), (int file, void *data, size_t size), file, data, size)
FAILING(int, fsync, fails_on("fsync", file), (int file), file)

static int opened(const char *name, const char *path, int flags, va_list more)
{
    int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, name);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    return (flags & O_ACCMODE) != O_RDONLY && fails("open", path) ? -1 : next(path, flags, mode);
}

#define OPENING(name)                               \
    int name(const char *path, int flags, ...)      \
    {                                               \
        va_list more;                               \
        va_start(more, flags);                      \
        return opened(#name, path, flags, more);    \
    }

OPENING(open)
OPENING(open64)

int clock_gettime(clockid_t id, struct timespec *now)
{
    static int seen = 0;
    static int (*next)(clockid_t, struct timespec *);
    long seconds, first;
    const char *clock = getenv("MOELAWS_CLOCK");
    if (!next)
        next = dlsym(RTLD_NEXT, "clock_gettime");
    int code = next(id, now);
    if (id == CLOCK_REALTIME && clock && sscanf(clock, "%ld:%ld", &seconds, &first) == 2)
        now->tv_sec += seen++ < first ? 0 : seconds;
    return code;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return out ? *out = now.tv_sec : now.tv_sec;
}
