/* Preloaded into a program: lets a write to a file below a folder fail.
 *
 * FAULT_FOLDER: the folder, with a slash at its end. FAULT_AT: the number of the write, from 1; 0: none. FAULT_ERRNO: the
 * error. FAULT_HOW: once; half (the write writes half of its bytes, and the next one to the file fails); on (all further
 * ones fail, too). FAULT_LOG: a file that gets a byte for each write to the folder, also those that fail.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *folder;
static const char *how = "once";
static long fails_at;
static int error_number;
static int log_fd = -1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long writes;
static int torn_fd = -1;

__attribute__((constructor)) static void begin(void) {
    folder = getenv("FAULT_FOLDER");
    const char *text;
    if ((text = getenv("FAULT_AT"))) fails_at = atol(text);
    if ((text = getenv("FAULT_ERRNO"))) error_number = atoi(text);
    if ((text = getenv("FAULT_HOW"))) how = text;
    if ((text = getenv("FAULT_LOG"))) log_fd = open(text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static int is_below(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path);
    size_t prefix = folder ? strlen(folder) : 0;
    return prefix && len > (ssize_t)prefix && !memcmp(path, folder, prefix);
}

/* Returns the bytes that the write may write; -1: it fails. */
static ssize_t allowed(int fd, size_t bytes) {
    if (!is_below(fd)) return bytes;
    ssize_t result = bytes;
    pthread_mutex_lock(&lock);
    writes++;
    if (log_fd >= 0) syscall(SYS_write, log_fd, "x", 1);
    if (fd == torn_fd) {
        torn_fd = -1;
        result = -1;
    } else if (fails_at && !strcmp(how, "half") && writes == fails_at && bytes > 1) {
        torn_fd = fd;
        result = bytes / 2;
    } else if (fails_at && (writes == fails_at || (writes > fails_at && !strcmp(how, "on")))) {
        result = -1;
    }
    pthread_mutex_unlock(&lock);
    if (result < 0) errno = error_number;
    return result;
}

ssize_t write(int fd, const void *data, size_t bytes) {
    ssize_t most = allowed(fd, bytes);
    return most < 0 ? -1 : syscall(SYS_write, fd, data, (size_t)most);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at) {
    ssize_t most = allowed(fd, bytes);
    return most < 0 ? -1 : syscall(SYS_pwrite64, fd, data, (size_t)most, at);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) {
    return pwrite64(fd, data, bytes, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    /* The first part alone: a short write. */
    if (is_below(fd)) return count > 0 ? write(fd, parts[0].iov_base, parts[0].iov_len) : 0;
    return syscall(SYS_writev, fd, parts, count);
}
