#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define on_hopper CAT(on_hopper_, AHEAD)
#include "lab_backward.h"
