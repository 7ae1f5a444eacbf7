# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tables of what bench/kernel/speed and bench/kernel/pressure have printed."""

from results import Figure, count, markdown

OPS = "arm", "refresh", "cancel"
PAGES = "plain", "pageable"
HOLD = "expire", "arm", "both"
RING, SINGLE = "expiry, uring_cmd of 512", "expiry, 512 ioctls"
BINARY = "binary"

PAGEABLE_MOST = 1.25


def cell(figure, form="{:.0f}"):
    """Median, least and most."""
    if not figure:
        return "-"
    return "%s (%s\u2013%s)" % tuple(
        form.format(value) for value in (figure.median, figure.min, figure.max))


def ratio(results, above, below, key="ns", **wanted):
    """Of two subjects that took turns: round by round. @above, @below: what
    tells them apart."""
    pairs = []
    for number in results.values("round"):
        one = results.median(key, round=number, **wanted, **above)
        other = results.median(key, round=number, **wanted, **below)
        if one is not None and other:
            pairs.append(one / other)
    return Figure(pairs) if pairs else None


def begin(host, seconds, results):
    text = "".join(f"- {what}: {which}\n" for what, which in host
                   if what in ("processor", "memory", "load before"))
    for line in results.having("release").lines:
        text += ("- engine {engine}, Linux {release}, {where}, "
                 "{processors} processor(s)\n".format(**line))
    rounds = len(results.values("round"))
    return text + (f"- median (least\u2013most) of {rounds} rounds in which all "
                   f"took turns; {seconds:.0f} s in all\n\n")


# ------------------------------------------------------------------------
# speed


def requests(results):
    rows = []
    for subject in results.values("subject"):
        rows.append([subject] + [cell(results.figure(subject=subject, op=op))
                                 for op in ("none",) + OPS])
    for subject in results.values("subject"):
        if subject == RING or results.figure(subject=subject, op="none"):
            continue
        rows.append([f"{subject}: of a uring_cmd's", ""] + [
            cell(ratio(results, {"subject": subject}, {"subject": RING}, op=op),
                 "{:.1f}") for op in OPS])
    return markdown(["ns a timer", "nothing", *OPS], rows)


def memory(results):
    rows = []
    for line in results.lines:
        rows.append([line["subject"], count(line["timers"])] +
                    ["%.0f" % line[key] for key in ("slab", "shmem")] +
                    ["%.0f" % (line["slab"] + line["shmem"]),
                     "%.0f" % line["free"]])
    return markdown(["bytes a timer", "timers", "slab", "shmem", "together",
                     "less free memory"], rows)


def hold(results):
    rows = []
    for pages in PAGES:
        rows.append([pages] + [cell(results.figure(subject=pages, op=op))
                               for op in HOLD])
    found = [ratio(results, {"subject": PAGES[1]}, {"subject": PAGES[0]}, op=op)
             for op in HOLD]
    rows.append(["pageable of plain"] + [cell(one, "{:.2f}") for one in found])
    text = markdown(["ns a timer", *HOLD], rows)
    reached = found[-1].median <= PAGEABLE_MOST
    return text + "\nBoth, pageable of plain: %.2f, to be at most %.2f: %s\n" % (
        found[-1].median, PAGEABLE_MOST, "ok" if reached else "MISSED")


def speed(results):
    text = ""
    for where in results.values("where"):
        here = results.where(where=where)
        timers = here.where(bench="requests", op="arm").values("timers")[0]
        text += (f"## {where}\n\nBeside {count(timers)} timers each:\n\n" +
                 requests(here.where(bench="requests")) + "\n" +
                 memory(here.where(bench="memory")))
        timers = here.where(bench="hold").values("timers")[0]
        text += (f"\nA queue of {count(timers)} timers, all of it in memory:\n\n"
                 + hold(here.where(bench="hold")) + "\n")
    return text


# ------------------------------------------------------------------------
# pressure


def pressure_row(results, share, layout):
    here = results.where(share=share, layout=layout)
    row = [f"{share} %", layout,
           "%.0f" % (here.median("resident_kib") / 1024),
           cell(here.figure("in"), "{:.3f}"), cell(here.figure("out"), "{:.3f}"),
           cell(here.figure("ns"))]
    for key in "in", "ns":
        row.append("" if layout == BINARY else cell(
            ratio(results.where(share=share), {"layout": BINARY},
                  {"layout": layout}, key), "{:.2f}"))
    return row


def pressure(results):
    text = ""
    measured = results.where(bench="pressure").having("layout")
    for deadlines in measured.values("deadlines"):
        here = measured.where(deadlines=deadlines)
        line = here.lines[0]
        rows = [pressure_row(here, share, layout)
                for share in here.values("share")
                for layout in here.values("layout")]
        text += ("Deadlines %s; %s timers in %.0f MiB, %.0f of them heap; %s "
                 "expirations and arms a round\n\n" % (
                     deadlines, count(line["timers"]), line["queue_kib"] / 1024,
                     line["heap_kib"] / 1024, count(line["ops"])))
        text += markdown(["in memory", "layout", "MiB", "page-ins", "page-outs",
                          "ns", "binary's page-ins", "binary's ns"], rows) + "\n"
    return text


def tables(bench, host, seconds, results):
    made = {"speed": speed, "pressure": pressure}[bench](results)
    return begin(host, seconds, results) + made
