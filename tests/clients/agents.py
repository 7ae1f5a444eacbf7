# SPDX-License-Identifier: LGPL-2.1-or-later
"""Agents: a program a client, driven by lines of text. clients/README.md has the
commands."""

import glob
import os
import select
import subprocess
import sys

from vectors import ROOT, values

FOLDER = os.path.join(ROOT, "build", "clients")
PATIENCE = int(os.environ.get("EXPIRY_PATIENCE", "20"))   # seconds that only a hang needs


class Mute(Exception):
    """The agent ended or gave no answer in time."""


def found():
    """Returns the names of the agents that are built, or of those that are wanted."""
    names = [os.path.basename(path)[len("agent-"):]
             for path in sorted(glob.glob(os.path.join(FOLDER, "agent-*")))
             if os.access(path, os.X_OK)]
    wanted = os.environ.get("EXPIRY_AGENTS", "").split()
    return [name for name in names if not wanted or name in wanted]


class Answer:
    """A line of an agent: its first word, its values, and lines that preceded it."""

    def __init__(self, line, before=()):
        self.line = line
        words = line.split(" ")
        self.word = words[0]
        self.error = words[1] if self.word == "error" and len(words) > 1 else None
        self.values = values(words)
        self.before = list(before)

    def __getitem__(self, key):
        return self.values[key]

    def number(self, key):
        return int(self.values[key])

    def __repr__(self):
        return self.line


class Agent:
    """A running agent. A program that writes to standard error shows it in the test's
    output."""

    def __init__(self, name):
        self.name = name
        self.process = subprocess.Popen(
            [os.path.join(FOLDER, "agent-" + name)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        self.data = b""
        about = self.command("agent")
        assert about.word == "ok", about
        self.can = set(about["can"].split(","))
        self.files = self.open_files()

    def send(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def line(self, patience=PATIENCE):
        """Returns its next line."""
        while b"\n" not in self.data:
            ready, _, _ = select.select([self.process.stdout], [], [], patience)
            more = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not more:
                raise Mute("%s: %s" % (self.name, "no answer" if not ready else
                                       "ended with %s" % self.process.wait()))
            self.data += more
        line, _, self.data = self.data.partition(b"\n")
        return line.decode()

    def answer(self, patience=PATIENCE):
        """Returns its next answer, with the lines that precede it."""
        before = []
        while True:
            answer = Answer(self.line(patience), before)
            if answer.word in ("ok", "error"):
                return answer
            before.append(answer)

    def command(self, line, patience=PATIENCE):
        self.send(line)
        return self.answer(patience)

    def ok(self, line, patience=PATIENCE):
        """Gives a command that must succeed."""
        answer = self.command(line, patience)
        assert answer.word == "ok", "%s: %s: %s" % (self.name, line, answer)
        return answer

    def refused(self, line, *errors):
        """Gives a command that must fail with one of these errors."""
        answer = self.command(line)
        assert answer.error in errors, "%s: %s: %s" % (self.name, line, answer)
        return answer

    def open_files(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def close(self):
        """Closes its connection: nothing of it may be left."""
        self.ok("close")
        left = self.ok("left")
        assert left["tasks"] == "0", "%s: %s" % (self.name, left)
        files = self.open_files()
        assert files == self.files, "%s: %d files, before %d" % (
            self.name, files, self.files)

    def end(self):
        """Ends it: its exit status."""
        self.process.stdin.close()
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.stdout.close()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stdin.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.kill()
            return
        status = self.end()
        assert status == 0, "%s: exit status %s" % (self.name, status)


class Table:
    """Reports in TAP what each agent did in each row, and the table at the end. With
    EXPIRY_TEST_TABLES that folder gets a file with it, too."""

    def __init__(self, agents):
        self.agents = agents
        self.rows = {}
        self.reasons = []
        self.number = self.failed = 0
        print("TAP version 13")

    def report(self, row, agent, outcome, why=""):
        """@outcome: "ok", "FAILED" or "skipped"."""
        self.number += 1
        self.failed += outcome == "FAILED"
        cell = outcome
        if outcome == "skipped":
            if why not in self.reasons:
                self.reasons.append(why)
            cell = "skipped %d" % (self.reasons.index(why) + 1)
        self.rows.setdefault(row, {})[agent] = cell
        print("%sok %d - %s: %s%s" % ("not " if outcome == "FAILED" else "", self.number,
                                      agent, row, " # SKIP " + why
                                      if outcome == "skipped" else ""))
        if outcome == "FAILED":
            print("\n".join("#   " + line for line in why.splitlines()))
        sys.stdout.flush()

    def lines(self):
        width = max([len(row) for row in self.rows] + [1])
        for row, cells in [("", {agent: agent for agent in self.agents}), *self.rows.items()]:
            yield "%-*s %s" % (width, row, " ".join(
                "%-*s" % (max(len(agent), 9), cells.get(agent, "-")) for agent in self.agents))
        for number, reason in enumerate(self.reasons, 1):
            yield "skipped %d: %s" % (number, reason)

    def end(self):
        """Prints the table; returns the exit status."""
        lines = [line.rstrip() for line in self.lines()]
        print("\n".join("# " + line for line in lines))
        if "EXPIRY_TEST_TABLES" in os.environ:
            name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
            with open(os.path.join(os.environ["EXPIRY_TEST_TABLES"], name + ".txt"), "w",
                      encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        print("1..%d%s" % (self.number, "" if self.number else " # SKIP no agent is built"))
        if not self.number:
            return 4
        return 1 if self.failed else 0
