# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tables, as text and for a document, and the figures aimed at."""


def text(head, rows):
    """Columns: the first to the left, the others to the right."""
    rows = [head] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.rjust(width) if i else cell.ljust(width)
                  for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
        for row in rows) + "\n"


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |",
             "|---" + "|--:" * (len(head) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def number(value):
    return f"{value:,.0f}"


def count(value):
    """10, 1,000, 10^7."""
    digits = str(value)
    if value >= 10000 and set(digits[1:]) == {"0"}:
        power = f"10^{len(digits) - 1}"
        return power if digits[0] == "1" else f"{digits[0]}\u00b7{power}"
    return f"{value:,}"


class Aims:
    """Figures aimed at, and whether they are reached."""

    HEAD = ["aimed at", "aim", "here", ""]

    def __init__(self):
        self.rows = []

    def add(self, what, aim, here, reached):
        """@reached is None where it was not measured."""
        self.rows.append([what, aim, here, "not measured" if reached is None
                          else "ok" if reached else "MISSED"])

    def at_most(self, what, aim, value, form="{:.4g}", here=None):
        """@here instead of the value in @form."""
        known = value is not None
        self.add(what, "\u2264 " + form.format(aim),
                 here or (form.format(value) if known else ""),
                 value <= aim if known else None)

    def at_least(self, what, aim, value, form="{:.2f}", here=None):
        known = value is not None
        self.add(what, "\u2265 " + form.format(aim),
                 here or (form.format(value) if known else ""),
                 value >= aim if known else None)

    def text(self):
        return text(self.HEAD, self.rows)

    def markdown(self):
        return markdown(self.HEAD, self.rows)
