# SPDX-License-Identifier: LGPL-2.1-or-later
"""Line plots by matplotlib; where it is not installed there are none."""

import os
import sys

try:
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
except ImportError:
    pyplot = None

COLOURS = ["#000000", "#c03030", "#2060c0", "#208040", "#a06000", "#7040a0",
           "#808080", "#00a0a0"]
DASH = (0, (5, 4))
DOTS = (0, (2, 3))


class Plot:
    """Lines over one scale on the left and perhaps one on the right. A scale is
    "linear" or "log"; @ticks are (value, label) of the lower one."""

    def __init__(self, title, note, x, left, right=None, scales=("log", "log"),
                 ticks=None):
        self.title, self.note = title, note
        self.labels, self.scales, self.ticks = (x, left, right), scales, ticks
        self.lines = []

    def line(self, points, name, colour=None, right=False, dash=None, width=1.8):
        """Lines of the right scale are dashed unless @dash says otherwise."""
        colour = colour or COLOURS[len(self.lines) % len(COLOURS)]
        dash = dash or (DASH if right else "solid")
        self.lines.append((points, name, colour, right, dash, width))

    def save(self, path):
        figure, left = pyplot.subplots(figsize=(7.5, 4.5))
        right = left.twinx() if self.labels[2] else None
        for points, name, colour, is_right, dash, width in self.lines:
            (right if is_right else left).plot(
                *zip(*points), label=name, color=colour, linestyle=dash,
                linewidth=width)
        left.set_xscale(self.scales[0])
        left.set_xlabel(self.labels[0])
        if self.ticks:
            left.set_xticks(*map(list, zip(*self.ticks)))
            left.minorticks_off()
        for axes, scale, label in zip((left, right), self.scales[1:],
                                      self.labels[1:]):
            axes.set_yscale(scale)
            axes.set_ylabel(label)
            if scale == "linear":
                axes.set_ylim(bottom=0)
        left.grid(color="#e4e4e4")
        figure.suptitle(self.title, weight="bold")
        left.set_title(self.note, fontsize="small", color="#555555")
        figure.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncol=2,
                      frameon=False)
        figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
        pyplot.close(figure)


def save(plots, *folders):
    """Write {name: Plot} into each folder that is not None."""
    if not pyplot:
        print("no plots: no matplotlib (package python3-matplotlib)",
              file=sys.stderr)
        return
    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "expiry",
                            "font.size": 9})
    for folder in filter(None, folders):
        for name, plot in plots.items():
            path = os.path.join(folder, name)
            plot.save(path)
            print(f"plot: {os.path.relpath(path)}", file=sys.stderr)
