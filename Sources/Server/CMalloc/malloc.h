// What the system's C library lets a program ask of its allocator beside standard C, where it is the GNU C library.
#if defined(__linux__)
#include_next <malloc.h>
#endif
