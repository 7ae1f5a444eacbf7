# SPDX-License-Identifier: LGPL-2.1-or-later
"""How late expirations come, beside a timerfd's and a relay's."""

from report import plots
from report.figures import Figure, Results
from report.tables import Aims, count, number, text
from servers import Driver, Server, say

QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1}
OPS = "late", "late-busy"
# What takes turns, by the field of its samples.
TIMERS = {"timerfd_us": "timerfd", "relay_us": "relay", "late_us": "expiryd"}
MOST = 1.5              # of a timerfd's p99, beside the most timers


class Lateness:
    """Rows of samples that were taken in turns. All samples of all rounds make
    a percentile; each round's own shows its precision."""

    def __init__(self, results):
        self.results = results

    def pooled(self, field):
        return Figure(sample for samples in self.results.all(field)
                      for sample in samples)

    def quantiles(self, field):
        pooled = self.pooled(field)
        return [pooled.at(share) for share in QUANTILES.values()]

    def ratio(self, other="timerfd_us", share=0.99):
        """To the other: of all samples, and a Figure of each round's."""
        def of(here):
            return here.pooled("late_us").at(share) / here.pooled(other).at(share)
        return of(self), Figure(of(Lateness(Results([row])))
                                for row in self.results.rows)


def options(parser):
    parser.add_argument("--quick", action="store_true",
                        help="one round, up to 10^6 timers")


def measure(options, folder):
    rows = []
    for timers in (0, 10**6) if options.quick else (0, 10**6, 10**7):
        say(f"lateness beside {number(timers)} timers")
        driver = Driver("lateness", timers, Server("expiryd", folder))
        for round in range(1 if options.quick else 12):
            rows += [driver.measure(op, requests=400, timers=timers,
                                    round=round) for op in OPS]
        driver.close()
    return {"lateness": rows}


def show_table(results):
    rows, ratios = [], []
    for timers in sorted(results.values("timers")):
        for op in OPS:
            here = Lateness(results.where(timers=timers, op=op))
            if not here.results:
                continue
            busy = op.removeprefix("late")
            rows += [[name + busy, count(timers),
                      *map(number, here.quantiles(field))]
                     for field, name in TIMERS.items()]
            for field in "timerfd_us", "relay_us":
                ratio, rounds = here.ratio(field)
                ratios.append([f"of the {TIMERS[field]}'s{busy}", count(timers),
                               f"{ratio:.2f}", rounds.text("{:.2f}".format)])
    print("Lateness, us, beside other timers; busy: while another client arms"
          " and cancels\nat full speed; one timer of each in turns; relay: a"
          " process with a timerfd\nthat notifies by a socket\n")
    print(text(["", "others", *QUANTILES], rows))
    print(text(["p99", "others", "of all", "of each round"], ratios))


def aim(aims, results):
    late = Lateness(results.where(op="late", timers=10**7))
    aims.at_most("lateness p99 beside 10^7 timers, of a bare timerfd's", MOST,
                 late.ratio()[0] if late.results else None, "{:.2f}")


def show(results):
    results = Results(results["lateness"])
    show_table(results)
    aims = Aims()
    aim(aims, results)
    print(aims.text())


def pictures(results):
    results = Results(results["lateness"]).having("late_us")
    most = max(results.values("timers"))
    picture = plots.Plot(
        f"Lateness beside {number(most)} timers",
        "busy: while another client arms and cancels at full speed", "",
        "microseconds", scales=("linear", "log"),
        ticks=list(enumerate(QUANTILES)))
    for i, (field, name) in enumerate(TIMERS.items()):
        for op, how in zip(OPS, ("idle", "busy")):
            late = Lateness(results.where(op=op, timers=most))
            picture.line(list(enumerate(late.quantiles(field))),
                         f"{name}, {how}", plots.COLOURS[i],
                         dash=plots.DASH if how == "busy" else None)
    return {"daemon-lateness.svg": picture}
