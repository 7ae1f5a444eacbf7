// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * io_uring(7): reads with a timeout. Copies each FILE, such as a FIFO, and stops
 * reading a file that sends nothing for MILLISECONDS. Ends when all files have
 * ended.
 *
 *	./io_uring MILLISECONDS FILE...
 */
#include <err.h>
#include <errno.h>
#include <expiry/expiry.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXPIRED = -1, CANCEL = -2 };	/* user data other than a file's number */

static struct input {
	const char *name;
	uint64_t deadline_ns;
	int fd;
	char data[4096];
} *inputs;		/* the timer's id is the number + 1 */
static struct io_uring ring;
static struct expiry *h;
static uint64_t limit_ns;

static int check(int ret, unsigned int op)
{
	if (ret < 0)
		errx(1, "expiryd: %s", expiry_explain(ret, op));
	return ret;
}

/* Reads from a file and moves its timer; the first call arms it. */
static void read_more(int64_t number)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	struct input *input = &inputs[number];
	uint64_t id = number + 1;

	io_uring_prep_read(sqe, input->fd, input->data, sizeof(input->data), -1);
	sqe->user_data = number;
	input->deadline_ns = expiry_now(h) + limit_ns;
	check(expiry_arm(h, &id, input->deadline_ns, 0, 0, 0), EXPIRY_OP_ARM);
}

/* Handles a completed read. Returns 1 if the file has ended, too. */
static int read_done(int64_t number, int result)
{
	struct input *input = &inputs[number];

	if (result > 0) {
		dprintf(1, "%.*s", result, input->data);
		read_more(number);
		return 0;
	}
	if (result != -ECANCELED)
		expiry_cancel(h, number + 1, NULL);	/* may have expired */
	dprintf(1, "%s: %s\n", input->name, result ? strerror(-result) : "end");
	return 1;
}

/* Cancels overdue reads, then polls for later expirations. */
static void take(void)
{
	struct expiry_record due[16];
	struct io_uring_sqe *sqe;
	int i, nr;

	do {
		nr = check(expiry_next(h, due, 16), EXPIRY_OP_EXPIRED);
		for (i = 0; i < nr; i++) {
			/* An expiration that crossed an ARM has an old deadline. */
			if (due[i].deadline_ns != inputs[due[i].id - 1].deadline_ns)
				continue;
			sqe = io_uring_get_sqe(&ring);
			io_uring_prep_cancel64(sqe, due[i].id - 1, 0);
			sqe->user_data = CANCEL;
		}
	} while (nr == 16);
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_poll_add(sqe, expiry_fd(h), expiry_events(h));
	sqe->user_data = EXPIRED;
}

int main(int argc, char **argv)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_KEYED,
		.clock_id = CLOCK_MONOTONIC,
	};
	int i, left = argc - 2;
	struct io_uring_cqe *cqe;

	if (left < 1)
		errx(2, "usage: io_uring MILLISECONDS FILE...");
	limit_ns = strtoull(argv[1], NULL, 10) * 1000000;
	inputs = calloc(left, sizeof(*inputs));
	/* Room for a read and a cancellation of each file, and the poll. */
	if (!inputs || io_uring_queue_init(2 * left + 1, &ring, 0))
		errx(1, "no memory, or no io_uring");
	check(expiry_open(&h, NULL, &options), EXPIRY_OP_HELLO);
	for (i = 0; i < left; i++) {
		inputs[i].name = argv[i + 2];
		inputs[i].fd = open(argv[i + 2], O_RDONLY | O_CLOEXEC);
		if (inputs[i].fd < 0)
			err(1, "%s", argv[i + 2]);
		read_more(i);
	}
	take();
	while (left) {
		io_uring_submit_and_wait(&ring, 1);
		while (!io_uring_peek_cqe(&ring, &cqe)) {
			int64_t number = cqe->user_data;
			int result = cqe->res;

			io_uring_cqe_seen(&ring, cqe);
			if (number >= 0)
				left -= read_done(number, result);
			else if (number == EXPIRED)
				take();
		}
	}
	io_uring_queue_exit(&ring);
	expiry_close(h);
	free(inputs);
	return 0;
}
