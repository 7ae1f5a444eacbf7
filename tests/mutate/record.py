# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/mutants.md: what became of the mutants of a file, as long as it does not change.

All mutants take days. So a run adds the files that it has finished, and leaves the others.
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
from report.tables import markdown  # noqa: E402

VERDICTS = ["killed", "timed out", "the same", "equivalent", "not compiled", "survived"]

HEAD = """# Mutants

Each source file whose mutants were all tried ([tests/README.md](../tests/README.md),
"Mutants"). `source` is the beginning of the file's digest: a file that has changed since is
tried again, and so is one that is not here. `make check-mutants-night` adds to the table.

"""


class Record:
    """The rows of the table: by path a digest of the file and the number of each verdict."""

    def __init__(self, path):
        self.path = path
        self.rows = {}
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as file:
            for row in re.findall(r"^\| (\w+/.*) \|$", file.read(), re.M):
                name, digest, _, *numbers = row.split(" | ")
                self.rows[name] = digest, dict(zip(VERDICTS, map(int, numbers)))

    def get(self, name, digest):
        """Returns the verdicts of a file of which none survived, if it is the same still."""
        known, verdicts = self.rows.get(name, (None, None))
        return verdicts if known == digest and not verdicts["survived"] else None

    def put(self, name, digest, verdicts):
        self.rows[name] = digest, dict(verdicts)
        self.write()

    def write(self):
        """Writes the table, without files that are gone."""
        rows = [[name, digest, str(sum(verdicts.values()))] +
                [str(verdicts[what]) for what in VERDICTS]
                for name, (digest, verdicts) in sorted(self.rows.items())
                if os.path.exists(name)]
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(HEAD + markdown(["file", "source", "mutants", *VERDICTS], rows))
