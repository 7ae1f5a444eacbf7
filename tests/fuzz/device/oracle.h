/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The oracle: rules that hold for every program. They cover the errors of a
 * call, the records of a reader, and the consistency of a queue not in use.
 */
#ifndef FUZZ_DEVICE_ORACLE_H
#define FUZZ_DEVICE_ORACLE_H

#include "state.h"

enum rule {
	RULE_OPEN,
	RULE_CONFIG,
	RULE_LAYOUT,
	RULE_SUBMIT,
	RULE_STAT,
	RULE_SCAN,
	RULE_REWIND,
	RULE_READ,
	RULE_PREAD,
	RULE_MMAP,
	RULE_WRITE,
	RULE_OTHER_IOCTL,
	RULE_URING_CMD,
	RULE_URING_READ,
	RULE_STATUS,
};

/* @err: the errno of a call, 0 = it succeeded */
void oracle_errno(enum rule rule, int err);

/* @ret: what the call returned */
static inline void oracle_call(enum rule rule, long ret)
{
	oracle_errno(rule, ret < 0 ? errno : 0);
}

/* @asked: the batch as it was sent; @replies: as it came back, processed */
void oracle_replies(const struct expiry_record *asked,
		   const struct expiry_record *replies, uint32_t count);

/* Checks the records of one read() of @queue. */
void oracle_read(unsigned int queue, const struct expiry_record *records,
		uint32_t count, bool in_order);

/* Checks the queues after a program, when its threads have ended. */
void oracle_queues(void);

#endif /* FUZZ_DEVICE_ORACLE_H */
