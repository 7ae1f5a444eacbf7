# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the programs of bench/heap print: lines of JSON, one a round."""

import json
import statistics

HEAPS = {
    "binary": "binary",
    "binary-branch-free": "binary, branch-free",
    "4-ary": "4-ary, aligned",
    "4-ary-branch-free": "4-ary, branch-free",
    "priority_queue": "std::priority_queue",
    "subtree": "subtree pages",
    "sorted": "sorted pages",
    "control": "control",
}


class Figure:
    """One figure of several rounds."""

    def __init__(self, rounds):
        self.median = statistics.median(rounds)
        self.min, self.max = min(rounds), max(rounds)
        self.rounds = len(rounds)

    def __str__(self):
        form = "{:.1f}" if self.median < 99.95 else "{:.0f}"
        text, low, high = (form.format(value) for value in
                           (self.median, self.min, self.max))
        return f"{text} ({low}\u2013{high})" if low != high else text


class Results:
    """Lines, by what they say."""

    def __init__(self, lines):
        self.lines = lines

    @classmethod
    def parse(cls, text):
        return cls([json.loads(line) for line in text.splitlines()])

    def dump(self):
        return ("[\n" + ",\n".join(json.dumps(line) for line in self.lines) +
                "\n]\n")

    def __bool__(self):
        return bool(self.lines)

    def where(self, **wanted):
        return Results([line for line in self.lines
                        if all(line.get(key) == value
                               for key, value in wanted.items())])

    def having(self, *keys):
        return Results([line for line in self.lines
                        if all(key in line for key in keys)])

    def values(self, key):
        """Each once, in the order in which they were first said."""
        return list(dict.fromkeys(line[key] for line in self.lines
                                  if key in line))

    def figure(self, key="ns", **wanted):
        """None if nothing is known."""
        found = [line[key] for line in self.where(**wanted).lines
                 if key in line]
        return Figure(found) if found else None

    def median(self, key="ns", **wanted):
        figure = self.figure(key, **wanted)
        return figure.median if figure else None


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |",
             "|---" + "|--:" * (len(head) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def count(number):
    """10, 1,000, 10^7."""
    digits = str(number)
    if number >= 10000 and set(digits[1:]) == {"0"}:
        power = f"10^{len(digits) - 1}"
        return power if digits[0] == "1" else f"{digits[0]}\u00b7{power}"
    return f"{number:,}"
