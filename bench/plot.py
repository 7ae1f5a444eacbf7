# SPDX-License-Identifier: LGPL-2.1-or-later
"""A line plot with a scale on the left and perhaps one on the right, as SVG."""

import math
from xml.sax.saxutils import escape

WIDTH = 720
LEFT, RIGHT, TOP, BOTTOM = 76, 64, 44, 380
ROW = 17                # of the legend
SUPERSCRIPT = str.maketrans("0123456789", "\u2070\u00b9\u00b2\u00b3\u2074"
                            "\u2075\u2076\u2077\u2078\u2079")


class Scale:
    """From values to pixels; ticks are (value, label)."""

    def __init__(self, low, high, ticks, log=False):
        self.log = log
        self.low, self.high = self._at(low), self._at(high)
        self.ticks = ticks
        self.pixels = (0, 1)

    def _at(self, value):
        return math.log10(value) if self.log else value

    def __call__(self, value):
        part = (self._at(value) - self.low) / (self.high - self.low)
        return self.pixels[0] + part * (self.pixels[1] - self.pixels[0])

    def shows(self, value):
        return self.low <= self._at(value) <= self.high


def steps(low, high, step):
    """A linear scale with a tick each @step."""
    count = round((high - low) / step)
    values = [low + i * step for i in range(count + 1)]
    return Scale(low, high, [(v, label(v)) for v in values])


def upto(top):
    """A linear scale from 0 to @top or a little more, with a handful of ticks."""
    step = next(s * 10 ** e for e in range(-3, 12) for s in (1, 2, 5)
                if top <= 9 * s * 10 ** e)
    return steps(0, math.ceil(top / step - 1e-9) * step, step)


def decades(low, high):
    """A logarithmic scale from the decade of @low to that of @high."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    values = [10.0 ** i for i in range(first, last + 1)]
    return Scale(values[0], values[-1], [(v, label(v)) for v in values], True)


def finely(low, high):
    """A logarithmic scale closely around @low and @high, by 1, 2 and 5."""
    values = [s * 10.0 ** e for e in range(-3, 13) for s in (1, 2, 5)]
    first = max(i for i, v in enumerate(values) if v <= low)
    last = min(i for i, v in enumerate(values) if v >= high)
    values = values[first:last + 1]
    return Scale(values[0], values[-1], [(v, label(v)) for v in values], True)


def powers(low, high):
    """As decades(), with the powers of ten written as such."""
    scale = decades(low, high)
    scale.ticks = [(v, "10" + str(round(math.log10(v))).translate(SUPERSCRIPT))
                   for v, _ in scale.ticks]
    return scale


def label(value):
    """A minus sign is a minus sign."""
    return f"{value:,.10g}".replace("-", "\u2212")


class Plot:
    """Draw what is added; svg() is the document."""

    def __init__(self, title, note, x, left, right=None):
        self.x, self.left, self.right = x, left, right
        x.pixels = (LEFT, WIDTH - RIGHT)
        left.pixels = (BOTTOM, TOP)
        if right:
            right.pixels = left.pixels
        self.parts = []
        self.legend = [], []
        self.text(WIDTH / 2, 24, title, "middle", "font-weight='bold'")
        self.note = note

    def text(self, x, y, what, anchor="middle", more=""):
        self.parts.append(f"<text x='{x:.1f}' y='{y:.1f}' "
                          f"text-anchor='{anchor}' {more}>{escape(what)}</text>")

    def segment(self, x1, y1, x2, y2, colour):
        self.parts.append(f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' "
                          f"y2='{y2:.1f}' stroke='{colour}'/>")

    def axes(self, x_label, left_label, right_label=""):
        bottom, top = self.left.pixels
        left, right = self.x.pixels
        for value, name in self.x.ticks:
            self.segment(self.x(value), bottom, self.x(value), top, "#e4e4e4")
            self.text(self.x(value), bottom + 18, name)
        for value, name in self.left.ticks:
            self.segment(left, self.left(value), right, self.left(value),
                         "#e4e4e4")
            self.text(left - 7, self.left(value) + 4, name, "end")
        for value, name in self.right.ticks if self.right else ():
            self.segment(right, self.right(value), right + 5,
                         self.right(value), "#444")
            self.text(right + 9, self.right(value) + 4, name, "start")
        self.parts.append(f"<rect x='{left}' y='{top}' width='{right - left}' "
                          f"height='{bottom - top}' fill='none' stroke='#444'/>")
        self.text((left + right) / 2, bottom + 40, x_label)
        middle = (top + bottom) / 2
        self.text(0, 0, left_label, "middle",
                  f"transform='translate(16 {middle:.0f}) rotate(-90)'")
        self.text(0, 0, right_label, "middle",
                  f"transform='translate({WIDTH - 10} {middle:.0f}) rotate(-90)'")

    def line(self, points, name, colour, right=False, width=1.8, dash=None):
        """Points of one curve by x; dashed where the right scale counts, or
        as @dash says.
        """
        scale = self.right if right else self.left
        shown = [(self.x(x), scale(y)) for x, y in points if self.x.shows(x)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in thin(shown))
        style = (f"fill='none' stroke='{colour}' stroke-width='{width}'" +
                 (f" stroke-dasharray='{dash or '5 4'}'"
                  if right or dash else ""))
        self.parts.append(f"<polyline clip-path='url(#frame)' points='{path}' "
                          f"{style}/>")
        self.legend[right].append((name, style))

    def draw_legend(self):
        """Below: what counts on the left scale, then what on the right; in
        two columns, too, where there is no right.
        """
        top = BOTTOM + 66
        if not self.right:
            half = (len(self.legend[0]) + 1) // 2
            self.legend = self.legend[0][:half], self.legend[0][half:]
        for x, names in zip((LEFT, WIDTH / 2), self.legend):
            for i, (name, style) in enumerate(names):
                at = top + ROW * i
                self.parts.append(f"<path d='M{x} {at - 4}h34' {style}/>")
                self.text(x + 42, at, name, "start")
        return top + ROW * max(map(len, self.legend))

    def svg(self):
        left, right = self.x.pixels
        bottom, top = self.left.pixels
        end = self.draw_legend()
        self.text(left, end + 4, self.note, "start", "fill='#555'")
        height = end + 16
        return (
            "<?xml version='1.0' encoding='UTF-8'?>\n"
            "<!-- SPDX-License-Identifier: LGPL-2.1-or-later -->\n"
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' "
            f"height='{height}' viewBox='0 0 {WIDTH} {height}' "
            "font-family='sans-serif' font-size='12'>\n"
            f"<clipPath id='frame'><rect x='{left}' y='{top}' "
            f"width='{right - left}' height='{bottom - top}'/></clipPath>\n"
            "<rect width='100%' height='100%' fill='white'/>\n" +
            "\n".join(self.parts) + "\n</svg>\n")


def thin(points):
    """Leave out what is within a pixel of the last point drawn."""
    kept = []
    for i, (x, y) in enumerate(points):
        last = i == len(points) - 1
        if not kept or last or math.hypot(x - kept[-1][0], y - kept[-1][1]) > 1:
            kept.append((x, y))
    return kept
