// A shim that simulates a disk: a library, loaded into a process with LD_PRELOAD, that replaces the file functions of the
// C library. It maintains an image of a directory: the data that would remain after a power cut. It ends the process at a
// chosen change of the disk, and makes a chosen write or sync fail.
//
// The model, as strict as POSIX permits:
//   - written bytes, truncations and new sizes reach the image when the file is synced;
//   - changed names (of files and directories that are created, moved or removed) reach the image, in order, when the
//     directory that contains the names is synced. A move of a file between two directories is two changes: the new name,
//     then the removal of the old name. A move of a directory is one change of both names, because a directory has one
//     parent;
//   - a failed sync loses its data permanently, although the process still reads it (like Linux);
//   - at a power cut in mode "drop", no other data remains. In mode "tear", some writes of each file since its last sync
//     remain, in complete sectors, and the first few changes of names, in order.
// The shim makes no real syncs, because only the image is verified, and thousands of power cuts must run in minutes. The
// image is written when the process ends: at the power cut, or by exit.
//
// Environment variables:
//   POWERCUT_DIR            the directory
//   POWERCUT_IMAGE          the image of the directory (an empty directory on the same file system)
//   POWERCUT_OBJECTS        the directory of the image's files
//   POWERCUT_AT             the number of the change at which the process ends; 0 for never
//   POWERCUT_SEED           the seed of the random choices
//   POWERCUT_MODE           drop or tear
//   POWERCUT_FAIL_WRITE     the number of the write that fails; 0 for none
//   POWERCUT_FAIL_SYNC      the number of the sync that fails; 0 for none
//   POWERCUT_IGNORE_SYNCS   1 for a disk that reports syncs as done but does not perform them

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

enum { MAX_FILES = 8192, MAX_DEPTH = 64, SECTOR = 512 };

typedef struct pending {
  struct pending *next;
  off_t offset;
  size_t length;  // the bytes of `data`; SIZE_MAX for a truncation to `offset`
  char data[];
} pending;

typedef struct object object;

// A name in a directory.
typedef struct name {
  struct name *next;
  char *text;
  object *file;
} name;

struct object {
  int id;
  int is_log, is_dir;
  // The writes of a file that are not durable, in order.
  pending *first, **last;
  // The names in a directory: those that the process sees, and those that are durable.
  name *names, *durable;
};

// A change of names that is not durable yet: an old name disappears, or a new name appears, or both.
typedef struct change {
  struct change *next;
  object *source, *target, *file;
  char *from, *to;
} change;

static struct {
  pthread_mutex_t lock;
  int ready;
  char dir[4096], image[4096], objects[4096];
  size_t dir_length;
  object *open_files[MAX_FILES];
  object *root;
  change *first_change, **last_change;
  int next_id, fault, tear, is_written, ignores_syncs;
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
static int (*real_mkdir)(const char *, mode_t);
static int (*real_rmdir)(const char *);
static void (*real_exit)(int);

static uint64_t next_random(void) {
  disk.random += 0x9E3779B97F4A7C15ull;
  uint64_t z = disk.random;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

static void fail(const char *what) {
  dprintf(2, "powercut: %s: %s\n", what, strerror(errno));
  // The caller may hold the lock, which `_exit` below takes.
  real_exit(99);
}

static void object_path(char *out, size_t size, int id) { snprintf(out, size, "%s/%d", disk.objects, id); }

// The name relative to the directory, or null for other paths.
static const char *inside(const char *path) {
  if (!disk.ready || strncmp(path, disk.dir, disk.dir_length) != 0) return NULL;
  const char *rest = path + disk.dir_length;
  if (*rest == 0) return "";
  if (*rest != '/') return NULL;
  while (*rest == '/') rest++;
  return rest;
}

static name **find(name **names, const char *text) {
  while (*names && strcmp((*names)->text, text) != 0) names = &(*names)->next;
  return names;
}

static void set_name(name **names, const char *text, object *file) {
  name **entry = find(names, text);
  if (!*entry) {
    *entry = calloc(1, sizeof **entry);
    (*entry)->text = strdup(text);
  }
  (*entry)->file = file;
}

static void remove_name(name **names, const char *text) {
  name **entry = find(names, text);
  if (!*entry) return;
  name *removed = *entry;
  *entry = removed->next;
  free(removed->text);
  free(removed);
}

// Finds the directory of a relative path and the path's last part. Returns null if a directory is missing.
static object *locate(const char *path, char *last, size_t size) {
  object *directory = disk.root;
  for (;;) {
    while (*path == '/') path++;
    size_t length = strcspn(path, "/");
    if (length >= size) return NULL;
    memcpy(last, path, length);
    last[length] = 0;
    path += length;
    while (*path == '/') path++;
    if (*path == 0) return directory;
    name *entry = *find(&directory->names, last);
    if (!entry || !entry->file->is_dir) return NULL;
    directory = entry->file;
  }
}

static object *make_object(const char *path, int is_dir) {
  object *file = calloc(1, sizeof *file);
  file->id = disk.next_id++;
  file->last = &file->first;
  file->is_dir = is_dir;
  size_t length = strlen(path);
  file->is_log = length > 4 && strcmp(path + length - 4, ".log") == 0;
  if (is_dir) return file;
  char at[8192];
  object_path(at, sizeof at, file->id);
  int fd = real_open(at, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) fail("object");
  real_close(fd);
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
  if (c->from) remove_name(&c->source->durable, c->from);
  if (c->to) set_name(&c->target->durable, c->to, c->file);
}

// Makes the pending changes of one directory durable.
static void apply_changes(object *directory) {
  for (change **at = &disk.first_change, *c; (c = *at);) {
    if (c->source != directory && c->target != directory) {
      at = &c->next;
      continue;
    }
    apply_change(c);
    *at = c->next;
    free(c->from);
    free(c->to);
    free(c);
  }
  disk.last_change = &disk.first_change;
  while (*disk.last_change) disk.last_change = &(*disk.last_change)->next;
}

// Adds a change after the process has made it. If no name disappears, `source` and `from` are null. If no name appears,
// `target`, `to` and `file` are null.
static void add_change(object *source, const char *from, object *target, const char *to, object *file) {
  change *c = calloc(1, sizeof *c);
  c->source = source;
  c->target = target;
  c->file = file;
  c->from = from ? strdup(from) : NULL;
  c->to = to ? strdup(to) : NULL;
  *disk.last_change = c;
  disk.last_change = &c->next;
  if (from) remove_name(&source->names, from);
  if (to) set_name(&target->names, to, file);
}

// Calls a function for each file that a directory contains.
static void for_each_file(object *directory, int depth, void (*function)(object *)) {
  if (depth > MAX_DEPTH) return;
  for (name *n = directory->names; n; n = n->next) {
    if (n->file->is_dir)
      for_each_file(n->file, depth + 1, function);
    else
      function(n->file);
  }
}

static void tear_file(object *file) { apply_pending(file, 1); }

// Writes the durable names of a directory to the image.
static void write_directory(object *directory, const char *path, int depth) {
  if (depth > MAX_DEPTH) return;
  for (name *n = directory->durable; n; n = n->next) {
    char to[8192], from[8192];
    if ((size_t)snprintf(to, sizeof to, "%s/%s", path, n->text) >= sizeof to) continue;
    if (n->file->is_dir) {
      if (real_mkdir(to, 0700) != 0) fail("image directory");
      write_directory(n->file, to, depth + 1);
    } else {
      object_path(from, sizeof from, n->file->id);
      if (real_link(from, to) != 0) fail("image link");
    }
  }
}

// Writes the image. The caller holds the lock.
static void write_image(void) {
  if (!disk.ready || disk.is_written) return;
  disk.is_written = 1;
  write_directory(disk.root, disk.image, 0);
}

// Counts a change of the disk. At the chosen change it ends the process, which simulates the power cut. The
// caller holds the lock, so the image is consistent.
static void count_change(void) {
  if (++disk.changes != disk.cut_at) return;
  if (disk.tear) {
    for_each_file(disk.root, 0, tear_file);
    for (change *c = disk.first_change; c && next_random() % 3; c = c->next) apply_change(c);
  }
  write_image();
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static object *tracked(int fd) { return disk.ready && fd >= 0 && fd < MAX_FILES ? disk.open_files[fd] : NULL; }

static object *tracked_file(int fd) {
  object *file = tracked(fd);
  return file && !file->is_dir ? file : NULL;
}

// Copies a file that the directory contains at the start to the image.
static void adopt_file(object *file, const char *path) {
  char copy[8192], buffer[1 << 16];
  int from = real_open(path, O_RDONLY | O_CLOEXEC);
  if (from < 0) fail("adopt");
  object_path(copy, sizeof copy, file->id);
  int to = real_open(copy, O_WRONLY | O_CLOEXEC);
  off_t offset = 0;
  for (ssize_t count; (count = read(from, buffer, sizeof buffer)) > 0; offset += count)
    apply_data(to, buffer, count, offset);
  real_close(from);
  real_close(to);
}

// Copies the contents that a directory has at the start to the image, because they are durable.
static void adopt(object *directory, const char *path, int depth) {
  if (depth > MAX_DEPTH) return;
  DIR *entries = opendir(path);
  if (!entries) fail("directory");
  for (struct dirent *entry; (entry = readdir(entries));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    char at[8192];
    struct stat status;
    if ((size_t)snprintf(at, sizeof at, "%s/%s", path, entry->d_name) >= sizeof at) continue;
    if (stat(at, &status) != 0) fail("adopt");
    object *file = make_object(entry->d_name, S_ISDIR(status.st_mode));
    set_name(&directory->names, entry->d_name, file);
    set_name(&directory->durable, entry->d_name, file);
    if (file->is_dir)
      adopt(file, at, depth + 1);
    else
      adopt_file(file, at);
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
  real_mkdir = dlsym(RTLD_NEXT, "mkdir");
  real_rmdir = dlsym(RTLD_NEXT, "rmdir");
  real_exit = dlsym(RTLD_NEXT, "_exit");
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
  disk.ignores_syncs = number("POWERCUT_IGNORE_SYNCS") != 0;
  const char *mode = getenv("POWERCUT_MODE");
  disk.tear = mode && strcmp(mode, "tear") == 0;
  disk.root = make_object("", 1);
  adopt(disk.root, disk.dir, 0);
  disk.ready = 1;
}

__attribute__((destructor)) static void finish(void) {
  pthread_mutex_lock(&disk.lock);
  write_image();
  pthread_mutex_unlock(&disk.lock);
}

void _exit(int status) {
  finish();
  if (!real_exit) real_exit = dlsym(RTLD_NEXT, "_exit");
  real_exit(status);
  __builtin_unreachable();
}

// The kind of file whose write or sync failed: 0 none, 1 a write-ahead log, 2 another file.
int powercut_fault(void) {
  pthread_mutex_lock(&disk.lock);
  int fault = disk.fault;
  pthread_mutex_unlock(&disk.lock);
  return fault;
}

// The number of syncs of directories by `fsync`. Syncs by `fdatasync` do not count: SQLite makes such a sync when it creates
// a file, and it does not show that the log was synced.
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
  char last[NAME_MAX + 1];
  object *directory = locate(at, last, sizeof last);
  name *known = directory && *last ? *find(&directory->names, last) : NULL;
  object *file = *at == 0 ? disk.root : known ? known->file : NULL;
  if ((flags & O_CREAT) && directory && !file) count_change();
  int fd = real_open(path, flags, mode);
  if (fd >= 0 && fd < MAX_FILES) {
    if (directory && !file && (flags & O_CREAT)) {
      file = make_object(last, 0);
      add_change(NULL, NULL, directory, last, file);
    } else if (file && !file->is_dir && (flags & O_TRUNC)) {
      add_pending(file, 0, NULL, SIZE_MAX);
    }
    disk.open_files[fd] = file;
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
  object *file = tracked_file(fd);
  return file ? write_tracked(file, fd, data, length, 0, 0) : real_write(fd, data, length);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
  if (!real_pwrite) real_pwrite = dlsym(RTLD_NEXT, "pwrite");
  object *file = tracked_file(fd);
  return file ? write_tracked(file, fd, data, length, offset, 1) : real_pwrite(fd, data, length, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset) { return pwrite(fd, data, length, offset); }

int ftruncate(int fd, off_t length) {
  if (!real_ftruncate) real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
  object *file = tracked_file(fd);
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

static int sync_tracked(object *file, int is_full) {
  pthread_mutex_lock(&disk.lock);
  count_change();
  int fails = ++disk.syncs == disk.fail_sync;
  if (fails) {
    disk.fault = file->is_log ? 1 : 2;
    forget_pending(file);
  } else if (disk.ignores_syncs) {
    // The sync is ignored, so the image does not change.
  } else if (file->is_dir) {
    apply_changes(file);
    disk.directory_syncs += is_full;
  } else {
    apply_pending(file, 0);
  }
  pthread_mutex_unlock(&disk.lock);
  if (fails) errno = EIO;
  return fails ? -1 : 0;
}

int fsync(int fd) {
  if (!real_fsync) real_fsync = dlsym(RTLD_NEXT, "fsync");
  object *file = tracked(fd);
  return file ? sync_tracked(file, 1) : real_fsync(fd);
}

int fdatasync(int fd) {
  if (!real_fdatasync) real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  object *file = tracked(fd);
  return file ? sync_tracked(file, 0) : real_fdatasync(fd);
}

int rename(const char *from, const char *to) {
  if (!real_rename) real_rename = dlsym(RTLD_NEXT, "rename");
  const char *a = inside(from), *b = inside(to);
  if (!a || !b) return real_rename(from, to);
  pthread_mutex_lock(&disk.lock);
  char old[NAME_MAX + 1], new[NAME_MAX + 1];
  object *source = locate(a, old, sizeof old), *target = locate(b, new, sizeof new);
  name *entry = source && target ? *find(&source->names, old) : NULL;
  if (entry) count_change();
  int result = real_rename(from, to);
  int code = errno;
  if (result == 0 && entry) {
    object *file = entry->file;
    if (source == target || file->is_dir) {
      add_change(source, old, target, new, file);
    } else {
      add_change(NULL, NULL, target, new, file);
      add_change(source, old, NULL, NULL, NULL);
    }
  }
  pthread_mutex_unlock(&disk.lock);
  errno = code;
  return result;
}

static int remove_tracked(const char *path, int (*function)(const char *)) {
  pthread_mutex_lock(&disk.lock);
  char last[NAME_MAX + 1];
  object *directory = locate(inside(path), last, sizeof last);
  int is_known = directory && *find(&directory->names, last);
  if (is_known) count_change();
  int result = function(path);
  int code = errno;
  if (result == 0 && is_known) add_change(directory, last, NULL, NULL, NULL);
  pthread_mutex_unlock(&disk.lock);
  errno = code;
  return result;
}

int unlink(const char *path) {
  if (!real_unlink) real_unlink = dlsym(RTLD_NEXT, "unlink");
  return inside(path) ? remove_tracked(path, real_unlink) : real_unlink(path);
}

int rmdir(const char *path) {
  if (!real_rmdir) real_rmdir = dlsym(RTLD_NEXT, "rmdir");
  return inside(path) ? remove_tracked(path, real_rmdir) : real_rmdir(path);
}

int mkdir(const char *path, mode_t mode) {
  if (!real_mkdir) real_mkdir = dlsym(RTLD_NEXT, "mkdir");
  const char *at = inside(path);
  if (!at || !*at) return real_mkdir(path, mode);
  pthread_mutex_lock(&disk.lock);
  char last[NAME_MAX + 1];
  object *directory = locate(at, last, sizeof last);
  int is_new = directory && !*find(&directory->names, last);
  if (is_new) count_change();
  int result = real_mkdir(path, mode);
  int code = errno;
  if (result == 0 && is_new) add_change(NULL, NULL, directory, last, make_object(last, 1));
  pthread_mutex_unlock(&disk.lock);
  errno = code;
  return result;
}
