// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracepoints' bodies, once for the module.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
