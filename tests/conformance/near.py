# SPDX-License-Identifier: LGPL-2.1-or-later
"""Timers that may expire while a request for them is on its way.

A timer has one request in flight at most. Expirations that come meanwhile are
kept until its reply says on which side of it they were taken; what the protocol
leaves open at that moment is allowed and nothing else. Every time is on the
queue's clock."""

from wire import (ACK, ARM, CANCEL, EEXIST, ENOENT, LATER, MS, NEVER, NEW,
                  QUERY, REDELIVERED, REFRESH, RELATIVE, add)

# Whether the next consumer gets a delivery once more.
NO, MUST, MAY = range(3)


class Timer:
    """@id: None until the server gives it
    @due: the deadline in force, None: not armed
    @since: when it was known to be armed so
    @op: the request in flight
    @early: expirations that came since that was sent
    @owed: deadlines taken by the server before a reply that said so; one
        expiration may stand for several
    @stray: a list of [cookie, last deadline, how many, to be acknowledged]:
        expirations of what was replaced meanwhile, which may come
    @given: deadline of the last delivery that was not acknowledged
    @again: whether that comes again, @again_since when that was known
    @unsure: that may be acknowledged all the same, by an ACK that the server
        got after it had sent the delivery
    @acked: deliveries with a deadline up to this may be such
    @doubt: it may have been lost with its consumer (at most once)
    @ended: cancelled while a delivery was not acknowledged
    @moved: refreshed since its last delivery; @again_due: its next time whenever
        it became due again
    """
    __slots__ = ("id", "due", "cookie", "period", "since", "op", "early",
                 "owed", "stray", "given", "again", "again_since", "unsure",
                 "acked", "doubt", "ended", "moved", "again_due")

    def __init__(self, timer, cookie):
        self.id = timer
        self.due = None
        self.cookie = cookie
        self.period = 0
        self.since = 0
        self.op = None
        self.early = []
        self.owed = []
        self.stray = []
        self.given = None
        self.again = NO
        self.again_since = 0
        self.unsure = False
        self.acked = -1
        self.doubt = False
        self.ended = False
        self.moved = False
        self.again_due = []

    def __str__(self):
        words = ["id %s" % (self.id and hex(self.id)),
                 "armed for %d since %d" % (self.due, self.since)
                 if self.due is not None else "not armed",
                 "cookie %#x period %d" % (self.cookie, self.period)]
        if self.owed:
            words.append("expirations on their way: %s" % self.owed)
        if self.given is not None:
            words.append("delivered for %d, not acknowledged" % self.given)
        if self.again:
            words.append("%s be delivered again" % ("must", "may")[
                self.again == MAY])
        if self.doubt:
            words.append("perhaps lost with its consumer")
        for cookie, until, count, _ in self.stray:
            words.append("%d expirations of %#x up to %d may come"
                         % (count, cookie, until))
        return "; ".join(words)

    def is_gone(self):
        return self.due is None and not self.owed and self.given is None \
            and self.op is None and not self.stray

    def deliver(self, deadline):
        """On an acknowledging queue: it waits for its ACK."""
        self.given = deadline
        self.unsure = deadline <= self.acked

    def may_be_given(self):
        """Whether something may be delivered that did not come yet."""
        return any(stray[3] for stray in self.stray)

    def forget_deliveries(self):
        """What was delivered, whether it came or not, needs no ACK any more."""
        self.owed = []
        self.given, self.again, self.unsure = None, NO, False
        for stray in self.stray:
            stray[3] = False

    def next_after(self, deadline, count):
        """The deadline behind an expiration that stands for @count times."""
        return add(deadline, count * self.period * MS) if self.period else None

    def last_of(self, deadline, count):
        """The last of these times: what a redelivery is for."""
        return deadline + (max(count, 1) - 1) * self.period * MS

    def is_count(self, count, deadline, flags, now, taken):
        """Whether an expiration may have that count: the times until the server
        took it, between @taken and now."""
        if not self.period or (self.ended and not count):
            return not count
        if flags:
            return count == 1
        return count and self.last_of(deadline, count) <= now and \
            self.next_after(deadline, count) > taken

    def is_again(self, deadline):
        """Whether the second delivery may have that deadline: where REFRESH has
        moved the next time it is that less the period, or when it became due
        again."""
        if not (self.moved or self.ended):
            return False
        return self.ended or deadline >= self.again_since or \
            deadline in [max(0, due - self.period * MS)
                         for due in self.again_due]

    def steps(self, deadline):
        """How many periods after @due that deadline is; None: it is none."""
        if self.due is None or deadline < self.due:
            return None
        if deadline == self.due:
            return 0
        if not self.period or (deadline - self.due) % (self.period * MS):
            return None
        return (deadline - self.due) // (self.period * MS)


class Op:
    """A request for a near timer, in flight; in @want, the reply to it.
    @credit: whether the server might deliver meanwhile"""
    __slots__ = ("timer", "fields", "credit", "sent_at")

    def __init__(self, queue, timer, fields, out):
        self.timer = timer
        self.fields = fields
        self.credit = queue.credit_out > 0 or timer.doubt
        self.sent_at = queue.sent_at
        timer.op = self
        out.append(queue.pack(*fields))

    def allowed(self):
        return "a near timer, credit %s: %s; early: %s" % (
            "given" if self.credit else "not given", self.timer,
            self.timer.early)

    def may_be_taken(self, now):
        """Whether the server may have delivered it before the request."""
        timer = self.timer
        return timer.due is not None and self.credit and timer.due <= now

    def reply(self, queue, record, now):
        """Whether the protocol allows that reply."""
        timer, sent = self.timer, self.fields
        op, flags, status, _, number, _, _ = record
        if op != sent[0]:
            return False
        if status:
            if record != (op, sent[1], status, *sent[3:]):
                return False
            fine = self.refused(queue, status, now)
        elif flags & ~self.known_flags(queue) or (sent[4] and number != sent[4]):
            return False
        else:
            fine = {ARM: self.armed, REFRESH: self.refreshed,
                    CANCEL: self.cancelled, ACK: self.acknowledged,
                    QUERY: self.queried}[op](queue, record, now)
        if not fine:
            return False
        timer.op = None
        early, timer.early = timer.early, []
        for expired, at in early:
            queue.take(timer, expired, at)
        queue.settle(timer)
        return True

    def known_flags(self, queue):
        """A delivery may wait for its ACK. The twin of the core knows when."""
        describes = self.fields[0] in (REFRESH, CANCEL, QUERY)
        return REDELIVERED if queue.acking and describes else 0

    def refused(self, queue, status, now):
        timer, op = self.timer, self.fields[0]
        if status == EEXIST:
            return bool(op == ARM and self.fields[1] & NEW and
                        (timer.due is not None or timer.again))
        if status != ENOENT or op == ARM:
            return False
        if op == ACK:
            if timer.given is not None and not timer.unsure and \
                    timer.again != MAY:
                return False
            timer.given, timer.unsure = None, False
            return True
        if timer.again or timer.due is None:
            return True
        if timer.doubt:
            if timer.due > timer.doubt or timer.period:
                return False
            if not timer.early:
                # Lost, or on its way to the consumer that came after.
                if queue.credit_out > 0:
                    timer.stray.append([timer.cookie, now, 1, False])
                else:
                    queue.lost(1)
                timer.due, timer.doubt = None, False
                return True
        if timer.period or not self.may_be_taken(now):
            return False
        timer.owed.append(timer.due)
        timer.due, timer.doubt = None, False
        return True

    def leave_behind(self, now):
        """What was armed is replaced: what the server may have sent of it."""
        timer = self.timer
        count = 1 << 30 if timer.period else 1
        if self.may_be_taken(now) or timer.again or timer.owed:
            timer.stray.append([timer.cookie, now, count, False])
        timer.forget_deliveries()

    def target(self, queue, deadline, now):
        """Whether @deadline is the one that was asked for."""
        if self.fields[1] & RELATIVE:
            return queue.is_from_now(self.fields[5], deadline, now,
                                     self.sent_at)
        return deadline == self.fields[5]

    def right_deadline(self, queue, deadline, now):
        timer = self.timer
        if self.target(queue, deadline, now):
            # LATER never brings it forward.
            return not (self.fields[1] & LATER and timer.due is not None and
                        deadline < timer.due and not self.may_be_taken(now)
                        and not timer.again)
        if not self.fields[1] & LATER:
            return False
        steps = timer.steps(deadline)
        return steps == 0 or (steps and self.may_be_taken(now)) or \
            bool(timer.again)

    def armed(self, queue, record, now):
        timer, sent = self.timer, self.fields
        number, deadline = record[4], record[5]
        if not self.right_deadline(queue, deadline, now):
            return False
        if sent[1] & NEW and timer.due is not None and \
                not self.may_be_taken(now) and not timer.again and \
                not timer.doubt:
            return False
        queue.arms += 1
        if timer.id is None:
            if not queue.take_id(number):
                return False
            timer.id = number
            del queue.arming[sent[6]]
            queue.near[number] = timer
        else:
            self.leave_behind(now)
        timer.due, timer.cookie, timer.period = deadline, sent[6], sent[3]
        timer.since = now
        timer.doubt = timer.ended = timer.moved = False
        timer.acked = -1
        queue.watch(timer)
        return True

    def bring_forward(self, queue, deadline, now):
        """A reply shows the deadline in force: what was delivered before."""
        timer = self.timer
        if timer.again:
            return True
        steps = timer.steps(deadline)
        if steps is None:
            return False
        if steps and not (self.may_be_taken(now) and
                          deadline - timer.period * MS <= now):
            return False
        if timer.doubt and steps:
            # They are lost, or on their way to the consumer that came after.
            timer.stray.append([timer.cookie, now, 1 << 30, False])
            timer.due = deadline
            return True
        # One expiration may stand for all of them.
        if steps and not queue.credit_out + len(timer.early):
            return False
        for _ in range(steps):
            timer.owed.append(timer.due)
            timer.due = add(timer.due, timer.period * MS)
        return True

    def same(self, record):
        timer = self.timer
        return record[6] == timer.cookie and \
            (record[3] == timer.period or timer.ended)

    def refreshed(self, queue, record, now):
        timer, deadline = self.timer, record[5]
        if not self.same(record) or (timer.due is None and not timer.again):
            return False
        if not self.right_deadline(queue, deadline, now):
            return False
        queue.refreshes += 1
        if timer.period and self.may_be_taken(now):
            timer.stray.append([timer.cookie, now, 1 << 30, queue.acking])
        timer.due, timer.since = deadline, now
        timer.doubt, timer.moved = False, True
        queue.watch(timer)
        return True

    def cancelled(self, queue, record, now):
        timer = self.timer
        if not self.same(record) or timer.due is None or \
                not self.bring_forward(queue, record[5], now):
            return False
        queue.cancels += 1
        timer.due = None
        timer.doubt = False
        timer.ended = True
        return True

    def queried(self, queue, record, now):
        timer = self.timer
        if not self.same(record) or (timer.due is None and not timer.again) \
                or not self.bring_forward(queue, record[5], now):
            return False
        if timer.doubt and timer.due is not None and not timer.again:
            timer.doubt, timer.since = False, now
            queue.watch(timer)
        return True

    def acknowledged(self, queue, record, now):
        timer = self.timer
        crossing = self.may_be_taken(now)
        if not queue.acking:
            return False
        if timer.given is None and not timer.owed and not timer.again and \
                not crossing and not timer.unsure and \
                not timer.may_be_given():
            return False
        queue.acks += 1
        if timer.again:
            # A periodic one may have come again and then once more, on either
            # side of the ACK.
            timer.stray.append([timer.cookie, now, 1 << 30,
                                bool(timer.period)])
            if timer.again == MAY and not timer.period and \
                    timer.given is None:
                timer.due = None
        elif timer.given is None and not timer.period and \
                timer.due is not None:
            timer.stray.append([timer.cookie, now, 1, False])
            timer.due = None
        elif timer.owed:
            timer.stray.append([timer.cookie, now, len(timer.owed), False])
            timer.owed = []
        if crossing or timer.owed or timer.may_be_given():
            timer.acked = now
        timer.given, timer.again, timer.unsure = None, NO, False
        return True


def request(queue, out):
    """A request for a near timer, by chance: its Op, or None."""
    r = queue.bits(64)
    kind = r & 15
    timer = None
    if kind < 11 and queue.near:
        timer = queue.some_near(r >> 4)
        if timer.op is not None:
            return None
    if timer is None or timer.is_gone():
        if len(queue.near) + len(queue.arming) >= queue.near_most:
            return None
        return arm_new(queue, r, out)
    garbage = r >> 16
    if timer.again == MAY:
        return Op(queue, timer, (QUERY, 0, 0, 1, timer.id, r, 5), out)
    if timer.again:
        if kind < 3 and queue.acking:
            return Op(queue, timer, (ACK, 0, 0, 0, timer.id, 0, garbage), out)
        if kind < 5 and timer.period and timer.due is not None and \
                not timer.ended:
            return refresh(queue, timer, r, out)
        if kind < 8:
            return Op(queue, timer, (QUERY, 0, 0, 1, timer.id, r, 5), out)
        return None
    if timer.given is not None and kind < 5:
        return Op(queue, timer, (ACK, 0, 0, 0, timer.id, r, garbage), out)
    if kind < 2:
        if queue.keyed:
            return arm_again(queue, timer, r, out)
        kind = 8
    if kind < 7:
        return refresh(queue, timer, r, out)
    if kind < 9:
        return Op(queue, timer, (CANCEL, 0, 0, 9, timer.id, r, garbage), out)
    if kind == 9 and queue.acking:
        return Op(queue, timer, (ACK, 0, 0, 0, timer.id, 0, garbage), out)
    return Op(queue, timer, (QUERY, 0, 0, 1, timer.id, garbage, r), out)


def deadline_of(queue, r):
    """Flags and deadline of a request for a near timer."""
    kind = r & 15
    now = queue.sent_at
    some = r >> 8
    if kind == 0:
        return 0, (0, 1, now - some % (100 * MS), now)[some >> 40 & 3]
    if kind == 1:
        return RELATIVE, (0, 1, 1000, MS)[some & 3]
    if kind == 2:
        return 0, queue.equal
    if kind < 6:
        return 0, now + some % (4 * MS)
    if kind < 9:
        return RELATIVE, some % (40 * MS)
    if kind < 12:
        return 0, now + some % (250 * MS)
    if kind == 12:
        return 0, now + some % (900 * MS)
    if kind == 13:
        return RELATIVE, some % (400 * MS)
    if kind == 14:
        return 0, NEVER if some & 1 else now + 10**13 + some
    return RELATIVE, NEVER if some & 1 else 10**13 + some


def arm_fields(queue, r, timer):
    flags, deadline = deadline_of(queue, r >> 8)
    period = 0
    if r >> 60 == 0:
        period = (r >> 44 & 15) + 3
    elif r >> 60 < 3:
        period = 10**7 + (r >> 44 & 0xfff)
    if period and (deadline < 10**9 and not flags & RELATIVE):
        period = 10**7
    if r >> 57 & 7 == 1:
        flags |= LATER
    queue.cookie += 1
    return (ARM, flags, 0, period, timer, deadline, queue.cookie)


def arm_new(queue, r, out):
    if not queue.keyed:
        fields = arm_fields(queue, r, 0)
        timer = Timer(None, fields[6])
        queue.arming[fields[6]] = timer
        return Op(queue, timer, fields, out)
    number = queue.near_pool[(r >> 30) % len(queue.near_pool)]
    timer = queue.near.get(number)
    if timer is None:
        fields = arm_fields(queue, r, number)
        timer = Timer(number, fields[6])
        queue.add_near(timer)
    elif not timer.is_gone():
        return None
    else:
        fields = arm_fields(queue, r, number)
    return Op(queue, timer, fields, out)


def arm_again(queue, timer, r, out):
    fields = arm_fields(queue, r, timer.id)
    if r >> 50 & 3 == 0:
        fields = (ARM, fields[1] | NEW, *fields[2:])
    return Op(queue, timer, fields, out)


def refresh(queue, timer, r, out):
    flags, deadline = deadline_of(queue, r >> 8)
    if r >> 57 & 3 == 1:
        flags |= LATER
    if timer.given is not None or timer.again or timer.period:
        # Later than what was delivered, or never.
        at = deadline if not flags & RELATIVE else queue.sent_at
        if at <= queue.sent_at and not flags & RELATIVE:
            deadline = NEVER
    return Op(queue, timer, (REFRESH, flags, 0, r >> 40, timer.id, deadline,
                             r), out)


def doubted(queue, out, want):
    """A QUERY for each timer that nobody knows about."""
    for timer in list(queue.near.values()):
        if timer.doubt and timer.op is None:
            want.append(Op(queue, timer, (QUERY, 0, 0, 0, timer.id, 0, 0),
                           out))


def cancel_all(queue, out, want, periodic):
    """CANCEL for those that come again and again, or for all."""
    for timer in list(queue.near.values()):
        if timer.op is None and not timer.again and timer.due is not None \
                and (timer.period or not periodic):
            want.append(Op(queue, timer, (CANCEL, 0, 0, 0, timer.id, 0, 0),
                           out))


def ack_all(queue, out, want):
    for timer in list(queue.near.values()):
        if timer.op is None and timer.given is not None and not timer.again:
            want.append(Op(queue, timer, (ACK, 0, 0, 0, timer.id, 0, 0), out))

