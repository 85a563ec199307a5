// The allocator functions of the GNU C library beyond standard C.
#if defined(__linux__)
#include_next <malloc.h>
#endif
