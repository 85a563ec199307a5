// RocksDB's C API, as installed by librocksdb-dev (Debian, Ubuntu) or the Homebrew formula rocksdb.
#include <rocksdb/c.h>
