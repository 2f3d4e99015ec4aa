/* Stand-in for <mach/mach.h>. */
#pragma once
typedef int kern_return_t;
typedef unsigned task_id_token_t;
