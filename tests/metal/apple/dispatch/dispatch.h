/* Stand-in for <dispatch/dispatch.h>. */
#pragma once
#include <stddef.h>
typedef struct dispatch_queue_s *dispatch_queue_t;
typedef struct dispatch_data_s *dispatch_data_t;
