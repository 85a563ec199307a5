// The C API of the Argon2 reference implementation, as installed by libargon2-dev (Debian, Ubuntu) or Homebrew's argon2.
#include <argon2.h>
