# SPDX-License-Identifier: LGPL-2.1-or-later
"""The figures aimed at, and whether a run reaches them. A layout of the heap has a table."""

from report.figures import Figure, plainly
from report.tables import Aims, count

PEERS = "libev", "libevent", "rbtree", "binary", "priority_queue"
FAR_AHEAD = "ttl", "exponential", "lognormal", "sessions", "timeouts", "equal"
WHEEL = "ttl", "exponential", "lognormal", "storm-10", "storm-100", "equal"
WHEEL_LARGE = "sessions", "timeouts"
FAIR_DESCENDING = 2.5           # times the fair wheel's
DIGITS = {None: "as shipped", 2: "of 2 bits", 3: "of 3 bits"}
STATES = ("armed", "while filled, second half", "refreshed and cancelled",
          "meanwhile at most")


class Sizes:
    """Numbers of timers; a quick run has smaller ones. @nodes: of heaps alone."""

    def __init__(self, quick):
        self.quick = quick
        self.small, self.middle, self.large = \
            (10**4, 2 * 10**4, 10**5) if quick else (10**4, 10**6, 10**7)
        self.nodes = [10**power for power in range(1, 6 if quick else 9)]
        self.hold = self.large


def ratio(timers, own, other, workload, nr):
    """How many times as long @other takes: round by round where they took turns, else
    that of the medians. A Figure, or None."""
    here = timers.where(workload=workload, timers=nr, main=True)
    if not here.where(interleaved=False):
        return here.ratio({"subject": other}, {"subject": own})
    above, below = (here.median(subject=name) for name in (other, own))
    return Figure([above / below]) if above and below else None


def is_left_out(workload, nr):
    """Whether the program may leave it out: where it would take minutes."""
    return workload == "storm-100" and nr > 10**6


def worst(timers, own, others, workloads, sizes):
    """The least of all those ratios, and where it is. None if one is missing."""
    found = {(other, workload, nr): ratio(timers, own, other, workload, nr)
             for other in others for workload in workloads for nr in sizes}
    found = {key: figure for key, figure in found.items()
             if figure or not is_left_out(*key[1:])}
    if not found or not all(found.values()):
        return None, ""
    least = min(found, key=lambda key: found[key].median)
    return found[least], " ".join((least[0], least[1], count(least[2])))


def times(figure):
    """As a multiple of something."""
    return figure.text(lambda value: f"{value:.2f}")


def at_least(aims, what, aim, figure, where=""):
    aims.at_least(what, aim, figure and figure.median,
                  here=figure and f"{times(figure)} {where}".strip())


def at_most(aims, what, aim, figure, unit, form=plainly):
    aims.at_most(what, aim, figure and figure.median, "{:.4g} " + unit,
                 figure and f"{figure.text(form)} {unit}")


# ---------------------------------------------------------------------------
# Beside others

def peers(aims, timers, own, sizes):
    every = timers.having("main").values("workload")
    for peer in PEERS:
        slower, missing = [], not every
        for nr in sizes.small, sizes.middle, sizes.large:
            for workload in every:
                figure = ratio(timers, own, peer, workload, nr)
                if figure is None:
                    missing |= not is_left_out(workload, nr)
                else:
                    slower.append((figure.median, figure, workload, nr))
        if missing or not slower:
            at_least(aims, f"never slower than {peer}", 1, None)
            continue
        _, figure, workload, nr = min(slower, key=lambda row: row[0])
        at_least(aims, f"never slower than {peer}, {count(sizes.small)} to "
                 f"{count(sizes.large)}, at worst", 1, figure,
                 f"{workload} {count(nr)}")
    for workload in FAR_AHEAD:
        figure, where = worst(timers, own, PEERS, [workload], [sizes.middle])
        at_least(aims, f"{workload} at {count(sizes.middle)}, times as fast as the best "
                 "of them", 3, figure, where)


def wheels(aims, timers, own, sizes):
    ahead = [(workload, (sizes.small, sizes.middle, sizes.large)) for workload in WHEEL]
    ahead += [(workload, (sizes.middle, sizes.large)) for workload in WHEEL_LARGE]
    for workload, here in ahead:
        figure, where = worst(timers, own, ["wheel"], [workload], here)
        at_least(aims, f"ahead of the bare wheel, {workload}, at worst", 1, figure,
                 where)
    every = timers.having("main").values("workload")
    for workload in every:
        figure, where = worst(timers, own, ["wheel-ids"], [workload],
                              (sizes.small, sizes.middle, sizes.large))
        least = 1 / FAIR_DESCENDING if workload == "descending" else 1
        at_least(aims, f"beside the wheel with records and checked ids, {workload}, at "
                 "worst", least, figure, where)


# ---------------------------------------------------------------------------
# By itself

def difference(timers, layout, workload, nr):
    """How much longer keyed queues take, by round."""
    here = timers.where(workload=workload, timers=nr, main=True)
    found = []
    for number in here.values("round"):
        keyed, plain = (here.where(round=number).median(subject=f"{layout}-{kind}")
                        for kind in ("keyed", "plain"))
        if keyed is not None and plain is not None:
            found.append(keyed - plain)
    return Figure(found) if found else None


def keyed(aims, timers, layout, sizes):
    for nr, aim in (sizes.small, 35), (sizes.large, 90):
        for workload in timers.having("main").values("workload"):
            at_most(aims, f"keyed less plain, {workload}, {count(nr)}", aim,
                    difference(timers, layout, workload, nr), "ns")


def drain(aims, timers, layout, sizes):
    for kind, aim in ("plain", 60), ("keyed", 120):
        at_most(aims, f"drain of {count(sizes.large)} due, {kind}", aim,
                timers.figure(subject=f"{layout}-{kind}", workload="storm-100",
                              main=True, timers=sizes.large), "ns")


def longest(aims, what, rows):
    most = max(rows, key=lambda row: row["max"], default=None)
    aims.at_most(what, 500, most and most["max"], "{:.4g} lines", most and
                 f"{most['max']:,} lines, {most['op']} while {most['work']}, "
                 f"{most['queue']}")


def single(aims, bounds, lines, layout, sizes):
    for nr in sizes.middle, sizes.large:
        for op, aim in ("arm", 5), ("deliver", 8):
            found = bounds.all("p9999", subject=layout, queue="plain", work="hold",
                               op=op, unit="ns", timers=nr)
            at_most(aims, f"{op} alone, p99.99 at {count(nr)}", aim,
                    Figure([ns / 1000 for ns in found]) if found else None, "us")
    found = lines.where(subject=layout, unit="lines", timers=sizes.middle).rows
    longest(aims, f"longest request or delivery at {count(sizes.middle)}",
            [row for row in found if row["op"] not in ("nothing", "drop stale")])
    longest(aims, f"longest call that drops stale nodes in 512 steps at "
            f"{count(sizes.middle)}", [row for row in found if row["op"] == "drop stale"])


def memory(aims, bounds, layout, sizes):
    for queue, aim in ("plain", 56), ("keyed", 72):
        for state in STATES:
            at_most(aims, f"bytes a live timer at {count(sizes.large)}, {queue}, {state}",
                    aim, bounds.figure("bytes", subject=layout, queue=queue,
                                       timers=sizes.large, state=state), "bytes")


def heaps(aims, rows, layout, sizes):
    for than, aim in ("binary-branch-free", 5), ("4-ary", 4):
        at_least(aims, f"heap alone, hold at {count(sizes.hold)}, times as fast as "
                 f"{than}", aim, rows.where(timers=sizes.hold, work="hold").ratio(
                     {"subject": than}, {"subject": layout}))
    for than in "binary-branch-free", "4-ary":
        found = {nr: rows.where(timers=nr, work="hold").ratio(
            {"subject": than}, {"subject": layout}) for nr in sizes.nodes}
        what = f"heap alone, hold, never slower than {than}, {count(sizes.nodes[0])} " \
            f"to {count(sizes.nodes[-1])}, at worst"
        if not all(found.values()):
            at_least(aims, what, 1, None)
            continue
        nr = min(found, key=lambda nr: found[nr].median)
        at_least(aims, what, 1, found[nr], count(nr))


def transfers(row, resident):
    if resident > row["pages"]:
        return 0
    return (row["in"][resident - 1] + row["out"][resident - 1]) / row["operations"]


def paper(aims, rows, layout):
    for resident, aim in (9, 0.20), (32, 0.05):
        for bits in DIGITS if layout == "radix" else [None]:
            found = [transfers(row, resident) for row in
                     rows.where(layout=layout, element=16).rows
                     if row.get("bits") == bits]
            digits = f", digits {DIGITS[bits]}" if layout == "radix" else ""
            aims.at_most(f"the paper's run, {resident} resident pages{digits}", aim,
                         found[0] if found else None, "{:.3f} transfers")


def daemon(aims, rows, base):
    if not rows:
        at_least(aims, "through the daemon", 1.4, None)
    for nr in rows.values("timers"):
        here = rows.where(timers=nr)
        for op in here.values("op"):
            figure = here.where(op=op).ratio({"tree": "this"}, {"tree": "base"},
                                             "per_second")
            at_least(aims, f"through the daemon, {op}, batch 512, {count(nr)} timers, "
                     f"times the requests a second of {base}", 1.4, figure)


def of_layout(results, layout, sizes, base):
    """@results: by bench, Results. The daemon has the layout of its own engine, which is radix."""
    aims, own = Aims(), f"{layout}-plain"
    peers(aims, results["timers"], own, sizes)
    wheels(aims, results["timers"], own, sizes)
    single(aims, results["bounds"], results["lines"], layout, sizes)
    keyed(aims, results["timers"], layout, sizes)
    drain(aims, results["timers"], layout, sizes)
    heaps(aims, results["heaps"], layout, sizes)
    memory(aims, results["bounds"], layout, sizes)
    paper(aims, results["paper"], layout)
    if base and layout == "radix":
        daemon(aims, results["daemon"], base)
    return aims
