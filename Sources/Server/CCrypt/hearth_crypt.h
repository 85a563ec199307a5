// The reentrant password hashing function of libcrypt (libxcrypt), as installed by libcrypt-dev (Debian, Ubuntu).
#include <crypt.h>
