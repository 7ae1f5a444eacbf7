/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A stream socket with a buffer on either side. Knows bytes and that they come
 * in units of 32; what they mean is unix.c's.
 *
 * The socket is in blocking mode, and everything but stream_fill() with @wait
 * says MSG_DONTWAIT: a synchronous call then needs no poll() before its recv().
 */
#ifndef LIB_STREAM_H
#define LIB_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/expiry.h>

#define STREAM_BUFFER	65536	/* bytes, each way */

/**
 * struct stream
 * @fd: the socket, -1 when closed
 * @send_dead: the other side reads no more; what it said before is still to be
 *	received, and after that the end
 * @in: received, not looked at: from @in_head to @in_tail. @in_head always
 *	stands at the beginning of a unit.
 * @out: to be sent: from @out_head to @out_tail, in units but perhaps for the
 *	first
 */
struct stream {
	int fd;
	bool send_dead;
	unsigned char *in;
	uint32_t in_head;
	uint32_t in_tail;
	unsigned char *out;
	uint32_t out_head;
	uint32_t out_tail;
};

/* Connect to the socket at @path, waiting at most @timeout_ms (0 = for ever)
 * now and in each later wait. 0 or -errno, then with nothing left open.
 */
int stream_open(struct stream *s, const char *path, uint32_t timeout_ms);
void stream_close(struct stream *s);

/* End the connection and keep the buffers, emptied. */
void stream_hang_up(struct stream *s);
/* Connect anew after that, without waiting and without taking memory. 0 or
 * -errno; -ETIMEDOUT: too many are waiting there already.
 */
int stream_redial(struct stream *s, const char *path, uint32_t timeout_ms);

static inline uint32_t stream_unsent(const struct stream *s)
{
	return s->out_tail - s->out_head;
}

/* Room for so many units. */
uint32_t stream_room(const struct stream *s);

/* Queue @nr units; the caller saw to the room. */
void stream_put(struct stream *s, const struct expiry_record *units,
		uint32_t nr);

/* Send what is queued. 0: all of it; 1: the socket is full; -errno. */
int stream_flush(struct stream *s);

/* Send units straight from @units, when nothing is queued. Returns how many
 * are the stream's now (of the last one the rest may be queued), 0 when the
 * socket is full, or -errno.
 */
int stream_send(struct stream *s, const struct expiry_record *units,
		uint32_t nr);

/* Whole units received; the first stands at stream_units(). */
static inline uint32_t stream_nr(const struct stream *s)
{
	return (s->in_tail - s->in_head) / sizeof(struct expiry_record);
}

static inline const struct expiry_record *stream_units(const struct stream *s)
{
	return (const void *)(s->in + s->in_head);
}

static inline void stream_skip(struct stream *s, uint32_t nr)
{
	s->in_head += nr * sizeof(struct expiry_record);
}

/* Receive into the buffer. 1: something came; 0: nothing is there, or, with
 * @wait, a signal came; -ETIMEDOUT, -ECONNRESET or another -errno.
 */
int stream_fill(struct stream *s, bool wait);

/* Receive straight into @units, when no whole unit is in the buffer. Never
 * waits. Returns how many whole units came, or -errno.
 */
int stream_receive(struct stream *s, struct expiry_record *units, uint32_t nr);

/* Wait until the socket can be read, or written as well if @out. 0 or
 * -ETIMEDOUT or another -errno; a signal counts as 0.
 */
int stream_wait(const struct stream *s, bool out, uint32_t timeout_ms);

#endif /* LIB_STREAM_H */
