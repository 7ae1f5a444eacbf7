# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tables, plots and the figures aimed at, of a run's results."""

import os
import pathlib
import platform
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import plot  # noqa: E402

COLOURS = ["#000000", "#c03030", "#2060c0", "#208040", "#a06000", "#7040a0",
           "#808080", "#00a0a0"]
PLAIN = "arm", "refresh", "cancel"


def machine():
    model = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"engine": os.environ.get("EXPIRY_ENGINE", "embedded"),
            "kernel": platform.release(), "cpu": model,
            "processors": os.cpu_count()}


def number(value):
    return "{:,.0f}".format(value)


def power(value):
    """10^6 where it is one."""
    text = str(value)
    return "10^%d" % (len(text) - 1) if text.strip("0") == "1" and value > 1 \
        else text


def part(values, share):
    """The value that @share of them do not exceed."""
    values = sorted(values)
    return values[int((len(values) - 1) * share)]


QUANTILES = (0.5, 0.99, 0.999, 1)


class Lateness:
    """Expirations and others, taken in turns: rows with late_us and
    timerfd_us (and relay_us). All samples of all rounds make a percentile; how much it is
    worth is told by what each round makes of it alone."""

    def __init__(self, rows):
        self.rows = rows

    def quantiles(self, who):
        values = [value for row in self.rows for value in row[who]]
        return [part(values, share) for share in QUANTILES]

    def ratio(self, share, other="timerfd_us"):
        """To the timerfd: of all; then of each round, in order."""
        def of(rows):
            late, others = ([value for row in rows for value in row[who]]
                            for who in ("late_us", other))
            return part(late, share) / part(others, share)
        return of(self.rows), sorted(of([row]) for row in self.rows)


class Figures:
    """Medians over rounds of what fits a description."""

    def __init__(self, rows):
        self.rows = rows

    def all(self, field, **what):
        return [row[field] for row in self.rows
                if all(row.get(key) == value for key, value in what.items())]

    def lateness(self, **what):
        """None where nothing fits."""
        rows = [row for row in self.rows
                if all(row.get(key) == value for key, value in what.items())]
        return Lateness(rows) if rows else None

    def median(self, field, **what):
        values = self.all(field, **what)
        return statistics.median(values) if values else None

    def mixed(self, **what):
        """Requests a second where arming, refreshing and cancelling take
        turns."""
        rates = [self.median("per_second", op=op, **what) for op in PLAIN]
        return statistics.harmonic_mean(rates) if all(rates) else None


def table(head, rows):
    rows = [head] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        print("  ".join(cell.ljust(widths[i]) if i < 1
                        else cell.rjust(widths[i])
                        for i, cell in enumerate(row)).rstrip())
    print()


# ------------------------------------------------------------------------
# Tables


def show_capacity(figures):
    seen = []
    for row in figures.rows:
        key = tuple(row[name] for name in (
            "of", "subject", "batch", "connections", "op"))
        if key not in seen:
            seen.append(key)
    rows = []
    for of, subject, batch, connections, op in seen:
        what = {"of": of, "subject": subject, "batch": batch,
                "connections": connections, "op": op}
        rates = figures.all("per_second", **what)
        rows.append([subject, power(figures.median("timers", **what)), op,
                     batch, connections,
                     number(statistics.median(rates)),
                     "%s to %s" % (number(min(rates)), number(max(rates))),
                     number(figures.median("server_ns", **what)),
                     number(figures.median("client_ns", **what)),
                     "%.1f" % figures.median("p50_us", **what),
                     "%.1f" % figures.median("p99_us", **what)])
    print("Capacity: requests a second, processor time of server and client a"
          " request,\nand of a batch from being sent to being answered\n")
    table(["subject", "timers", "op", "batch", "conns", "a second",
           "slowest to fastest", "server ns", "client ns", "p50 us",
           "p99 us"], rows)


def show_late(figures):
    rows, ratios = [], []
    for timers in sorted({row["timers"] for row in figures.rows}):
        for op in "late", "late-busy":
            late = figures.lateness(timers=timers, op=op)
            if not late:
                continue
            for who, name in (("timerfd_us", "timerfd"), ("relay_us", "relay"),
                              ("late_us", "expiryd")):
                rows.append([name + op[4:], power(timers)] +
                            ["%.0f" % value for value in late.quantiles(who)])
            for who in "timerfd", "relay":
                ratio, rounds = late.ratio(0.99, who + "_us")
                ratios.append(["of the %s's%s" % (who, op[4:]), power(timers),
                               "%.2f" % ratio, "%.2f (%.2f to %.2f)" % (
                                   statistics.median(rounds), rounds[0],
                                   rounds[-1])])
    print("Lateness, us, beside other timers; busy: while another client arms"
          " and cancels\nat full speed; one timer of each in turns; relay: a"
          " process with a timerfd\nthat tells by a socket\n")
    table(["", "others", "p50", "p99", "p99.9", "max"], rows)
    table(["p99", "others", "of all", "of each round"], ratios)


def show_punctual(figures):
    show_late(figures)
    rows = []
    for count in sorted(set(figures.all("requests", op="drain"))):
        what = {"op": "drain", "requests": count}
        last = figures.all("max_us", **what)
        rows.append([power(count), "%.1f" % (
            figures.median("p50_us", **what) / 1e3),
            "%.0f" % (statistics.median(last) / 1e3),
            "%.0f to %.0f" % (min(last) / 1e3, max(last) / 1e3),
            number(figures.median("per_second", **what))])
    print("Drain: timers due within the same millisecond, in order, to one"
          " client\n")
    table(["timers", "first ms", "last ms", "fastest to slowest",
           "a second"], rows)


def show_rest(results):
    print("Resident bytes of the server a live timer\n")
    table(["subject", "timers", "bytes"],
          [[name, power(int(timers)), "%.1f" % size]
           for name, sizes in results["memory"].items()
           for timers, size in sizes.items()])
    for row in results["notify"]:
        print("Redis, SET EX: of %d keys due at once beside %s others %d were"
              " told of in 5 s, half of those within %.0f ms"
              % (row["requests"], number(row["timers"]),
                 row["done"] if row["per_second"] and row["p50_us"] or
                 row["done"] < row["requests"] else 0,
                 row["p50_us"] / 1e3))
    core = results.get("core")
    if core:
        rate = 1e9 / statistics.mean(core[op] for op in PLAIN)
        floor = Figures(results["capacity"]).median(
            "per_second", subject="echo", of=10**4, op="arm", batch=512,
            connections=1)
        print("The core alone with 10^4 timers, no daemon and no socket: arm"
              " %.0f ns, refresh %.0f,\ncancel %.0f; %s a second, %.2f of the"
              " floor" % (core["arm"], core["refresh"], core["cancel"],
                         number(rate), rate / floor))
    rest = results.get("rest")
    if rest:
        print("At rest with 10^7 timers armed: %.6f s of processor time in"
              " %d s, %d times awake"
              % (rest["cpu_s"], rest["seconds"], rest["switches"]))
    for why in results["skipped"]:
        print("skipped: " + why)
    print()


# ------------------------------------------------------------------------
# What is aimed at


def aims(results):
    capacity = Figures(results["capacity"])
    punctual = Figures(results["lateness"])

    def ratio(a, b):
        return a / b if a and b else None

    plain = {"batch": 512, "connections": 1}
    trip = {"of": 10**4, "batch": 1, "connections": 1, "op": "arm"}
    last = punctual.median("max_us", op="drain", requests=10**7)
    late = punctual.lateness(op="late", timers=10**7)
    late = late.ratio(0.99)[0] if late else None
    return [
        ("capacity at batch 512, 10^4 timers, of the floor",
         ratio(capacity.mixed(subject="expiryd", of=10**4, **plain),
               capacity.median("per_second", subject="echo", of=10**4,
                               op="arm", **plain)), 0.60, ">="),
        ("capacity at batch 512, 10^6 timers, of Redis' sorted set",
         ratio(capacity.mixed(subject="expiryd", of=10**6, **plain),
               capacity.mixed(subject="redis zset", of=10**6, **plain)),
         10, ">="),
        ("round trip at batch 1, one connection, of the floor's",
         ratio(capacity.median("p50_us", subject="expiryd", **trip),
               capacity.median("p50_us", subject="echo", **trip)),
         1.25, "<="),
        ("seconds until the last of 10^7 due at once",
         last / 1e6 if last else None, 5, "<="),
        ("lateness p99 beside 10^7 timers, of a bare timerfd's", late, 1.5,
         "<="),
    ]


def show_aims(results, only=""):
    """Those whose text has @only in it."""
    print("Figures to reach")
    for what, value, aim, sign in aims(results):
        if only not in what:
            continue
        if value is None:
            print("  %-60s not measured" % what)
            continue
        reached = value >= aim if sign == ">=" else value <= aim
        print("  %-60s %8.2f  %s %-5g %s" % (what, value, sign, aim,
                                             "ok" if reached else "MISSED"))


def show_machine(results):
    print("engine {engine}, Linux {kernel}, {cpu}, {processors} processors"
          .format(**results["machine"]))
    if "seconds" in results:
        print("medians over rounds in which all took turns; %.0f s in all"
              % results["seconds"])
    print()


def show_lateness(results):
    show_machine(results)
    show_late(Figures(results["lateness"]))
    show_aims(results, "lateness")


def show(results):
    show_machine(results)
    show_capacity(Figures(results["capacity"]))
    show_punctual(Figures(results["lateness"]))
    show_rest(results)
    show_aims(results)


# ------------------------------------------------------------------------
# Plots


def capacity_plot(results):
    figures = Figures(results["capacity"])
    curves = []
    for subject, of, name in (
            ("echo", 10**4, "the floor: echo"),
            ("expiryd", 10**4, "expiryd, 10^4 timers"),
            ("expiryd", 10**6, "expiryd, 10^6 timers"),
            ("expiryd", 10**7, "expiryd, 10^7 timers"),
            ("redis zset", 10**6, "Redis, sorted set of 10^6"),
            ("beanstalkd", 10**6, "beanstalkd, 10^6 jobs"),
            ("libev", 10**6, "libev in process, 10^6 timers"),
            ("libevent", 10**6, "libevent in process, 10^6 timers")):
        what = {"subject": subject, "of": of, "connections": 1}
        points = [(batch, figures.mixed(batch=batch, **what) or
                   figures.median("per_second", batch=batch, op="arm", **what))
                  for batch in (1, 16, 512)]
        points = [point for point in points if point[1]]
        if len(points) == 1:
            points.append((512, points[0][1]))
        if points:
            curves.append((name, points))
    rates = [rate for _, points in curves for _, rate in points]
    x = plot.Scale(1, 512, [(b, str(b)) for b in (1, 16, 512)], True)
    drawing = plot.Plot(
        "Requests a second over one connection",
        "arm, refresh and cancel by turns; beanstalkd and the floor: arm",
        x, plot.powers(min(rates), max(rates)))
    drawing.axes("requests in a batch", "requests a second")
    for i, (name, points) in enumerate(curves):
        for power_of_ten in "4", "6", "7":
            name = name.replace("^" + power_of_ten,
                                power_of_ten.translate(plot.SUPERSCRIPT))
        drawing.line(points, name, COLOURS[i % len(COLOURS)])
    return drawing.svg()


def lateness_plot(results):
    figures = Figures(results["lateness"])
    most = max(row["timers"] for row in figures.rows)
    curves = []
    for who, name in (("timerfd_us", "a timerfd"), ("late_us", "expiryd"),
                      ("relay_us", "a relay")):
        for busy in "", "-busy":
            late = figures.lateness(op="late" + busy, timers=most)
            curves.append((name + (", busy" if busy else ", idle"),
                           list(enumerate(late.quantiles(who))), busy))
    values = [value for _, points, _ in curves for _, value in points]
    x = plot.Scale(0, 3, list(enumerate(("p50", "p99", "p99.9", "max"))))
    drawing = plot.Plot(
        "Lateness beside %s timers" % number(most),
        "busy: while another client arms and cancels at full speed", x,
        plot.decades(min(values), max(values)))
    drawing.axes("", "microseconds")
    for i, (name, points, busy) in enumerate(curves):
        drawing.line(points, name, COLOURS[i // 2],
                     dash="5 4" if busy else None)
    return drawing.svg()


def plot_to(folders, name, drawing):
    for folder in folders:
        path = pathlib.Path(folder) / ("daemon-%s.svg" % name)
        path.write_text(drawing, encoding="utf-8")
        print("plot: %s" % os.path.relpath(path))


def plots(results, folders):
    plot_to(folders, "capacity", capacity_plot(results))
    plot_to(folders, "lateness", lateness_plot(results))
