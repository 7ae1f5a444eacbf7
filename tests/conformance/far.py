# SPDX-License-Identifier: LGPL-2.1-or-later
"""Timers that are hours away: nothing can cross their requests, so each reply
is known before the request is sent. This is the hot path.

fill() appends packed requests to @out and to @want what must come back: a
tuple where every field is known, else an object whose reply() looks at it. A
timer is (deadline, cookie, period); a deadline of UNKNOWN waits for the reply
of a RELATIVE request."""

from wire import (ACK, ARM, CANCEL, CLEAR, CREDIT, DROP, EEXIST, EINVAL, ENOENT,
                  EOPNOTSUPP, EXPIRED, HELLO, HOUR, LATER, NEVER, NEW, QUERY,
                  QUEUES, RECORD, REDELIVERED, REFRESH, RELATIVE, SCAN, STAT, add)

UNKNOWN = -1
FAR = 3 * HOUR
STALE = 64              # ids that have ended and are tried again
OWN = range(HELLO, QUEUES + 1)

# What a batch consists of, in 256ths; the rest are near timers and others.
K_ARM, K_REFRESH, K_CANCEL, K_QUERY, K_ACK, K_GONE, K_BAD, K_NEAR = range(8)
MIXES = [
    ((K_ARM, 64), (K_REFRESH, 52), (K_CANCEL, 48), (K_QUERY, 36), (K_ACK, 6),
     (K_GONE, 14), (K_BAD, 12)),
    ((K_ARM, 30), (K_REFRESH, 90), (K_CANCEL, 22), (K_QUERY, 50), (K_ACK, 8),
     (K_GONE, 20), (K_BAD, 10)),
    ((K_ARM, 90), (K_REFRESH, 20), (K_CANCEL, 86), (K_QUERY, 20), (K_ACK, 4),
     (K_GONE, 10), (K_BAD, 6)),
]


def kinds(mix):
    table = [kind for kind, share in MIXES[mix] for _ in range(share)]
    return table + [K_NEAR] * (256 - len(table))


class Armed:
    """The reply to ARM on a plain queue: the server gives the id."""
    __slots__ = ("relative", "deadline", "cookie", "period")

    def __init__(self, relative, deadline, cookie, period):
        self.relative = relative
        self.deadline = deadline
        self.cookie = cookie
        self.period = period

    def allowed(self):
        return "ARM, status 0, flags 0, a new id, deadline %s%d" % (
            "from now + " if self.relative else "", self.deadline)

    def reply(self, queue, record, now):
        op, flags, status, _, timer, deadline, _ = record
        wanted = self.deadline
        if op != ARM or flags or status or not queue.take_id(timer):
            return False
        if self.relative:
            if not queue.is_from_now(wanted, deadline, now):
                return False
        elif deadline != wanted:
            return False
        queue.far[timer] = (deadline, self.cookie, self.period)
        queue.ids.append(timer)
        return True


class FromNow:
    """The reply to a RELATIVE request whose id is known."""
    __slots__ = ("op", "timer", "deadline", "cookie", "period", "least")

    def __init__(self, op, timer, deadline, cookie, period, least=0):
        self.op = op
        self.timer = timer
        self.deadline = deadline
        self.cookie = cookie
        self.period = period
        self.least = least

    def allowed(self):
        return "%d, status 0, deadline from now + %d and at least %d, " \
            "cookie %#x, period %d" % (self.op, self.deadline, self.least,
                                       self.cookie, self.period)

    def reply(self, queue, record, now):
        op, flags, status, period, timer, deadline, cookie = record
        if op != self.op or flags or status or timer != self.timer:
            return False
        if op == REFRESH and (cookie != self.cookie or period != self.period):
            return False
        if deadline != self.least:
            if deadline < self.least or \
                    not queue.is_from_now(self.deadline, deadline, now):
                return False
        elif not queue.is_from_now(self.deadline, deadline, now) and \
                self.least < add(queue.sent_at, self.deadline):
            return False
        queue.far[timer] = (deadline, self.cookie, self.period)
        return True


def bad_request(queue, r):
    """A request that must be refused: (fields, status)."""
    kind = r >> 8 & 15
    timer = r >> 12 | 1 << 63
    some = (r >> 12 & 0xffff, timer, r >> 5, r)
    if kind < 3:
        return ((REFRESH, CANCEL, QUERY)[kind], 0, 0, some[0], 0, *some[2:]), \
            EINVAL
    if kind == 3:
        return (ACK, 0, 0, some[0], 0, *some[2:]), EINVAL
    if kind < 6:
        return (1 + (r >> 12) % 6, 0, 1 + (r >> 16 & 0x7ff), *some), EINVAL
    if kind < 8:
        op = 1 + (r >> 12) % 6
        known = {ARM: RELATIVE | LATER | (NEW if queue.keyed else 0) |
                      (REDELIVERED if queue.acking else 0),
                 REFRESH: RELATIVE | LATER}.get(op, 0)
        flags = (r >> 20 & 255) & ~known or 128
        return (op, flags, 0, *some), EINVAL
    if kind == 8:
        return (ARM, 0, 0, some[0], 0 if queue.keyed else timer, *some[2:]), \
            EINVAL
    if kind == 9:
        if queue.keyed:
            return (ARM, 32, 0, *some), EINVAL
        return (ARM, NEW, 0, some[0], 0, *some[2:]), EINVAL
    if kind == 10:
        return ((SCAN, STAT, DROP, QUEUES)[r >> 20 & 3], 1 + (r >> 24) % 255, 0,
                1, 0, 0, 0), EINVAL
    if kind == 11:
        return (EXPIRED, r >> 20 & 15, 0, *some), EOPNOTSUPP
    if kind == 12:
        return (EXPIRED + 1, r >> 20 & 15, 0, *some), EOPNOTSUPP
    op = r >> 20 & 255
    if ARM <= op <= CLEAR or op in OWN:
        op = 0 if r >> 30 & 1 else 128 + op
    return (op, r >> 28 & 255, 0, *some), EOPNOTSUPP


def append_bad(queue, r, out, want):
    fields, status = bad_request(queue, r)
    out.append(RECORD.pack(*fields))
    want.append((fields[0], fields[1], status, *fields[3:]))


def arm_fields(r, base):
    """Flags and deadline of a far ARM, and whether they count from now."""
    kind = r >> 8 & 15
    if kind < 9:
        return 0, base + (r >> 12)
    if kind < 12:
        return RELATIVE, FAR + (r >> 20)
    if kind == 12:
        return 0, NEVER
    if kind == 13:
        return RELATIVE, NEVER - (r >> 12 & 0xff)      # the sum is too large
    if kind == 14:
        return LATER, base + (r >> 12)
    return 0, NEVER - 1 - (r >> 12 & 0xff)


def fill_plain(queue, count, out, want):
    far, ids, gone, table = queue.far, queue.ids, queue.gone, queue.kinds
    bits, pack, base, most = queue.bits, RECORD.pack, queue.base, queue.most
    for _ in range(count):
        r = bits(64)
        kind = table[r & 255]
        nr = len(ids)
        if kind == K_ARM:
            if nr >= most:
                kind = K_CANCEL
            else:
                flags, deadline = arm_fields(r, base)
                period = r >> 32 & 0xffffff if r & 0x300 == 0x100 else 0
                out.append(pack(ARM, flags, 0, period, 0, deadline, r))
                want.append(Armed(flags & RELATIVE, deadline, r, period))
                queue.arms += 1
                continue
        if kind == K_NEAR:
            queue.near_op(out, want)
            continue
        if kind == K_BAD:
            append_bad(queue, r, out, want)
            continue
        at = (r >> 8 & 0xffff) % nr if nr else 0
        timer = ids[at] if nr and kind != K_GONE else 0
        deadline, cookie, period = far[timer] if timer else (UNKNOWN, 0, 0)
        if deadline == UNKNOWN:
            op = (REFRESH, CANCEL, QUERY, ACK)[r >> 24 & 3]
            timer = gone[r % len(gone)] if gone and r & 0x10000 else \
                1 << 63 | r >> 8 | 1
            status = ENOENT if op != ACK or queue.acking else EINVAL
            some = r >> 9
            out.append(pack(op, 0, 0, 7, timer, some, r))
            want.append((op, 0, status, 7, timer, some, r))
        elif kind == K_QUERY:
            out.append(pack(QUERY, 0, 0, r >> 40, timer, r, r))
            want.append((QUERY, 0, 0, period, timer, deadline, cookie))
        elif kind == K_CANCEL:
            out.append(pack(CANCEL, 0, 0, r >> 40, timer, r, r))
            want.append((CANCEL, 0, 0, period, timer, deadline, cookie))
            del far[timer]
            ids[at] = ids[-1]
            ids.pop()
            if len(gone) < STALE:
                gone.append(timer)
            else:
                gone[r >> 32 & STALE - 1] = timer
            queue.cancels += 1
        elif kind == K_REFRESH:
            queue.refreshes += 1
            refresh(queue, r, timer, far[timer], out, want)
        else:
            status = ENOENT if queue.acking else EINVAL
            out.append(pack(ACK, 0, 0, 0, timer, 0, r))
            want.append((ACK, 0, status, 0, timer, 0, r))


def refresh(queue, r, timer, known, out, want):
    deadline, cookie, period = known
    kind = r >> 24 & 7
    flags = 0
    if kind < 3:
        new = queue.base + (r >> 12)
    elif kind < 5:
        flags, new = LATER, queue.base + (r >> 12)
    elif kind == 5:
        new = NEVER - (r >> 30 & 1)
    elif kind == 6:
        new = queue.base + (r >> 30)
    else:
        flags = RELATIVE | LATER if r >> 30 & 1 else RELATIVE
        new = FAR + (r >> 20)
    out.append(RECORD.pack(REFRESH, flags, 0, r >> 40, timer, new, r))
    if flags & RELATIVE:
        want.append(FromNow(REFRESH, timer, new, cookie, period,
                            deadline if flags & LATER else 0))
        queue.far[timer] = (UNKNOWN, cookie, period)
        return
    if flags and new < deadline:
        new = deadline
    want.append((REFRESH, 0, 0, period, timer, new, cookie))
    queue.far[timer] = (new, cookie, period)


def fill_keyed(queue, count, out, want):
    far, pool, table = queue.far, queue.pool, queue.kinds
    bits, pack, base, size = queue.bits, RECORD.pack, queue.base, \
        len(queue.pool)
    for _ in range(count):
        r = bits(64)
        kind = table[r & 255]
        if kind == K_NEAR:
            queue.near_op(out, want)
            continue
        if kind == K_BAD:
            append_bad(queue, r, out, want)
            continue
        timer = pool[(r >> 16 & 0xffff) % size]
        known = far.get(timer)
        if known is not None and known[0] == UNKNOWN:
            known, kind, timer = None, K_GONE, 1 << 63 | r >> 8
        if kind == K_ARM:
            flags, new = arm_fields(r, base)
            if r & 0xc00 == 0x400:
                flags |= NEW
            elif r & 0xc00 == 0x800:
                flags |= LATER
            period = r >> 32 & 0xffffff if r & 0x300 == 0x100 else 0
            out.append(pack(ARM, flags, 0, period, timer, new, r))
            if known is not None and flags & NEW:
                want.append((ARM, flags, EEXIST, period, timer, new, r))
                continue
            queue.arms += 1
            if flags & RELATIVE:
                want.append(FromNow(ARM, timer, new, r, period,
                                    known[0] if known and flags & LATER else 0))
                far[timer] = (UNKNOWN, r, period)
                continue
            if known is not None and flags & LATER and new < known[0]:
                new = known[0]
            want.append((ARM, 0, 0, period, timer, new, r))
            far[timer] = (new, r, period)
        elif known is None or kind == K_ACK:
            op = (REFRESH, CANCEL, QUERY, ACK)[
                3 if kind == K_ACK else r >> 24 & 3]
            if kind == K_GONE and known is not None:
                timer = 1 << 63 | r >> 8
            status = ENOENT if op != ACK or queue.acking else EINVAL
            some = r >> 9
            out.append(pack(op, 0, 0, 7, timer, some, r))
            want.append((op, 0, status, 7, timer, some, r))
        elif kind == K_CANCEL:
            deadline, cookie, period = known
            out.append(pack(CANCEL, 0, 0, r >> 40, timer, r, r))
            want.append((CANCEL, 0, 0, period, timer, deadline, cookie))
            del far[timer]
            queue.cancels += 1
        elif kind == K_REFRESH:
            queue.refreshes += 1
            refresh(queue, r, timer, known, out, want)
        else:
            deadline, cookie, period = known
            out.append(pack(QUERY, 0, 0, r >> 40, timer, r, r))
            want.append((QUERY, 0, 0, period, timer, deadline, cookie))


def credit(count):
    return RECORD.pack(CREDIT, 0, 0, count, 0, 0, 0)
