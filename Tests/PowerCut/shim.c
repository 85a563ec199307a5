// A shim that simulates a disk, loaded into a process with LD_PRELOAD. It maintains an image of a directory:
// the data that would remain after a power cut. It ends the process at a chosen change of the disk, and makes
// a chosen write or sync fail.
//
// The model, as strict as POSIX permits:
//   - written bytes, truncations and new sizes reach the image when the file is synced;
//   - names (files created, renamed, removed) reach it when their directory is synced, in order;
//   - a failed sync loses its data permanently, although the process still reads it (like Linux);
//   - at a cut, nothing else remains (mode "drop"), or some writes of each file since its last sync, cut at sectors, and the
//     first few changes of the directory (mode "tear").
// The shim makes no real syncs: only the image counts, and thousands of cuts must run in minutes.
//
// Environment: POWERCUT_DIR the directory, POWERCUT_IMAGE its image (an empty directory on the same file system),
// POWERCUT_OBJECTS the directory of the image's files, POWERCUT_AT the change at which the process ends (0: never),
// POWERCUT_SEED, POWERCUT_MODE drop|tear, POWERCUT_FAIL_WRITE and POWERCUT_FAIL_SYNC the number of the call that fails
// (0: none).

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { MAX_FILES = 8192, MAX_OBJECTS = 65536, SECTOR = 512 };

typedef struct pending {
  struct pending *next;
  off_t offset;
  size_t length;  // of data; SIZE_MAX for a truncation to `offset`
  char data[];
} pending;

typedef struct {
  int id;
  int is_log;
  pending *first, **last;
} object;

typedef struct change {
  struct change *next;
  enum { CREATED, RENAMED, REMOVED } kind;
  int id;
  char *from, *to;
} change;

typedef struct name {
  struct name *next;
  char *path;
  object *file;
} name;

static struct {
  pthread_mutex_t lock;
  int ready;
  char dir[4096], image[4096], objects[4096];
  size_t dir_length;
  object *open_files[MAX_FILES];
  char is_dir[MAX_FILES];
  name *names;
  change *first_change, **last_change;
  int next_id, fault, tear;
  long changes, writes, syncs, directory_syncs, cut_at, fail_write, fail_sync;
  uint64_t random;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int (*real_open)(const char *, int, ...);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_ftruncate)(int, off_t);
static int (*real_rename)(const char *, const char *);
static int (*real_unlink)(const char *);
static int (*real_close)(int);
static int (*real_link)(const char *, const char *);

static uint64_t next_random(void) {
  disk.random += 0x9E3779B97F4A7C15ull;
  uint64_t z = disk.random;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

static void fail(const char *what) {
  dprintf(2, "powercut: %s: %s\n", what, strerror(errno));
  _exit(99);
}

static void object_path(char *out, size_t size, int id) { snprintf(out, size, "%s/%d", disk.objects, id); }

static void image_path(char *out, size_t size, const char *name) { snprintf(out, size, "%s/%s", disk.image, name); }

// The name relative to the directory, or null for other paths.
static const char *inside(const char *path) {
  if (!disk.ready || strncmp(path, disk.dir, disk.dir_length) != 0) return NULL;
  const char *rest = path + disk.dir_length;
  if (*rest == 0) return "";
  if (*rest != '/') return NULL;
  while (*rest == '/') rest++;
  return rest;
}

static name **find(const char *path) {
  name **at = &disk.names;
  while (*at && strcmp((*at)->path, path) != 0) at = &(*at)->next;
  return at;
}

static object *make_object(const char *path) {
  object *file = calloc(1, sizeof *file);
  file->id = disk.next_id++;
  file->last = &file->first;
  size_t length = strlen(path);
  file->is_log = length > 4 && strcmp(path + length - 4, ".log") == 0;
  char at[8192];
  object_path(at, sizeof at, file->id);
  int fd = real_open(at, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) fail("object");
  real_close(fd);
  name *entry = calloc(1, sizeof *entry);
  entry->path = strdup(path);
  entry->file = file;
  entry->next = disk.names;
  disk.names = entry;
  return file;
}

static void add_pending(object *file, off_t offset, const void *data, size_t length) {
  size_t bytes = length == SIZE_MAX ? 0 : length;
  pending *p = malloc(sizeof *p + bytes);
  p->next = NULL;
  p->offset = offset;
  p->length = length;
  if (bytes) memcpy(p->data, data, bytes);
  *file->last = p;
  file->last = &p->next;
}

static void forget_pending(object *file) {
  for (pending *p = file->first, *next; p; p = next) {
    next = p->next;
    free(p);
  }
  file->first = NULL;
  file->last = &file->first;
}

static void apply_data(int fd, const char *data, size_t length, off_t offset) {
  while (length > 0) {
    ssize_t done = real_pwrite(fd, data, length, offset);
    if (done <= 0) fail("image write");
    data += done;
    length -= done;
    offset += done;
  }
}

// Applies the pending changes of a file to the image: all of them, or the part that a power cut in mode
// "tear" leaves.
static void apply_pending(object *file, int torn) {
  if (!file->first) return;
  char at[8192];
  object_path(at, sizeof at, file->id);
  int fd = real_open(at, O_WRONLY | O_CLOEXEC);
  if (fd < 0) fail("object");
  for (pending *p = file->first; p; p = p->next) {
    if (torn && next_random() % 3 == 0) break;
    if (p->length == SIZE_MAX) {
      if (real_ftruncate(fd, p->offset) != 0) fail("image truncate");
    } else if (!torn || next_random() % 2 == 0) {
      apply_data(fd, p->data, p->length, p->offset);
    } else {
      for (size_t done = 0; done < p->length; done += SECTOR) {
        size_t part = p->length - done < SECTOR ? p->length - done : SECTOR;
        if (next_random() % 4) apply_data(fd, p->data + done, part, p->offset + done);
      }
    }
  }
  real_close(fd);
  if (!torn) forget_pending(file);
}

static void apply_change(change *c) {
  char from[8192], to[8192];
  if (c->kind == CREATED) {
    object_path(from, sizeof from, c->id);
    image_path(to, sizeof to, c->to);
    real_unlink(to);
    if (real_link(from, to) != 0) fail("image link");
  } else if (c->kind == RENAMED) {
    image_path(from, sizeof from, c->from);
    image_path(to, sizeof to, c->to);
    if (real_rename(from, to) != 0) fail("image rename");
  } else {
    image_path(from, sizeof from, c->from);
    if (real_unlink(from) != 0) fail("image unlink");
  }
}

// Applies pending changes of names to the image: all, or in mode "tear" the first few.
static void apply_changes(int torn) {
  while (disk.first_change) {
    if (torn && next_random() % 3 == 0) return;
    change *c = disk.first_change;
    apply_change(c);
    disk.first_change = c->next;
    free(c->from);
    free(c->to);
    free(c);
  }
  disk.last_change = &disk.first_change;
}

static void add_change(int kind, int id, const char *from, const char *to) {
  change *c = calloc(1, sizeof *c);
  c->kind = kind;
  c->id = id;
  c->from = from ? strdup(from) : NULL;
  c->to = to ? strdup(to) : NULL;
  *disk.last_change = c;
  disk.last_change = &c->next;
}

// Counts a change of the disk. At the chosen change it ends the process, which simulates the power cut. The
// caller holds the lock, so the image is consistent.
static void count_change(void) {
  if (++disk.changes != disk.cut_at) return;
  if (disk.tear) {
    for (name *n = disk.names; n; n = n->next) apply_pending(n->file, 1);
    apply_changes(1);
  }
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static object *tracked(int fd) { return disk.ready && fd >= 0 && fd < MAX_FILES ? disk.open_files[fd] : NULL; }

// Copies the contents that the directory has at the start to the image, because they are durable.
static void adopt(void) {
  DIR *entries = opendir(disk.dir);
  if (!entries) fail("directory");
  for (struct dirent *entry; (entry = readdir(entries));) {
    if (entry->d_name[0] == '.') continue;
    char path[8192], copy[8192], buffer[1 << 16];
    snprintf(path, sizeof path, "%s/%s", disk.dir, entry->d_name);
    int from = real_open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0) fail("adopt");
    object *file = make_object(entry->d_name);
    object_path(copy, sizeof copy, file->id);
    int to = real_open(copy, O_WRONLY | O_CLOEXEC);
    off_t offset = 0;
    for (ssize_t count; (count = read(from, buffer, sizeof buffer)) > 0; offset += count)
      apply_data(to, buffer, count, offset);
    real_close(from);
    real_close(to);
    change c = {.kind = CREATED, .id = file->id, .to = entry->d_name};
    apply_change(&c);
  }
  closedir(entries);
}

static long number(const char *variable) {
  const char *text = getenv(variable);
  return text ? atol(text) : 0;
}

__attribute__((constructor)) static void start(void) {
  real_open = dlsym(RTLD_NEXT, "open");
  real_write = dlsym(RTLD_NEXT, "write");
  real_pwrite = dlsym(RTLD_NEXT, "pwrite");
  real_fsync = dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
  real_rename = dlsym(RTLD_NEXT, "rename");
  real_unlink = dlsym(RTLD_NEXT, "unlink");
  real_close = dlsym(RTLD_NEXT, "close");
  real_link = dlsym(RTLD_NEXT, "link");
  const char *dir = getenv("POWERCUT_DIR");
  if (!dir) return;
  snprintf(disk.dir, sizeof disk.dir, "%s", dir);
  snprintf(disk.image, sizeof disk.image, "%s", getenv("POWERCUT_IMAGE"));
  snprintf(disk.objects, sizeof disk.objects, "%s", getenv("POWERCUT_OBJECTS"));
  disk.dir_length = strlen(disk.dir);
  disk.last_change = &disk.first_change;
  disk.random = number("POWERCUT_SEED");
  disk.cut_at = number("POWERCUT_AT");
  disk.fail_write = number("POWERCUT_FAIL_WRITE");
  disk.fail_sync = number("POWERCUT_FAIL_SYNC");
  const char *mode = getenv("POWERCUT_MODE");
  disk.tear = mode && strcmp(mode, "tear") == 0;
  adopt();
  disk.ready = 1;
}

// The kind of file whose write or sync failed: 0 none, 1 a write-ahead log, 2 another file.
int powercut_fault(void) {
  pthread_mutex_lock(&disk.lock);
  int fault = disk.fault;
  pthread_mutex_unlock(&disk.lock);
  return fault;
}

// How often the directory was synced.
long powercut_directory_syncs(void) {
  pthread_mutex_lock(&disk.lock);
  long syncs = disk.directory_syncs;
  pthread_mutex_unlock(&disk.lock);
  return syncs;
}

int open(const char *path, int flags, ...) {
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  if (!real_open) real_open = dlsym(RTLD_NEXT, "open");
  const char *at = inside(path);
  if (!at) return real_open(path, flags, mode);
  pthread_mutex_lock(&disk.lock);
  object *file = NULL;
  if (*at) {
    name *known = *find(at);
    file = known ? known->file : NULL;
    if ((flags & O_CREAT) && !file) count_change();
  }
  int fd = real_open(path, flags, mode);
  if (fd >= 0 && fd < MAX_FILES) {
    if (*at && !file && (flags & O_CREAT)) {
      file = make_object(at);
      add_change(CREATED, file->id, NULL, at);
    } else if (file && (flags & O_TRUNC)) {
      add_pending(file, 0, NULL, SIZE_MAX);
    }
    disk.open_files[fd] = file;
    disk.is_dir[fd] = *at == 0;
  }
  int code = errno;
  pthread_mutex_unlock(&disk.lock);
  errno = code;
  return fd;
}

int open64(const char *path, int flags, ...) {
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  return open(path, flags, mode);
}

int close(int fd) {
  if (!real_close) real_close = dlsym(RTLD_NEXT, "close");
  if (disk.ready && fd >= 0 && fd < MAX_FILES) {
    pthread_mutex_lock(&disk.lock);
    disk.open_files[fd] = NULL;
    disk.is_dir[fd] = 0;
    pthread_mutex_unlock(&disk.lock);
  }
  return real_close(fd);
}

static ssize_t write_tracked(object *file, int fd, const void *data, size_t length, off_t offset, int at_offset) {
  pthread_mutex_lock(&disk.lock);
  count_change();
  int fails = ++disk.writes == disk.fail_write;
  size_t part = fails ? length / 2 : length;
  if (!at_offset) offset = lseek(fd, 0, SEEK_CUR);
  ssize_t done = at_offset ? real_pwrite(fd, data, part, offset) : real_write(fd, data, part);
  int code = errno;
  if (done > 0) add_pending(file, offset, data, done);
  if (fails) {
    disk.fault = file->is_log ? 1 : 2;
    done = -1;
    code = EIO;
  }
  pthread_mutex_unlock(&disk.lock);
  errno = code;
  return done;
}

ssize_t write(int fd, const void *data, size_t length) {
  if (!real_write) real_write = dlsym(RTLD_NEXT, "write");
  object *file = tracked(fd);
  return file ? write_tracked(file, fd, data, length, 0, 0) : real_write(fd, data, length);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
  if (!real_pwrite) real_pwrite = dlsym(RTLD_NEXT, "pwrite");
  object *file = tracked(fd);
  return file ? write_tracked(file, fd, data, length, offset, 1) : real_pwrite(fd, data, length, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset) { return pwrite(fd, data, length, offset); }

int ftruncate(int fd, off_t length) {
  if (!real_ftruncate) real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
  object *file = tracked(fd);
  if (!file) return real_ftruncate(fd, length);
  pthread_mutex_lock(&disk.lock);
  count_change();
  int result = real_ftruncate(fd, length);
  int code = errno;
  if (result == 0) add_pending(file, length, NULL, SIZE_MAX);
  pthread_mutex_unlock(&disk.lock);
  errno = code;
  return result;
}

int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }

static int sync_tracked(object *file) {
  pthread_mutex_lock(&disk.lock);
  count_change();
  int fails = ++disk.syncs == disk.fail_sync;
  if (fails) {
    disk.fault = file && file->is_log ? 1 : 2;
    if (file) forget_pending(file);
  } else if (file) {
    apply_pending(file, 0);
  } else {
    apply_changes(0);
    disk.directory_syncs++;
  }
  pthread_mutex_unlock(&disk.lock);
  if (fails) errno = EIO;
  return fails ? -1 : 0;
}

int fsync(int fd) {
  if (!real_fsync) real_fsync = dlsym(RTLD_NEXT, "fsync");
  object *file = tracked(fd);
  int is_dir = disk.ready && fd >= 0 && fd < MAX_FILES && disk.is_dir[fd];
  return file || is_dir ? sync_tracked(file) : real_fsync(fd);
}

int fdatasync(int fd) {
  if (!real_fdatasync) real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  object *file = tracked(fd);
  return file ? sync_tracked(file) : real_fdatasync(fd);
}

int rename(const char *from, const char *to) {
  if (!real_rename) real_rename = dlsym(RTLD_NEXT, "rename");
  const char *a = inside(from), *b = inside(to);
  if (!a || !b) return real_rename(from, to);
  pthread_mutex_lock(&disk.lock);
  name **source = find(a);
  if (*source) count_change();
  int result = real_rename(from, to);
  int code = errno;
  if (result == 0 && *source) {
    name **target = find(b);
    if (*target && *target != *source) {
      *target = (*target)->next;
      source = find(a);
    }
    add_change(RENAMED, 0, a, b);
    (*source)->path = strdup(b);
  }
  pthread_mutex_unlock(&disk.lock);
  errno = code;
  return result;
}

int unlink(const char *path) {
  if (!real_unlink) real_unlink = dlsym(RTLD_NEXT, "unlink");
  const char *at = inside(path);
  if (!at) return real_unlink(path);
  pthread_mutex_lock(&disk.lock);
  name **entry = find(at);
  if (*entry) count_change();
  int result = real_unlink(path);
  int code = errno;
  if (result == 0 && *entry) {
    add_change(REMOVED, 0, at, NULL);
    *entry = (*entry)->next;
  }
  pthread_mutex_unlock(&disk.lock);
  errno = code;
  return result;
}
