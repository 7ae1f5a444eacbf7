/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon's structs, for inside.c and inside-durable.c alone. */
#ifndef TESTS_SIM_INSIDE_H
#define TESTS_SIM_INSIDE_H

#include "tests/sim/sim.h"

struct shared;

/* Memory that the threads of the daemon share; NULL until the end of the first turn. */
extern struct shared *inside_shared;

#endif /* TESTS_SIM_INSIDE_H */
