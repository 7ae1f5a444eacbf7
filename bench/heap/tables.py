# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tables and plots of a run, and what was aimed at."""

from report import plots
from report.tables import Aims, count, markdown

# By subject: the name, and how it is drawn.
HEAPS = {
    "binary": ("binary", "#c0392b", None, 1.6),
    "binary-branch-free": ("binary, branch-free", "#c0392b", plots.DOTS, 1.6),
    "4-ary": ("4-ary, aligned", "#d68910", None, 1.6),
    "4-ary-branch-free": ("4-ary, branch-free", "#d68910", plots.DOTS, 1.6),
    "priority_queue": ("std::priority_queue", "#7d3c98", None, 1.6),
    "subtree": ("subtree pages", "#1f5fa8", None, 2.4),
    "sorted": ("sorted pages", "#1e8449", None, 3.2),
    "control": ("control", "#b5bdc2", None, 1.6),
}
PEERS = {"libev": "#148f9e", "libevent": "#8d6e63", "libevent-common": "#c8a415",
         "rbtree": "#e377c2", "wheel": "#34495e"}
WORKS = {
    "hold": "take the first and put in one for later",
    "drain": "take the first, until none is left or enough are gone",
    "fill": "put in, in any order",
}
WORKLOADS = {
    "ttl": "constant time to live", "exponential": "exponential times to live",
    "timeouts": "99 % cancelled", "sessions": "refreshed on access",
}
LAYOUTS = "subtree", "sorted"

NR = 10**7              # timers, where nothing else is said
RUNS = "heap_pages", "slots_pages", "index_pages"
MEMORY_SLACK = 1.01     # of pages, between one stale node more and less


def names(subjects):
    return [HEAPS.get(subject, [subject])[0] for subject in subjects]


def text_of(figure):
    return str(figure or "")


# ---------------------------------------------------------------------------
# heaps

def heaps_subjects(heaps):
    """Those that were in the run, in the order of HEAPS."""
    found = heaps.values("subject")
    return [subject for subject in HEAPS if subject in found]


def heaps_table(heaps, work):
    subjects = heaps_subjects(heaps)
    rows = []
    for nr in heaps.values("timers"):
        found = [heaps.figure(subject=subject, timers=nr, work=work)
                 for subject in subjects]
        if any(found):
            rows.append([count(nr), *map(text_of, found)])
    return markdown(["nodes"] + names(subjects), rows)


def ratios_table(heaps, work):
    """How many times as fast sorted pages are."""
    subjects = [subject for subject in heaps_subjects(heaps)
                if subject not in ("control", "sorted")]
    rows = []
    for nr in heaps.values("timers"):
        here = heaps.where(timers=nr, work=work)
        own = here.median(subject="sorted")
        others = [here.median(subject=subject) for subject in subjects]
        if own:
            rows.append([count(nr)] + [f"{other / own:.2f}" if other else ""
                                       for other in others])
    return markdown(["nodes"] + names(subjects), rows)


def huge_table(heaps):
    return markdown(
        ["nodes", "heaps in memory together", "MiB", "of it on huge pages"],
        [[count(row["timers"]), str(row["heaps_together"]),
          f"{row['rss_kib'] / 1024:.0f}",
          f"{100 * row['huge_kib'] / max(row['rss_kib'], 1):.0f} %"]
         for row in heaps.where(work="memory").rows])


def heaps_parts(heaps):
    yield "## Heaps by themselves: nanoseconds an operation\n"
    for work, what in WORKS.items():
        yield f"### {work}: {what}\n"
        yield heaps_table(heaps, work)
    for work in "hold", "drain":
        yield f"### {work}: how many times as long as sorted pages\n"
        yield ratios_table(heaps, work)
    yield "### Memory\n"
    yield huge_table(heaps)


# ---------------------------------------------------------------------------
# timers

def timers_table(timers, key="ns"):
    subjects = timers.having(key, "work").values("subject")
    rows = []
    for workload in timers.values("workload"):
        within = timers.where(workload=workload)
        for work in within.values("work"):
            for nr in within.values("timers"):
                found = [within.figure(key, subject=subject, work=work,
                                       timers=nr) for subject in subjects]
                if any(found):
                    rows.append([workload, work, count(nr),
                                 *map(text_of, found)])
    return markdown(["workload", "per", "timers"] + names(subjects), rows)


def timers_parts(timers):
    yield "## Timers: nanoseconds an operation\n"
    yield timers_table(timers)
    yield "## Timers: bytes a timer, all memory\n"
    yield timers_table(timers.where(main=True), "bytes")
    versions = timers.having("version").rows
    if versions:
        yield ", ".join(f"{row['subject']} {row['version']}"
                        for row in versions) + "\n"


# ---------------------------------------------------------------------------
# bounds

def bounds_table(bounds):
    """p50, p99, p99.99 and max of both layouts, by operation."""
    cells = {}
    for row in bounds.rows:
        if row["op"] == "nothing" and row["unit"] != "ns":
            continue
        key = f"{count(row['timers'])}, {row['queue']}", row["work"], row["op"]
        cells.setdefault(key, {})[row["subject"]] = [
            f"{row[name]:,}" for name in ("p50", "p99", "p9999", "max")]
    return markdown(
        ["timers", "while", "operation"] +
        [f"{layout} {name}" for layout in LAYOUTS
         for name in ("p50", "p99", "p99.99", "max")],
        [[*key, *(cell for layout in LAYOUTS
                  for cell in by_layout.get(layout, [""] * 4))]
         for key, by_layout in cells.items()])


def memory_table(bounds):
    rows = []
    for row in bounds.where(work="memory").rows:
        state = row["state"]
        if "pairs" in row:
            state = f"{count(row['pairs'])} arms and cancels, {state}"
        rows.append([f"{count(row['timers'])}, {row['queue']}", row["subject"],
                     state, f"{row['live']:,}",
                     f"{row['bytes']:.1f}" if row["live"] else "",
                     *(f"{row[run]:,}" for run in RUNS)])
    return markdown(["timers", "layout", "state", "live", "bytes each",
                     "heap, pages", "slots", "index"], rows)


def bounds_parts(bounds):
    for unit, what in (
            ("ns", "nanoseconds, the clock's own ('nothing') included"),
            ("lines", "different cache lines of the pages touched"),
            ("pages", "different pages touched"),
            ("accesses", "loads and stores in the pages")):
        if bounds.where(unit=unit):
            yield f"## Single operations: {what}\n"
            yield bounds_table(bounds.where(unit=unit))
    # The watched program sees the same pages.
    clocked = bounds.where(program="bounds")
    if clocked:
        yield "## Memory\n"
        yield memory_table(clocked)


# ---------------------------------------------------------------------------
# What was aimed at

def times_faster(heaps, than, nr, work="hold"):
    other = heaps.median(subject=than, timers=nr, work=work)
    own = heaps.median(subject="sorted", timers=nr, work=work)
    return other / own if other and own else None


def never_slower(aims, heaps, than, asked=True):
    sizes = heaps.values("timers")
    found = {(work, nr): times_faster(heaps, than, nr, work)
             for work in ("hold", "drain") for nr in sizes}
    found = {key: times for key, times in found.items() if times is not None}
    slower = [f"{work} {count(nr)}: {times:.2f}"
              for (work, nr), times in found.items() if times < 1]
    span = f"{count(min(sizes))} to {count(max(sizes))}" if sizes else ""
    aims.at_least(f"sorted pages never slower than {than}, {span}" +
                  ("" if asked else " (not asked for)"), 1,
                  min(found.values(), default=None), "{:.2g}",
                  "; ".join(slower) or (f"{min(found.values()):.2f} at worst"
                                        if found else ""))


def memory_aims(aims, bounds):
    for queue, aim in ("plain", 56), ("keyed", 72):
        for state in ("armed", "while filled, second half",
                      "refreshed and cancelled", "meanwhile at most",
                      "in the storm at most"):
            aims.at_most(f"bytes a live timer at {count(NR)}, {queue}, {state}",
                         aim, bounds.median("bytes", subject="sorted",
                                            queue=queue, timers=NR,
                                            state=state), "{:.4g} bytes")
    pairs = bounds.having("pairs").where(subject="sorted", state="at most")
    for queue in pairs.values("queue"):
        first, *_, last = pairs.where(queue=queue).rows * 2
        if first is last:
            continue
        few, many = (sum(row[run] for run in RUNS) for row in (first, last))
        aims.add(f"pages in use at most, {queue}, in {count(first['pairs'])} and "
                 f"then up to {count(last['pairs'])} arms and cancels", "no more",
                 f"{few:.0f} and {many:.0f}", many <= few * MEMORY_SLACK)
    for state in "drained", "and the rest drained":
        left = [sum(row[run] for run in RUNS)
                for row in bounds.where(state=state).rows]
        aims.add(f"pages in use, {state}", "0", str(max(left)) if left else "",
                 not max(left) if left else None)


def aims_of(heaps, timers, bounds):
    aims = Aims()
    for than, aim in ("binary", 10), ("4-ary", 5):
        aims.at_least(f"sorted pages, hold at {count(NR)}, times as fast as "
                      f"{than}", aim, times_faster(heaps, than, NR))
    for than in "binary", "4-ary":
        never_slower(aims, heaps, than)
    for than in "binary-branch-free", "4-ary-branch-free":
        never_slower(aims, heaps, than, asked=False)
    for what, aim, workload, work in (
            (f"{count(NR)} due timers drained in order", 150, "storm-100",
             "deliver"),
            (f"refresh to later at {count(NR)}, batches of 512", 100,
             "sessions", "refresh"),
            (f"cancel at {count(NR)}, batches of 512", 100, "timeouts",
             "cancel")):
        for subject in "sorted-plain", "sorted-keyed":
            aims.at_most(f"{what}, {subject.replace('-', ', ')}", aim,
                         timers.median(subject=subject, timers=NR,
                                       workload=workload, work=work),
                         "{:.4g} ns")
    memory_aims(aims, bounds)
    return aims


def everything(about, results):
    heaps, timers, bounds = (results.where(bench=bench)
                             for bench in ("heaps", "timers", "bounds"))
    parts = ["## Machine\n", markdown(["", ""], about)]
    for found, made in ((heaps, heaps_parts), (timers, timers_parts),
                        (bounds, bounds_parts)):
        parts += made(found) if found else ()
    return "\n".join(parts + ["## Figures aimed at\n",
                              aims_of(heaps, timers, bounds).markdown()])


# ---------------------------------------------------------------------------
# Plots

def style(subject):
    """Of a heap, or a peer of timers: plain and keyed queues have one colour."""
    if subject in HEAPS:
        return HEAPS[subject][1:]
    name, _, kind = subject.partition("-")
    _, colour, _, width = HEAPS.get(name, (name, PEERS.get(subject, "#777777"),
                                           None, 1.6))
    return colour, plots.DOTS if kind == "keyed" else None, width


def plot(results, title, note, x, subjects):
    """None where there is only one size."""
    sizes = sorted(results.having("ns").values("timers"))
    if len(sizes) < 2:
        return None
    picture = plots.Plot(title, note, x, "Nanoseconds an operation")
    for subject in subjects:
        points = [(nr, results.median(subject=subject, timers=nr))
                  for nr in sizes]
        points = [(nr, ns) for nr, ns in points if ns]
        if points:
            colour, dash, width = style(subject)
            picture.line(points, names([subject])[0], colour, dash=dash,
                         width=width)
    return picture


def pictures(results):
    """{file name: Plot}, of what the run has."""
    made = {}
    heaps = results.where(bench="heaps")
    for work, what in WORKS.items():
        here = heaps.where(work=work)
        rounds = len(set(here.values("round")) - {0}) or 1
        made[f"{work}.svg"] = plot(
            here, f"{work.capitalize()}: {what}", "16-byte nodes in RAM; median "
            f"of {rounds} interleaved rounds, processor time",
            "Nodes in the heap", heaps_subjects(here))
    timers = results.where(bench="timers", main=True)
    for workload, what in WORKLOADS.items():
        here = timers.where(workload=workload)
        made[f"timers-{workload}.svg"] = plot(
            here, f"Timers: {what}",
            "in one process, processor time of batches of 512", "Live timers",
            here.values("subject"))
    return {name: picture for name, picture in made.items() if picture}
