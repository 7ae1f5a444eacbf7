// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/loop/attempt.h"

static struct io_uring_buf *first_buffer(const struct provided *provided)
{
	if (provided->next == provided->ring->tail)
		return NULL;
	return &provided->ring->bufs[provided->next & (provided->nr - 1)];
}

/* Receives, into the next buffer if @request has none of its own. */
static int receive(struct provided *provided,
		   const struct loop_request *request, uint32_t *flags)
{
	int msg_flags = request->flags | MSG_DONTWAIT;
	const struct io_uring_buf *buffer;
	ssize_t r;

	*flags = 0;
	if (!request->select) {
		r = recv(request->fd, (void *)(uintptr_t)request->addr,
			 request->len, msg_flags);
		return r < 0 ? -errno : r;
	}
	buffer = first_buffer(provided);
	if (!buffer)
		return -ENOBUFS;
	r = recv(request->fd, (void *)(uintptr_t)buffer->addr, buffer->len,
		 msg_flags);
	if (r <= 0)
		return r < 0 ? -errno : 0;
	*flags = IORING_CQE_F_BUFFER | (uint32_t)buffer->bid
					       << IORING_CQE_BUFFER_SHIFT;
	provided->next++;
	return r;
}

int attempt(struct provided *provided, const struct loop_request *request,
	    uint32_t *flags)
{
	void *addr = (void *)(uintptr_t)request->addr;
	ssize_t r;

	*flags = 0;
	switch (request->opcode) {
	case IORING_OP_RECV:
		return receive(provided, request, flags);
	case IORING_OP_SEND:
		r = send(request->fd, addr, request->len,
			 request->flags | MSG_DONTWAIT);
		break;
	case IORING_OP_SENDMSG:
		r = sendmsg(request->fd, addr, request->flags | MSG_DONTWAIT);
		break;
	case IORING_OP_ACCEPT:
		r = accept4(request->fd, NULL, NULL, request->flags);
		break;
	case IORING_OP_READ:
		r = read(request->fd, addr, request->len);
		break;
	default:
		r = EPOLLIN;
		break;
	}
	return r < 0 ? -errno : r;
}

size_t attempt_send_len(const struct loop_request *request)
{
	const struct msghdr *msg = (void *)(uintptr_t)request->addr;
	size_t i, len = 0;

	if (request->opcode == IORING_OP_SEND)
		return request->len;
	for (i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	return len;
}
