# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tables of what bench/kernel/speed, pressure, engines and waits have printed."""

import statistics

from report.figures import Figure, Results
from report.tables import Aims, count, markdown

OPS = "arm", "refresh", "cancel"
PAGES = "plain", "pageable"
HOLD = "expire", "arm", "both"
RING = "expiry, uring_cmd of 512"
BINARY, DEFAULT = "binary", "sorted"
PAGEABLE_MOST = 1.25

FLOOR, ENGINES = "floor", ("embedded", "kernel")
BATCH = 512
CAPACITY_LEAST = 0.6
TRIP_MOST = 1.25


def cell(figure, form="{:.0f}"):
    return figure.text(form.format) if figure else "-"


def begin(host, seconds, results):
    text = "".join(f"- {what}: {which}\n" for what, which in host
                   if what in ("processor", "memory", "load before"))
    for row in results.having("release").rows:
        text += ("- engine {engine}, Linux {release}, {where}, "
                 "{processors} processor(s)\n".format(**row))
    rounds = len(results.values("round"))
    return text + (f"- median (least\u2013most) of {rounds} rounds in which all "
                   f"took turns; {seconds:.0f} s in all\n\n")


# ------------------------------------------------------------------------
# speed


def requests(results):
    subjects = results.values("subject")
    rows = [[subject] + [cell(results.figure(subject=subject, op=op))
                         for op in ("none", *OPS)] for subject in subjects]
    rows += [[f"{subject}: of a uring_cmd's", ""] + [
        cell(results.ratio({"subject": subject}, {"subject": RING}, op=op),
             "{:.1f}") for op in OPS] for subject in subjects
        if subject != RING and not results.where(subject=subject, op="none")]
    return markdown(["ns a timer", "nothing", *OPS], rows)


def memory(results):
    return markdown(
        ["bytes a timer", "timers", "slab", "shmem", "together",
         "less free memory"],
        [[row["subject"], count(row["timers"])] + [
            "%.0f" % size for size in (row["slab"], row["shmem"],
                                       row["slab"] + row["shmem"], row["free"])]
         for row in results.rows])


def hold(results):
    plain, pageable = ({"subject": pages} for pages in PAGES)
    ratios = [results.ratio(pageable, plain, op=op) for op in HOLD]
    aims = Aims()
    aims.at_most("both, pageable of plain", PAGEABLE_MOST, ratios[-1].median,
                 "{:.2f}")
    return markdown(
        ["ns a timer", *HOLD],
        [[pages] + [cell(results.figure(subject=pages, op=op)) for op in HOLD]
         for pages in PAGES] +
        [["pageable of plain"] + [cell(ratio, "{:.2f}") for ratio in ratios]]
    ) + "\n" + aims.markdown()


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
    here = results.where(share=share)
    own = here.where(layout=layout)
    return [f"{share} %", layout, "%.0f" % (own.median("resident_kib") / 1024),
            cell(own.figure("in"), "{:.3f}"), cell(own.figure("out"), "{:.3f}"),
            cell(own.figure())] + [
                "" if layout == other else
                cell(here.ratio({"layout": other}, {"layout": layout}, key),
                     "{:.2f}") for other in (BINARY, DEFAULT)
                for key in ("in", "ns")]


def least(results, key):
    """Which layout has the least of it, and what the default has of that."""
    best = min(results.values("layout"),
               key=lambda layout: results.median(key, layout=layout))
    return [best, "" if best == DEFAULT else cell(results.ratio(
        {"layout": DEFAULT}, {"layout": best}, key), "{:.2f}")]


def choice(results):
    """The layouts that a queue can have, one against the other."""
    return markdown(
        ["deadlines", "in memory", "fewest page-ins", "the default's of them",
         "least ns", "the default's of it"],
        [[deadlines, f"{share} %"] + least(here, "in") + least(here, "ns")
         for deadlines in results.values("deadlines")
         for share in results.values("share")
         for here in [results.where(deadlines=deadlines, share=share)]])


def pressure(results):
    text = ""
    measured = results.where(bench="pressure").having("layout")
    for deadlines in measured.values("deadlines"):
        here = measured.where(deadlines=deadlines)
        row = here.rows[0]
        text += ("Deadlines %s; %s timers in %.0f MiB, %.0f of them heap; %s "
                 "expirations and arms a round\n\n" % (
                     deadlines, count(row["timers"]), row["queue_kib"] / 1024,
                     row["heap_kib"] / 1024, count(row["ops"])))
        text += markdown(["in memory", "layout", "MiB", "page-ins", "page-outs",
                          "ns"] + [f"{other}'s {what}" for other in (BINARY, DEFAULT)
                                    for what in ("page-ins", "ns")],
                         [pressure_row(here, share, layout)
                          for share in here.values("share")
                          for layout in here.values("layout")]) + "\n"
    layouts = Results([row for row in measured.rows if row["layout"] != BINARY])
    return text + (f"Which layout a queue should have here; *{DEFAULT}* is the default\n\n"
                   + choice(layouts))


# ------------------------------------------------------------------------
# engines


def engine_rows(results, subject):
    """Over a floor that does nothing, and so has one op."""
    for op in results.where(subject=subject).values("op"):
        row, over = [subject, "any" if subject == FLOOR else op], []
        for batch in results.values("batch"):
            key, form = ("p50_us", "{:.0f}") if batch == 1 else (
                "per_second", "{:,.0f}")
            here = results.where(batch=batch)
            row.append(cell(here.figure(key, subject=subject, op=op), form))
            over.append("" if subject == FLOOR else cell(here.ratio(
                {"subject": subject, "op": op}, {"subject": FLOOR}, key),
                "{:.2f}"))
        yield row + over


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


def engine_aims(results):
    aims = Aims()
    for subject in ENGINES:
        rate = capacity(results, subject)
        trip = results.ratio({"subject": subject}, {"subject": FLOOR}, "p50_us",
                             batch=1, op="arm")
        aims.at_least(f"{subject}: capacity at batch {BATCH}, of the floor's",
                      CAPACITY_LEAST, rate.median, here=cell(rate, "{:.2f}"))
        aims.at_most(f"{subject}: round trip at batch 1, of the floor's",
                     TRIP_MOST, trip.median, "{:.2f}", cell(trip, "{:.2f}"))
    return aims.markdown()


def engines(results):
    text = ""
    for where in results.values("where"):
        text += f"## {where}\n\n"
        for timers in results.where(where=where).values("timers"):
            here = results.where(where=where, timers=timers)
            batches = here.values("batch")
            text += markdown(
                [f"{count(timers)} timers", "op"] +
                ["batch 1: us" if batch == 1 else f"{batch}: a second"
                 for batch in batches] +
                [f"of the floor's at {batch}" for batch in batches],
                [row for subject in (FLOOR, *ENGINES)
                 for row in engine_rows(here, subject)])
            text += "\n" + engine_aims(here) + "\n"
    return text


# ------------------------------------------------------------------------
# waits

SHARES = {"p50": "half of them within", "p99": "99 %", "p9999": "99.99 %",
          "worst": "all"}


def waits(results):
    here = results.where(bench="waits").having("beside")
    row = here.rows[0]
    return ("One timer armed again and again, alone and while a SCAN of %s others "
            "brings in their pages, each from a disk of 5 ms\n\n"
            % count(row["timers"]) +
            markdown(["ARM beside", "s", "ARMs"] + [f"{share}: us"
                                                   for share in SHARES.values()],
                     [[beside, cell(own.figure("seconds"), "{:.1f}"),
                       cell(own.figure("arms"))] +
                      [cell(own.figure(key)) for key in SHARES]
                      for beside in here.values("beside")
                      for own in [here.where(beside=beside)]]))


def everything(bench, host, seconds, results):
    made = {"speed": speed, "pressure": pressure, "engines": engines,
            "waits": waits}[bench](results)
    return begin(host, seconds, results) + made
