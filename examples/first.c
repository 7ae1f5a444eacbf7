// SPDX-License-Identifier: LGPL-2.1-or-later
#include <expiry/expiry.h>
#include <stdio.h>

int main(void)
{
	static struct expiry_options options;	/* 0: the default */
	struct expiry_record due[64];
	uint64_t id = 1001;
	struct expiry *h;
	int i, ret;

	options.size = sizeof(options);
	options.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_KEYED;
	options.queue = "sessions";
	ret = expiry_open(&h, NULL, &options);
	if (ret == 0) {
		/* Session 1001 ends in 2 s; 42 is the program's own number. */
		ret = expiry_arm(h, &id, 2000000000, 0, 42, EXPIRY_F_RELATIVE);
		if (ret == 0)	/* blocks; expiry_fd(h) is for poll(2) */
			ret = expiry_receive(h, due, 64, -1);
		for (i = 0; i < ret; i++)
			printf("session %llu has expired: %llu\n",
			       due[i].id, due[i].cookie);
		expiry_close(h);
	}
	if (ret < 0)
		fprintf(stderr, "expiryd: %s\n",
			expiry_explain(ret, EXPIRY_OP_HELLO));
	return ret < 0;
}
