// Nothing of its own: the runtime defines what the header declares.
#include "CLibFuzzer.h"
