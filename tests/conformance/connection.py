# SPDX-License-Identifier: LGPL-2.1-or-later
"""One connection: requests on their way, and each record that comes held
against what the model wants."""

import socket

from model import Failure
from wire import (ACK, ARM, CLEAR, CLOCK_SET, EBUSY, EXPIRED, MISSED, MS, RECORD,
                  SIZE, text)

READ = 1 << 18
AT_ONCE = 10 * MS       # no request has waited too long in this time


class Waiting(Exception):
    """-EBUSY: the request waited too long and was not done."""


class Connection:
    """
    @queue: the model of the queue it is attached to, None before
    @sent: the requests that have a reply, as they were sent
    @want: what must come to them: a tuple, or an object with reply()
    @next: the first that has not come
    @body: a reply of several records that is under way
    @ended: the server closed it
    @copies: what an observer was sent, None = it is no observer
    """
    count = 0

    def __init__(self, path, poll):
        Connection.count += 1
        self.number = Connection.count
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.socket.setblocking(False)
        self.fd = self.socket.fileno()
        self.poll = poll
        self.queue = None
        self.sent, self.want, self.next = [], [None], 0
        self.rest, self.unsent = b"", b""
        self.body = None
        self.ended = self.may_end = False
        self.consumes = False
        self.copies = None
        self.writes = False

    def close(self):
        if self.fd >= 0:
            self.poll.remove(self)
            self.socket.close()
            self.fd = -1

    def is_idle(self):
        return len(self.want) == 1 and not self.unsent

    def send(self, out, want, sent=None):
        """@sent: those of @out that have a reply, if not all."""
        self.sent.extend(out if sent is None else sent)
        self.want[-1:] = want
        self.want.append(None)
        self.send_raw(b"".join(out))

    def send_raw(self, data):
        self.unsent += data
        self.flush()

    def flush(self):
        while self.unsent:
            try:
                count = self.socket.send(self.unsent)
            except BlockingIOError:
                break
            except (BrokenPipeError, ConnectionResetError):
                self.unsent = b""
                break
            self.unsent = self.unsent[count:]
        if self.writes != bool(self.unsent):
            self.writes = bool(self.unsent)
            self.poll.change(self)

    def read(self):
        """Take what has come; whether there may be more."""
        try:
            data = self.socket.recv(READ)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            data = b""
        if not data:
            self.end()
            return False
        if self.rest:
            data = self.rest + data
        whole = len(data) & ~(SIZE - 1)
        self.rest = data[whole:]
        if whole != len(data):
            data = data[:whole]
        self.receive(data)
        return len(data) >= READ

    def receive(self, data):
        want, at = self.want, self.next
        now = self.queue.now() if self.queue else 0
        for record in RECORD.iter_unpack(data):
            if record == want[at]:
                at += 1
                continue
            self.next = at
            try:
                self.look(record, now)
            except Failure as failure:
                self.explain(failure, record)
                raise
            at = self.next
        self.next = at
        if at == len(want) - 1 and at:
            del want[:-1]
            self.sent.clear()
            self.next = 0

    def explain(self, failure, record=None):
        failure.where = "connection %d%s" % (
            self.number, ", the consumer" if self.consumes else "")
        if failure.received is None:
            failure.received = record
        if failure.sent is None and self.next < len(self.sent):
            failure.sent = self.sent[self.next]

    def look(self, record, now):
        """A record that is not simply the one which was wanted."""
        want = self.want[self.next]
        if self.body is not None:
            self.more(record, now)
            return
        op, _, status = record[:3]
        if op in (EXPIRED, CLOCK_SET, MISSED) and not status:
            if self.copies is not None:
                self.copies.append(record)
                return
            if op == MISSED:
                raise Failure("MISSED to one that is no observer")
            if not self.consumes:
                raise Failure("an expiration to one that is no consumer")
            self.queue.expired(record, now)
            return
        if want is None:
            raise Failure("a record that nothing asked for")
        if status == EBUSY and self.queue and \
                not getattr(want, "busy_is_refusal", False):
            if now - self.queue.sent_at < AT_ONCE:
                raise Failure("-EBUSY to a request that did not wait")
            raise Waiting
        if isinstance(want, tuple):
            if not is_reply(record, want):
                raise Failure("not the reply that must come",
                              allowed=text(want))
            self.next += 1
        elif getattr(want, "is_long", False) and not status:
            self.body = want
            want.begin(record)
            self.more(record, now)
        else:
            if not want.reply(self.queue, record, now):
                raise Failure("not a reply that may come",
                              allowed=want.allowed())
            self.next += 1

    def more(self, record, now):
        """Another record of a long reply."""
        allowed = self.body.feed(self.queue, record, now)
        if self.body.done:
            self.body = None
            self.next += 1
        if allowed:
            raise Failure("not what must come here", allowed=allowed)

    def end(self):
        """The server closed it."""
        self.ended = True
        if self.rest:
            failure = Failure("a stream that ends inside a record",
                              received=self.rest.ljust(SIZE, b"\0"))
            self.explain(failure)
            raise failure
        if not self.may_end or len(self.want) > 1:
            failure = Failure("the server closed the connection",
                              allowed="%d replies were to come"
                              % (len(self.want) - 1 - self.next))
            self.explain(failure)
            raise failure


def is_reply(record, want):
    """Whether @record is @want in all that the protocol says of it."""
    op, flags, status, _, timer, deadline, cookie = record
    if (op, flags, status) != want[:3] or status:
        return False
    if op == ARM:
        return timer == want[4] and deadline == want[5]
    if op == CLEAR:
        return cookie == want[6]
    return op == ACK
