# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/targets.md: how each target last ended on a new Debian, and of which commit.

All targets take hours. So a run renews the cells of what it ran, and leaves the others.
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../bench"))
from report.tables import markdown  # noqa: E402

HEAD = """# Targets on a new machine

`make check-targets` runs each target that `make help` or the README names, as
`sh packaging/bootstrap make TARGET`, in a pristine root of Debian. A cell here has how the
target last ended, and the commit. A dash: it has not run yet. `tests/targets/check --record`
renews the cells of what it runs.

"""


def git(checkout, *words):
    return subprocess.run(["git", *words], cwd=checkout, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def commit_of(checkout):
    """Returns the commit of a checkout, with a + where files but the record differ from it."""
    differ = git(checkout, "status", "--porcelain", "--", ":!docs/targets.md")
    return git(checkout, "rev-parse", "--short=7", "HEAD") + ("+" if differ else "")


def read(path):
    """Returns the cells of a record by target and release."""
    cells, releases = {}, []
    if not os.path.exists(path):
        return cells
    with open(path, encoding="utf-8") as file:
        rows = re.findall(r"^\| (.*) \|$", file.read(), re.M)
    for row in rows:
        name, *columns = row.split(" | ")
        if name == "target":
            releases = columns
            continue
        for release, cell in zip(releases, columns):
            if cell != "-":
                cells[name, release] = cell
    return cells


def write(path, cells, releases, targets, left_out):
    """Writes a record: a row for each of @targets, in their order."""
    rows = [[target] + [cells.get((target, release), "-") for release in releases]
            for target in targets]
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD + markdown(["target"] + releases, rows) + "\n")
        for item in left_out.items():
            file.write("- `%s` is left out: it %s.\n" % item)


def renew(path, key, cell, *table):
    """Renews the cell of a target and release. @table: write()'s last parameters."""
    write(path, {**read(path), key: cell}, *table)
