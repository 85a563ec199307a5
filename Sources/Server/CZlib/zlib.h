// zlib's C API, as installed by zlib1g-dev (Debian, Ubuntu; librocksdb-dev brings it) or with macOS.
#include <zlib.h>
