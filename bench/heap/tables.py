# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tables of a run."""

from results import HEAPS, count, markdown

LAYOUTS = "subtree", "sorted"


def names(subjects):
    return [HEAPS.get(subject, subject) for subject in subjects]


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
            rows.append([count(nr)] + [str(figure or "") for figure in found])
    return markdown(["nodes"] + names(subjects), rows)


def ratios_table(heaps, work):
    """How many times as fast sorted pages are."""
    subjects = [subject for subject in heaps_subjects(heaps)
                if subject not in ("control", "sorted")]
    rows = []
    for nr in heaps.values("timers"):
        own = heaps.median(subject="sorted", timers=nr, work=work)
        if not own:
            continue
        row = [heaps.median(subject=subject, timers=nr, work=work)
               for subject in subjects]
        rows.append([count(nr)] + [f"{other / own:.2f}" if other else ""
                                   for other in row])
    return markdown(["nodes"] + names(subjects), rows)


def huge_table(heaps):
    return markdown(
        ["nodes", "heaps in memory together", "MiB", "of it on huge pages"],
        [[count(line["timers"]), str(line["heaps_together"]),
          f"{line['rss_kib'] / 1024:.0f}",
          f"{100 * line['huge_kib'] / max(line['rss_kib'], 1):.0f} %"]
         for line in heaps.where(work="memory").lines])


def heaps_text(heaps):
    if not heaps:
        return ""
    parts = ["## Heaps by themselves: nanoseconds an operation\n"]
    for work, what in (
            ("hold", "take the first and put in one for later"),
            ("drain", "take the first, until none is left or enough are gone"),
            ("fill", "put in, in any order")):
        parts += [f"### {work}: {what}\n", heaps_table(heaps, work)]
    for work in "hold", "drain":
        parts += [f"### {work}: how many times as long as sorted pages\n",
                  ratios_table(heaps, work)]
    parts += ["### Memory\n", huge_table(heaps)]
    return "\n".join(parts)


# ---------------------------------------------------------------------------
# timers

def timers_rows(timers, key="ns"):
    """Rows of (workload, what, timers) and figures by subject."""
    subjects = timers.having(key, "work").values("subject")
    rows = []
    for workload in timers.values("workload"):
        within = timers.where(workload=workload)
        for work in within.values("work"):
            for nr in within.values("timers"):
                found = [within.figure(key, subject=subject, work=work,
                                       timers=nr) for subject in subjects]
                if any(found):
                    rows.append((workload, work, nr, found))
    return subjects, rows


def timers_table(timers, key="ns", mains=False):
    subjects, rows = timers_rows(timers.where(main=True) if mains else timers,
                                 key)
    return markdown(["workload", "per", "timers"] + names(subjects),
                    [[workload, work, count(nr)] +
                     [str(figure or "") for figure in found]
                     for workload, work, nr, found in rows])


def timers_text(timers):
    if not timers:
        return ""
    parts = ["## Timers: nanoseconds an operation\n", timers_table(timers),
             "## Timers: bytes a timer, all memory\n",
             timers_table(timers, "bytes", mains=True)]
    for key, what in (("instructions", "instructions"),
                      ("cache_misses", "cache misses"),
                      ("dtlb_misses", "misses of the TLB")):
        if timers.having(key):
            parts += [f"## Timers: {what} an operation\n",
                      timers_table(timers, key, mains=True)]
    versions = timers.having("version").lines
    if versions:
        parts.append(", ".join(f"{line['subject']} {line['version']}"
                               for line in versions) + "\n")
    return "\n".join(parts)


# ---------------------------------------------------------------------------
# bounds

def bounds_table(bounds, unit):
    """p50, p99, p99.99 and max of both layouts, by operation."""
    keys = "p50", "p99", "p9999", "max"
    rows = []
    found = bounds.where(unit=unit)
    for queue in found.values("queue"):
        for nr in found.where(queue=queue).values("timers"):
            for work in found.values("work"):
                within = found.where(queue=queue, timers=nr, work=work)
                for op in within.values("op"):
                    if op == "nothing" and unit != "ns":
                        continue
                    row = [f"{count(nr)}, {queue}", work, op]
                    for layout in LAYOUTS:
                        lines = within.where(op=op, subject=layout).lines
                        row += ([f"{lines[0][key]:,}" for key in keys]
                                if lines else [""] * len(keys))
                    rows.append(row)
    return markdown(["timers", "while", "operation"] +
                    [f"{layout} {name}" for layout in LAYOUTS
                     for name in ("p50", "p99", "p99.99", "max")], rows)


def memory_table(bounds):
    rows = []
    for line in bounds.where(work="memory").lines:
        state = line["state"]
        if "pairs" in line:
            state = f"{count(line['pairs'])} arms and cancels, {state}"
        rows.append([f"{count(line['timers'])}, {line['queue']}",
                     line["subject"], state, f"{line['live']:,}",
                     f"{line['bytes']:.1f}" if line["live"] else "",
                     f"{line['heap_pages']:,}", f"{line['slots_pages']:,}",
                     f"{line['index_pages']:,}"])
    return markdown(["timers", "layout", "state", "live", "bytes each",
                     "heap, pages", "slots", "index"], rows)


def bounds_text(bounds):
    if not bounds:
        return ""
    parts = []
    for unit, what in (
            ("ns", "nanoseconds, the clock's own ('nothing') included"),
            ("lines", "different cache lines of the pages touched"),
            ("pages", "different pages touched"),
            ("accesses", "loads and stores in the pages")):
        if bounds.where(unit=unit):
            parts += [f"## Single operations: {what}\n",
                      bounds_table(bounds, unit)]
    # The watched program sees the same pages.
    clocked = bounds.where(program="bounds")
    if clocked:
        parts += ["## Memory\n", memory_table(clocked)]
    return "\n".join(parts)


# ---------------------------------------------------------------------------

def everything(about, results, targets):
    return "\n".join(filter(None, (
        "## Machine\n", markdown(["", ""], [list(row) for row in about]),
        heaps_text(results.where(bench="heaps")),
        timers_text(results.where(bench="timers")),
        bounds_text(results.where(bench="bounds")),
        "## Figures aimed at\n", targets)))
