# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a machine must say of its durable queues after a start (reboots-inside)."""

from reboots import CLOCKS, FAR, LATE, OFF, PERIOD_MS, PERIODIC, SOON, Churn, kind_of
from client import REDELIVERED, SECOND

# Between two readings of clocks, and from a daemon's start to the end of its recovery.
TOLERANCE, RECOVERY = SECOND // 2, 5 * SECOND
PERIOD = PERIOD_MS * SECOND // 1000
# Rounds that were answered and whose line stood in the console of a machine that lost
# its power.
LATER = 500


class Said:
    """What a machine said in one start. @ended: the wall clock when it was off."""

    def __init__(self, lines, start, seed, ended):
        self.start, self.seed, self.ended = start, seed, ended
        self.lines = lines
        self.last = next((line["clocks"] for line in reversed(lines)
                          if "clocks" in line), None)
        armed = [line for line in lines if "armed" in line]
        self.armed = {line["armed"]: {int(number): deadline for number, deadline in
                                      line["deadlines"].items()} for line in armed}
        self.rounds = max((line["round"] for line in lines if "round" in line), default=0)

    def ids(self, what, name, start):
        """Returns the ids of that queue and start of which it said so."""
        return [line["id"] for line in self.lines
                if line.get(what) == name and line["id"] // 1000 == start]

    def one(self, what, value=None):
        return next(line for line in self.lines
                    if what in line and value in (None, line[what]))

    def churn(self):
        """Returns the queue of random requests, up to rounds after the last that was
        told."""
        churn = Churn(self.start, self.seed, self.one("base")["base"])
        for _ in range(self.rounds + LATER):
            churn.expect(churn.round())
        return churn


def moved(name, before, after):
    """Returns by how much deadlines may have moved over the reboot: least and most."""
    now, began = after.one("looked")["looked"], after.one("looked")["uptime"]
    if name == "real":
        return 0, 0
    if name == "boot":
        shift = (before.last["real"] - before.last["boot"]) - (now["real"] - now["boot"])
        return shift - TOLERANCE, shift + TOLERANCE
    # It stood still from the end of the last daemon, before the machine was off, to the
    # start of this one.
    start = now["mono"] - began
    off = before.last["mono"] + before.ended - before.last["real"]
    return start - off - TOLERANCE, start - before.last["mono"] + 2 * SECOND


def is_in_phase(offset, least, most):
    """Returns whether an offset is a number of periods and a move."""
    return (offset - least) % PERIOD <= most - least


def judge_queue(name, before, after):
    """Yields what is wrong."""
    start, armed = before.start, before.armed[name]
    least, most = moved(name, before, after)
    now = after.one("looked")
    began = now["looked"][name] - now["uptime"]
    came = [line for line in after.lines if line.get("came") == name and
            line["id"] // 1000 == start]
    ended, ending = before.ids("ended", name, start), before.ids("ending", name, start)
    once = {number for number in ended if kind_of(number) != PERIODIC}

    for number in armed:
        if kind_of(number) != FAR and (number not in ending or kind_of(
                number) == PERIODIC) and not any(line["id"] == number for line in came):
            yield f"timer {number} is lost"
    rows = after.one("rows", name)["deadlines"]
    for number, deadline in armed.items():
        by = rows.get(str(number), 0) - deadline
        if kind_of(number) == FAR and not least <= by <= most:
            yield f"timer {number} has moved by {by}, not {least}..{most}"

    seen, last = set(), 0
    for line in came:
        number, deadline = line["id"], line["deadline"]
        first, is_late = number not in seen, line["flags"] & LATE
        periodic = kind_of(number) == PERIODIC
        seen.add(number)
        offset = deadline - armed[number]
        if number in once:
            yield f"timer {number} comes after its ACK"
        if not first and not periodic:
            yield f"timer {number} comes twice"
        if line["now"] < deadline:
            yield f"timer {number} is early"
        if periodic and not is_in_phase(offset, least, most):
            yield f"timer {number} is out of phase by {offset % PERIOD}"
        # What was due before the clock was 0 is due at 0 now.
        if not periodic and not least <= offset <= most and (
                deadline or armed[number] + least > 0):
            yield f"timer {number} has moved by {offset}, not {least}..{most}"
        if bool(is_late) != (deadline < began) and abs(deadline - began) > RECOVERY:
            yield f"timer {number} has flags {line['flags']}"
        if is_late and not first:
            yield f"timer {number} is late twice"
        if first and number in before.ids("came", name, start) and not periodic and \
                not line["flags"] & REDELIVERED:
            yield f"timer {number} is not marked as redelivered"
        if first:
            if deadline < last:
                yield f"timer {number} is out of order"
            last = deadline
    again = after.one("again", name)["ids"]
    if again:
        yield f"{again} come again after their ACK"


def judge(before, after):
    """Returns what is wrong after a reboot: texts."""
    wrong = [f"{name}: {text}" for name in CLOCKS
             for text in judge_queue(name, before, after)]
    churn, told = before.churn(), after.one("churn")["churn"]
    if told is None:
        wrong.append("no queue of random requests")
    else:
        text = churn.judge_sum(int(told), before.rounds, LATER)
        if text:
            wrong.append(text)
    return wrong


def figures(before, after):
    """Returns a text of how much there was to judge."""
    count = {kind: 0 for kind in (SOON, OFF, PERIODIC)}
    for name in CLOCKS:
        for number in set(after.ids("came", name, before.start)):
            count[kind_of(number)] += 1
    churn = before.churn()
    late = sum(1 for line in after.lines if "came" in line and line["flags"] & LATE)
    acks = sum(len(before.ids("ended", name, before.start)) for name in CLOCKS)
    return (f"{churn.round_ends[before.rounds]} requests at random and {acks} ACKs "
            f"answered; then {late} late, {count[SOON]} not acknowledged before, "
            f"{count[OFF]} due later, {count[PERIODIC]} periodic")
