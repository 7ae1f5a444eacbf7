# SPDX-License-Identifier: LGPL-2.1-or-later
"""What was aimed at, and whether this run reaches it."""

from results import count, markdown

NR = 10000000           # timers, where nothing else is said
RUNS = "heap_pages", "slots_pages", "index_pages"
MEMORY_SLACK = 1.01     # of pages, between one stale node more and less


class Targets:
    """Rows of (what, aim, here, verdict)."""

    def __init__(self, results):
        self.rows = []
        self.heaps = results.where(bench="heaps")
        self.timers = results.where(bench="timers")
        self.bounds = results.where(bench="bounds")

    def add(self, what, aim, here, reached):
        self.rows.append((what, aim, here,
                          "not measured" if reached is None else
                          "ok" if reached else "**MISSED**"))

    def at_most(self, what, aim, here, unit):
        self.add(what, f"\u2264 {aim:g} {unit}",
                 "" if here is None else f"{here:.4g} {unit}",
                 None if here is None else here <= aim)

    # The heap by itself

    def times_faster(self, than, nr, work="hold"):
        other = self.heaps.median(subject=than, timers=nr, work=work)
        own = self.heaps.median(subject="sorted", timers=nr, work=work)
        return other / own if other and own else None

    def ratio(self, than, aim, nr=NR):
        here = self.times_faster(than, nr)
        self.add(f"sorted pages, hold at {count(nr)}, times as fast as {than}",
                 f"\u2265 {aim}" if aim else "",
                 "" if here is None else f"{here:.2f}",
                 None if here is None else not aim or here >= aim)

    def never_slower(self, than, asked=True):
        slower, worst = [], None
        sizes = self.heaps.values("timers")
        for work in "hold", "drain":
            for nr in sizes:
                here = self.times_faster(than, nr, work)
                if here is None:
                    continue
                worst = here if worst is None else min(here, worst)
                if here < 1:
                    slower.append(f"{work} {count(nr)}: {here:.2f}")
        span = (f"{count(min(sizes))} to {count(max(sizes))}" if sizes else "")
        self.add(f"sorted pages never slower than {than}, {span}" +
                 ("" if asked else " (not asked for)"), "\u2265 1",
                 "; ".join(slower) or (f"{worst:.2f} at worst" if worst
                                       else ""),
                 None if worst is None else not slower)

    # The joined structure

    def timer(self, what, aim, **wanted):
        for subject in "sorted-plain", "sorted-keyed":
            self.at_most(f"{what}, {subject.replace('-', ', ')}", aim,
                         self.timers.median(subject=subject, timers=NR,
                                            **wanted), "ns")

    def bytes_each(self, queue, aim):
        for state in ("armed", "while filled, second half",
                      "refreshed and cancelled", "meanwhile at most",
                      "in the storm at most"):
            self.at_most(f"bytes a live timer at {count(NR)}, {queue}, "
                         f"{state}", aim,
                         self.bounds.median("bytes", subject="sorted",
                                            queue=queue, timers=NR,
                                            state=state), "bytes")

    def comes_back(self):
        pairs = self.bounds.having("pairs")
        for queue in pairs.values("queue"):
            few, *_, many = pairs.where(queue=queue).values("pairs") * 2
            if few == many:
                continue
            pages = [sum(self.bounds.median(run, subject="sorted",
                                            queue=queue, pairs=nr,
                                            state="at most")
                         for run in RUNS) for nr in (few, many)]
            self.add(f"pages in use at most, {queue}, in {count(few)} "
                     f"and then up to {count(many)} arms and cancels",
                     "no more", f"{pages[0]:.0f} and {pages[1]:.0f}",
                     pages[1] <= pages[0] * MEMORY_SLACK)
        for state in "drained", "and the rest drained":
            left = [sum(line[run] for run in RUNS)
                    for line in self.bounds.where(state=state).lines]
            self.add(f"pages in use, {state}", "0",
                     str(max(left)) if left else "",
                     not max(left) if left else None)


def table(results):
    targets = Targets(results)
    targets.ratio("binary", 10)
    targets.ratio("4-ary", 5)
    targets.never_slower("binary")
    targets.never_slower("4-ary")
    for than in "binary-branch-free", "4-ary-branch-free":
        targets.never_slower(than, asked=False)
    targets.timer(f"{count(NR)} due timers drained in order", 150,
                  workload="storm-100", work="deliver")
    targets.timer(f"refresh to later at {count(NR)}, batches of 512", 100,
                  workload="sessions", work="refresh")
    targets.timer(f"cancel at {count(NR)}, batches of 512", 100,
                  workload="timeouts", work="cancel")
    targets.bytes_each("plain", 56)
    targets.bytes_each("keyed", 72)
    targets.comes_back()
    return markdown(["aimed at", "aim", "here", ""], targets.rows)
