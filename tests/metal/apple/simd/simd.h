/* Stand-in for <simd/simd.h>. */
#pragma once
#include <math.h>
