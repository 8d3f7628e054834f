/* A disk that misbehaves, for LD_PRELOAD. KAFKAPY_BAD_DISK names a file of 4096 bytes: its first
   byte is what happens to files below the directory whose path begins at byte 64.
   E: writes and fsync fail with EIO; N: writes fail with ENOSPC; S: fsync takes 2 s; L: fsync does
   nothing. Everything else works as ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *control;

__attribute__((constructor)) static void open_control(void) {
    const char *path = getenv("KAFKAPY_BAD_DISK");
    int fd = path ? open(path, O_RDONLY) : -1;
    if (fd < 0) return;
    void *mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED) control = mapped;
    close(fd);
}

static char trouble_of(int fd) {
    char link[64], path[3072];
    char trouble = control ? *(volatile const char *)control : '-';
    if (trouble == '-') return '-';
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return '-';
    path[size] = 0;
    return strncmp(path, control + 64, strlen(control + 64)) ? '-' : trouble;
}

static int write_error(int fd) {
    char trouble = trouble_of(fd);
    return trouble == 'E' ? EIO : trouble == 'N' ? ENOSPC : 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRITE(name, parameters, ...)              \
    ssize_t name parameters {                     \
        int error = write_error(fd);              \
        if (!error) return REAL(name)(__VA_ARGS__); \
        errno = error;                            \
        return -1;                                \
    }
#define SYNC(name)                                        \
    int name(int fd) {                                    \
        char trouble = trouble_of(fd);                    \
        if (trouble == 'S') usleep(2000000);              \
        if (trouble == 'L') return 0;                     \
        if (trouble != 'E') return REAL(name)(fd);        \
        errno = EIO;                                      \
        return -1;                                        \
    }

WRITE(write, (int fd, const void *data, size_t size), fd, data, size)
WRITE(pwrite, (int fd, const void *data, size_t size, off_t at), fd, data, size, at)
WRITE(pwrite64, (int fd, const void *data, size_t size, off64_t at), fd, data, size, at)
WRITE(writev, (int fd, const struct iovec *parts, int count), fd, parts, count)
WRITE(pwritev, (int fd, const struct iovec *parts, int count, off_t at), fd, parts, count, at)
WRITE(pwritev64, (int fd, const struct iovec *parts, int count, off64_t at), fd, parts, count, at)
WRITE(pwritev2, (int fd, const struct iovec *parts, int count, off_t at, int flags), fd, parts,
      count, at, flags)
WRITE(pwritev64v2, (int fd, const struct iovec *parts, int count, off64_t at, int flags), fd, parts,
      count, at, flags)
SYNC(fsync)
SYNC(fdatasync)
