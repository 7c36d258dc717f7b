/* Makes a chosen system call fail: LD_PRELOAD over the calls that change files.
 *
 * Calls are counted from 1 where they concern a path in the watched folder, or a descriptor of a file there; the call
 * of the chosen number fails with the chosen errno, or every call from it on. Other files are never touched. A program
 * arms the shim through `failing_calls_arm`; a process that never does, or that execs, is not disturbed unless the
 * environment says so: FAILING_CALLS="number errno lasting folder".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static size_t folder_length;
static atomic_long calls, failures;
static long chosen;
static int chosen_errno, lasting, reading, armed;
static char chosen_name[64];

/* Number 0 counts and fails nothing. An errno of -N sends signal N to the process after the call, which succeeds. */
void failing_calls_arm(const char *path, long number, int error, int from_then_on, int reads) {
    armed = 0;
    snprintf(folder, sizeof folder, "%s", path);
    folder_length = strlen(folder);
    chosen = number;
    chosen_errno = error;
    lasting = from_then_on;
    reading = reads;
    chosen_name[0] = 0;
    atomic_store(&calls, 0);
    atomic_store(&failures, 0);
    armed = 1;
}

void failing_calls_disarm(void) { armed = 0; }
long failing_calls_seen(void) { return atomic_load(&calls); }
long failing_calls_failed(void) { return atomic_load(&failures); }
const char *failing_calls_name(void) { return chosen_name; }

__attribute__((constructor)) static void arm_from_environment(void) {
    const char *said = getenv("FAILING_CALLS");
    long number;
    int error, from_then_on, at = 0;
    if (said && sscanf(said, "%ld %d %d %n", &number, &error, &from_then_on, &at) == 3 && at)
        failing_calls_arm(said + at, number, error, from_then_on, 0);
}

static int below(const char *path) {
    return strncmp(path, folder, folder_length) == 0 && (path[folder_length] == '/' || path[folder_length] == 0);
}

static int descriptor_is_ours(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return below(path);
}

static int path_is_ours(int directory, const char *path) {
    char whole[2 * PATH_MAX], place[PATH_MAX], link[64];
    if (!path) return 0;
    if (path[0] == '/') return below(path);
    if (directory == AT_FDCWD) {
        if (!getcwd(place, sizeof place)) return 0;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        ssize_t length = readlink(link, place, sizeof place - 1);
        if (length <= 0) return 0;
        place[length] = 0;
    }
    snprintf(whole, sizeof whole, "%s/%s", place, path);
    return below(whole);
}

/* Whether this call, which is ours, fails; -1: it is to be followed by a signal. */
static int fails(const char *name) {
    long number = atomic_fetch_add(&calls, 1) + 1;
    if (!chosen || !(lasting && chosen_errno > 0 ? number >= chosen : number == chosen)) return 0;
    if (number == chosen) snprintf(chosen_name, sizeof chosen_name, "%s", name);
    atomic_fetch_add(&failures, 1);
    if (chosen_errno < 0) return -1;
    errno = chosen_errno;
    return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define CALL(type, name, ours, parameters, arguments)              \
    type name parameters {                                         \
        static __typeof__(&name) next;                             \
        if (!next) next = NEXT(name);                              \
        int fate = armed && (ours) ? fails(#name) : 0;             \
        if (fate == 1) return -1;                                  \
        type result = next arguments;                              \
        if (fate == -1) kill(getpid(), -chosen_errno);                   \
        return result;                                             \
    }

CALL(ssize_t, write, descriptor_is_ours(fd), (int fd, const void *bytes, size_t size), (fd, bytes, size))
CALL(ssize_t, pwrite, descriptor_is_ours(fd), (int fd, const void *bytes, size_t size, off_t at), (fd, bytes, size, at))
CALL(ssize_t, pwrite64, descriptor_is_ours(fd), (int fd, const void *bytes, size_t size, off64_t at),
     (fd, bytes, size, at))
CALL(ssize_t, writev, descriptor_is_ours(fd), (int fd, const struct iovec *parts, int count), (fd, parts, count))
CALL(ssize_t, pwritev, descriptor_is_ours(fd), (int fd, const struct iovec *parts, int count, off_t at),
     (fd, parts, count, at))
CALL(ssize_t, pwritev64, descriptor_is_ours(fd), (int fd, const struct iovec *parts, int count, off64_t at),
     (fd, parts, count, at))
CALL(ssize_t, read, reading && descriptor_is_ours(fd), (int fd, void *bytes, size_t size), (fd, bytes, size))
CALL(ssize_t, pread, reading && descriptor_is_ours(fd), (int fd, void *bytes, size_t size, off_t at),
     (fd, bytes, size, at))
CALL(ssize_t, pread64, reading && descriptor_is_ours(fd), (int fd, void *bytes, size_t size, off64_t at),
     (fd, bytes, size, at))
CALL(ssize_t, readv, reading && descriptor_is_ours(fd), (int fd, const struct iovec *parts, int count),
     (fd, parts, count))
CALL(ssize_t, preadv, reading && descriptor_is_ours(fd), (int fd, const struct iovec *parts, int count, off_t at),
     (fd, parts, count, at))
CALL(ssize_t, preadv64, reading && descriptor_is_ours(fd), (int fd, const struct iovec *parts, int count, off64_t at),
     (fd, parts, count, at))
CALL(ssize_t, preadv2, reading && descriptor_is_ours(fd),
     (int fd, const struct iovec *parts, int count, off_t at, int flags), (fd, parts, count, at, flags))
CALL(ssize_t, preadv64v2, reading && descriptor_is_ours(fd),
     (int fd, const struct iovec *parts, int count, off64_t at, int flags), (fd, parts, count, at, flags))
CALL(int, fsync, descriptor_is_ours(fd), (int fd), (fd))
CALL(int, fdatasync, descriptor_is_ours(fd), (int fd), (fd))
CALL(int, ftruncate, descriptor_is_ours(fd), (int fd, off_t size), (fd, size))
CALL(int, ftruncate64, descriptor_is_ours(fd), (int fd, off64_t size), (fd, size))
CALL(int, truncate, path_is_ours(AT_FDCWD, path), (const char *path, off_t size), (path, size))
CALL(int, rename, path_is_ours(AT_FDCWD, to), (const char *from, const char *to), (from, to))
CALL(int, renameat, path_is_ours(directory, to), (int at, const char *from, int directory, const char *to),
     (at, from, directory, to))
CALL(int, renameat2, path_is_ours(directory, to),
     (int at, const char *from, int directory, const char *to, unsigned int flags), (at, from, directory, to, flags))
CALL(int, link, path_is_ours(AT_FDCWD, to), (const char *from, const char *to), (from, to))
CALL(int, linkat, path_is_ours(directory, to), (int at, const char *from, int directory, const char *to, int flags),
     (at, from, directory, to, flags))
CALL(int, mkdir, path_is_ours(AT_FDCWD, path), (const char *path, mode_t mode), (path, mode))
CALL(int, mkdirat, path_is_ours(directory, path), (int directory, const char *path, mode_t mode),
     (directory, path, mode))

static int writes(int flags) { return reading || (flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT; }

#define OPENING(name, directory, parameters, arguments)                                \
    int name parameters {                                                              \
        static __typeof__(&name) next;                                                 \
        if (!next) next = NEXT(name);                                                  \
        mode_t mode = 0;                                                               \
        if (flags & (O_CREAT | __O_TMPFILE)) {                                         \
            va_list more;                                                              \
            va_start(more, flags);                                                     \
            mode = va_arg(more, mode_t);                                               \
            va_end(more);                                                              \
        }                                                                              \
        int fate = armed && writes(flags) && path_is_ours(directory, path) ? fails(#name) : 0; \
        if (fate == 1) return -1;                                                      \
        int result = next arguments;                                                   \
        if (fate == -1) kill(getpid(), -chosen_errno);                                       \
        return result;                                                                 \
    }
#define OPEN(name) OPENING(name, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
#define OPENAT(name) \
    OPENING(name, directory, (int directory, const char *path, int flags, ...), (directory, path, flags, mode))

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
