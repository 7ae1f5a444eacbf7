// SPDX-License-Identifier: GPL-2.0-only
/* The bodies of the tracepoints, once for the module. */
#define CREATE_TRACE_POINTS
#include "trace.h"
