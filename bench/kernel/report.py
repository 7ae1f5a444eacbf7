# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tables of what bench/kernel/speed, pressure and engines have printed."""

import statistics

from results import Figure, count, markdown

OPS = "arm", "refresh", "cancel"
PAGES = "plain", "pageable"
HOLD = "expire", "arm", "both"
RING, SINGLE = "expiry, uring_cmd of 512", "expiry, 512 ioctls"
BINARY = "binary"

PAGEABLE_MOST = 1.25

FLOOR, ENGINES = "floor", ("embedded", "kernel")
BATCH = 512
CAPACITY_LEAST = 0.6
TRIP_MOST = 1.25


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


# ------------------------------------------------------------------------
# engines


def engine_rows(results, subject):
    """Over a floor that does nothing, and so has one op."""
    for op in results.where(subject=subject).values("op"):
        row = [subject, "any" if subject == FLOOR else op]
        for batch in results.values("batch"):
            here = results.where(subject=subject, op=op, batch=batch)
            row.append(cell(here.figure("p50_us"), "{:.0f}") if batch == 1
                       else cell(here.figure("per_second"), "{:,.0f}"))
        for batch in results.values("batch"):
            over = ratio(results.where(batch=batch),
                         {"subject": subject, "op": op}, {"subject": FLOOR},
                         "p50_us" if batch == 1 else "per_second")
            row.append("" if subject == FLOOR else cell(over, "{:.2f}"))
        yield row


def capacity(results, subject):
    """Of the floor's, round by round, where the other ops take turns."""
    found = []
    for number in results.values("round"):
        here = results.where(round=number, batch=BATCH)
        rates = [here.median("per_second", subject=subject, op=op)
                 for op in OPS]
        found.append(statistics.harmonic_mean(rates) /
                     here.median("per_second", subject=FLOOR))
    return Figure(found)


def aim(what, figure, limit, reached):
    return "%s: %s, to be at %s %.2f: %s\n" % (
        what, cell(figure, "{:.2f}"), "least" if limit < 1 else "most", limit,
        "ok" if reached else "MISSED")


def engines(results):
    text = ""
    for where in results.values("where"):
        text += f"## {where}\n\n"
        for timers in results.where(where=where).values("timers"):
            here = results.where(where=where, timers=timers)
            head, over = [f"{count(timers)} timers", "op"], []
            for batch in here.values("batch"):
                head.append("batch 1: us" if batch == 1
                            else f"{batch}: a second")
                over += [f"of the floor's at {batch}"]
            text += markdown(head + over, [
                row for subject in (FLOOR, *ENGINES)
                for row in engine_rows(here, subject)]) + "\n"
            for subject in ENGINES:
                rate = capacity(here, subject)
                trip = ratio(here.where(batch=1), {"subject": subject},
                             {"subject": FLOOR}, "p50_us", op="arm")
                text += "- " + aim(
                    f"{subject}: capacity at batch {BATCH}, of the floor's",
                    rate, CAPACITY_LEAST, rate.median >= CAPACITY_LEAST)
                text += "- " + aim(
                    f"{subject}: round trip at batch 1, of the floor's",
                    trip, TRIP_MOST, trip.median <= TRIP_MOST)
            text += "\n"
    return text


def tables(bench, host, seconds, results):
    made = {"speed": speed, "pressure": pressure,
            "engines": engines}[bench](results)
    return begin(host, seconds, results) + made
