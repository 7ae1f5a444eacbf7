# SPDX-License-Identifier: LGPL-2.1-or-later
"""Figures of several rounds, chosen by what the rows of a run say."""

import json
import statistics


def plainly(value):
    """One digit after the point where it matters."""
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


DASH = "\u2013"


class Figure:
    """One figure of several rounds."""

    def __init__(self, rounds):
        self.rounds = sorted(rounds)
        self.median = statistics.median(self.rounds)
        self.min, self.max = self.rounds[0], self.rounds[-1]

    def at(self, share):
        """The value that @share of the rounds do not exceed."""
        return self.rounds[int((len(self.rounds) - 1) * share)]

    def spread(self, form, outside=0, dash=" to "):
        """From the least to the most, without the share @outside at either end."""
        left_out = int((len(self.rounds) - 1) * outside)
        return dash.join(map(form, (self.rounds[left_out],
                                    self.rounds[-1 - left_out])))

    def text(self, form=plainly, outside=0):
        """The median, and the spread where there is any."""
        if form(self.min) == form(self.max):
            return form(self.median)
        return f"{form(self.median)} ({self.spread(form, outside, DASH)})"

    def __str__(self):
        return self.text()


class Results:
    """The rows of a run, each a dict."""

    def __init__(self, rows):
        self.rows = list(rows)

    @classmethod
    def parse(cls, text):
        return cls(map(json.loads, text.splitlines()))

    def __bool__(self):
        return bool(self.rows)

    def where(self, **wanted):
        return Results(row for row in self.rows
                       if all(row.get(key) == value
                              for key, value in wanted.items()))

    def having(self, *keys):
        return Results(row for row in self.rows
                       if all(key in row for key in keys))

    def values(self, key):
        """Each once, in the order of their first rows."""
        return list(dict.fromkeys(row[key] for row in self.rows if key in row))

    def all(self, key, **wanted):
        return [row[key] for row in self.where(**wanted).rows if key in row]

    def figure(self, key="ns", **wanted):
        """None if no row has it."""
        found = self.all(key, **wanted)
        return Figure(found) if found else None

    def median(self, key="ns", **wanted):
        figure = self.figure(key, **wanted)
        return figure.median if figure else None

    def ratio(self, above, below, key="ns", **wanted):
        """Of two that took turns, round by round; @above and @below distinguish
        them. None if they never met."""
        pairs = []
        for number in self.values("round"):
            here = self.where(round=number, **wanted)
            one, other = here.median(key, **above), here.median(key, **below)
            if one is not None and other:
                pairs.append(one / other)
        return Figure(pairs) if pairs else None
