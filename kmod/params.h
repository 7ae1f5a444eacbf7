/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's parameters. Changes at runtime affect later calls only. */
#ifndef EXPIRY_PARAMS_H
#define EXPIRY_PARAMS_H

#include <linux/types.h>

extern bool expiry_param_pageable;
extern uint expiry_param_unpin_ms;
extern uint expiry_param_scan_ms;
extern uint expiry_param_pin_max;
extern ulong expiry_param_timers_default;
extern ulong expiry_param_timers_max;
extern uint expiry_param_queues_per_user;

#endif /* EXPIRY_PARAMS_H */
