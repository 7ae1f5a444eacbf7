# SPDX-License-Identifier: LGPL-2.1-or-later
"""The lines that each test program reaches. They are recorded once, by programs that
mark each basic block (reach.c), and kept in build/mutate/reach-FOLDER."""

import concurrent.futures
import difflib
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile

SOURCES = ["core", "daemon", "include", "lib", "tools"]
MARK = "__sanitizer_cov_trace_pc"

PLACE = re.compile(r"(/\S+?):(\d+)(?: \(discriminator \d+\))?$")
CALL = re.compile(r"\s*[0-9a-f]+:\s+call\s.*<" + MARK + r">")
INSTRUCTION = re.compile(r"\s*([0-9a-f]+):\s")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def build_id(path):
    done = subprocess.run(["readelf", "-n", path], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    match = re.search(r"Build ID: ([0-9a-f]{16})", done.stdout)
    return match and match[1]


def blocks_of(path, where):
    """Returns {offset: {(file, line)}} for each block that is marked."""
    done = subprocess.run(["objdump", "-d", "-l", "--no-show-raw-insn", path],
                          text=True, stdout=subprocess.PIPE, check=True)
    blocks = {}
    lines, place, is_next = None, None, False
    for text in done.stdout.splitlines():
        match = PLACE.match(text)
        if match:
            name = os.path.relpath(match[1], where)
            place = (name, int(match[2])) if name.split("/")[0] in SOURCES \
                else None
        elif text.endswith(">:"):
            lines, place = None, None       # another function
        elif CALL.match(text):
            is_next = True
            continue
        else:
            match = INSTRUCTION.match(text)
            if not match:
                continue
            if is_next:
                lines = blocks.setdefault(int(match[1], 16), set())
                is_next = False
        if lines is not None and place:
            lines.add(place)
    return blocks


class Reach:
    """@lines: {path: its lines when it was recorded}
    @code: {path: lines with code}
    @hit: {program: {path: lines that it reaches}}
    @times: {program: its longest silence and duration, None if it failed, so that
        it may reach any line}
    """

    def __init__(self, data):
        self.stamps = data["stamps"]
        self.lines = data["lines"]
        self.times = data["times"]
        self.code = {path: set(lines) for path, lines in data["code"].items()}
        self.hit = {program: {path: set(lines) for path, lines in hit.items()}
                    for program, hit in data["hit"].items()}
        self.moved = {}

    def line_then(self, path, number):
        """Returns the number of a line when it was recorded, None for a new line."""
        if path not in self.moved:
            matcher = difflib.SequenceMatcher(
                None, self.lines[path], read(path).split("\n"), False)
            self.moved[path] = {b + i + 1: a + i + 1
                                for a, b, size in matcher.get_matching_blocks()
                                for i in range(size)}
        return self.moved[path].get(number)

    def function_at(self, path, number):
        """Returns the lines of the function around this line, from its name to its
        closing brace. Outside a function: all lines of the file."""
        lines = self.lines[path]
        if number is not None and lines[number - 1].startswith("\t"):
            first = last = number
            while first > 1 and not lines[first - 1].startswith("{"):
                first -= 1
            while last < len(lines) and not lines[last - 1].startswith("}"):
                last += 1
            return range(first, last + 1)
        return range(1, len(lines) + 1)

    def programs(self, mutant, stamps):
        """Returns the programs that may notice a mutant, None if unknown."""
        path = mutant.path
        if path not in self.code or not self.code[path]:
            return None
        number = self.line_then(path, mutant.number)
        if number is None:
            return None
        wanted = {number} & self.code[path] or \
            set(self.function_at(path, number)) & self.code[path]
        if not wanted:
            return None
        return {program for program in stamps
                if self.stamps.get(program) != stamps[program] or
                not self.times[program] or
                wanted & self.hit[program].get(path, set())}


def record(copy, programs, run, jobs):
    """Records the contents of a Reach. Calls @run(copy, program, variables) once for each
    program that marks its blocks. @copy is built for that, and removed afterwards."""
    shared = tempfile.mkdtemp(prefix="expiry-reach-")
    os.chmod(shared, 0o1777)
    marks = f"{shared}/reach.o"
    try:
        subprocess.run(["gcc", "-O2", "-fPIC", f'-DREACH_FOLDER="{shared}"',
                        "-c", "-o", marks, "tests/mutate/reach.c"], check=True)
        copy.of_checkout(f"-w -O0 -g -fsanitize-coverage=trace-pc {marks}")
        blocks = {}
        for path in glob.glob(f"{copy.where}/build/**", recursive=True):
            if os.path.isfile(path) and not os.path.islink(path) and \
                    os.access(path, os.X_OK) and build_id(path):
                blocks[build_id(path)] = blocks_of(path, os.path.abspath(copy.where))

        def lines_of(folder):
            found = set()
            for name in os.listdir(folder):
                if name not in blocks:
                    continue
                with open(f"{folder}/{name}", "rb") as file:
                    marked = file.read()
                for offset, lines in blocks[name].items():
                    if marked[offset]:
                        found |= lines
            return found

        def one(name):
            folder = tempfile.mkdtemp(dir=shared)
            os.chmod(folder, 0o1777)
            done = run(copy, name, {"EXPIRY_REACH": folder})
            found = lines_of(folder)
            shutil.rmtree(folder)
            print(f"# {name}: {len(found)} lines, {done.seconds:.0f} s"
                  f"{', ' + done.failure if done.failure else ''}", flush=True)
            return found, None if done.failure else (done.longest, done.seconds)

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            results = dict(zip(programs, pool.map(one, programs)))
        everywhere = lines_of(shared)
    finally:
        shutil.rmtree(shared, ignore_errors=True)
        shutil.rmtree(copy.where, ignore_errors=True)

    def by_path(places):
        paths = {}
        for path, line in sorted(places):
            paths.setdefault(path, []).append(line)
        return paths

    code = by_path(set().union(*(lines for table in blocks.values()
                                 for lines in table.values())))
    return {"code": code,
            "lines": {path: read(path).split("\n") for path in code
                      if os.path.exists(path)},
            "times": {name: times for name, (_, times) in results.items()},
            "hit": {name: by_path(found | everywhere)
                    for name, (found, _) in results.items()}}


def reach_of(path, stamps, make):
    """Returns the Reach that this file has. New, changed and failed programs are run for
    it if the sources are the same. Otherwise they may reach any line."""
    data = None
    if os.path.exists(path):
        data = json.loads(read(path))
        new = [name for name in stamps if not data["times"].get(name) or
               data["stamps"].get(name) != stamps[name]]
        same = all(os.path.exists(name) and read(name).split("\n") == lines
                   for name, lines in data["lines"].items())
        if new and same:
            more = make(new)
            data["hit"].update(more["hit"])
            data["times"].update(more["times"])
            data["stamps"].update((name, stamps[name]) for name in new)
        elif not new:
            return Reach(data)
    if not data:
        data = make(list(stamps))
        data["stamps"] = stamps
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(data, file)
    os.replace(path + ".new", path)
    return Reach(data)
