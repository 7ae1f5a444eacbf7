/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A stream socket with a buffer on either side. It handles bytes in units of
 * 32; transport-unix.c interprets them.
 *
 * The socket is in blocking mode. All calls but stream_fill() with @wait use
 * MSG_DONTWAIT: a synchronous call then needs no poll() before its recv().
 */
#ifndef LIB_STREAM_H
#define LIB_STREAM_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/expiry.h>

#define STREAM_BUFFER	65536	/* bytes, each way */

/**
 * struct stream
 * @fd: the socket, -1 when closed
 * @timeout_ms: of each wait, 0 = none
 * @send_dead: the peer reads no more
 * @in: received bytes, from @in_head to @in_tail
 * @out: bytes to send, from @out_head to @out_tail
 *
 * With @send_dead, the peer's earlier bytes are still to be received, then EOF.
 * @in_head is always at the beginning of a unit. @out contains whole units,
 * except perhaps for the first.
 */
struct stream {
	int fd;
	uint32_t timeout_ms;
	bool send_dead;
	unsigned char *in;
	uint32_t in_head;
	uint32_t in_tail;
	unsigned char *out;
	uint32_t out_head;
	uint32_t out_tail;
};

/* Connects to the socket at @path. Waits at most @timeout_ms (0 = for ever),
 * here and in each later wait. 0 or -errno, then with nothing left open.
 */
int stream_open(struct stream *s, const char *path, uint32_t timeout_ms);
void stream_close(struct stream *s);

/* Ends the connection, empties the buffers and keeps them. */
void stream_disconnect(struct stream *s);
/* Connects again after that, without waiting or allocating. 0 or -errno;
 * -ETIMEDOUT: the socket's backlog is full.
 */
int stream_reconnect(struct stream *s, const char *path, uint32_t timeout_ms);

static inline uint32_t stream_unsent(const struct stream *s)
{
	return s->out_tail - s->out_head;
}

/* Returns the room in the buffer, in units. */
uint32_t stream_room(const struct stream *s);

/* Queues @nr units; the caller has checked the room. */
void stream_put(struct stream *s, const struct expiry_record *units,
		uint32_t nr);

/* Sends what is queued. 0: all of it; 1: the socket is full; -errno. */
int stream_flush(struct stream *s);

/* Sends units straight from @units, when nothing is queued. Returns how many
 * were accepted (the rest of the last one may be queued), 0 when the socket is
 * full, or -errno.
 */
int stream_send(struct stream *s, const struct expiry_record *units,
		uint32_t nr);

/* Returns how many whole units were received; the first is at stream_units().
 */
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
	assert(nr <= stream_nr(s));
	s->in_head += nr * sizeof(struct expiry_record);
}

/* Receives into the buffer. 1: something came; 0: nothing came; -ETIMEDOUT, -ECONNRESET
 * or another -errno. With @wait, the first signal that comes begins the time anew.
 */
int stream_fill(struct stream *s, bool wait);

/* Receives straight into @units, when no whole unit is in the buffer. Never
 * waits. Returns how many whole units came, or -errno.
 */
int stream_receive(struct stream *s, struct expiry_record *units, uint32_t nr);

/* Waits until the socket can be read, or written as well if @out. 0 or
 * -ETIMEDOUT or another -errno. A signal does not end it.
 */
int stream_wait(const struct stream *s, bool out, uint32_t timeout_ms);

#endif /* LIB_STREAM_H */
