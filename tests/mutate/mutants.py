# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mutants: the changes, samples of them, and equivalent mutants."""

import fnmatch
import hashlib
import re

EQUIVALENT = "tests/mutate/equivalent"

# Numbers from here on are doubled: one more than 5000 ms or a million nanoseconds is
# not a realistic mistake.
LARGE = 100

# Functions that are not mutated: hints for speed, and the tests' own.
SPARED = re.compile(r"prefetch|ahead|_top\b|guess|validate|is_sorted|"
                    r"is_ordered|count_live|count_nodes|peek_home|^name")

EXCHANGED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=",
            "!=": "==", "&&": "||", "||": "&&", "true": "false",
            "false": "true"}
TOKEN = re.compile(r"->|<<=?|>>=?|<=|>=|==|!=|&&|\|\||[<>]|"
                   r"\b(?:0x[0-9a-fA-F]+|\d+)[uUlL]*\b|\w+|\S")
NUMBER = re.compile(r"(0x[0-9a-fA-F]+|\d+)([uUlL]*)$")
STATEMENT = re.compile(r"(?:\*?\(?[a-z_][\w>.\-\[\]()& +*]*\s*"
                       r"(?:[-+|&^]?=[^=].*|\+\+|--)|(?:\+\+|--)\w.*|"
                       r"(?!return|goto|break|continue|else|case|default)"
                       r"[a-z_]\w*\(.*\));$")
DECLARATION = re.compile(r"(?:static|const|struct|enum|[us]\d+|int|bool|void|"
                         r"unsigned|char|short|long|float|double|DIR|FILE|\w+_t) ")
FUNCTION = re.compile(r"^(?!\s|#|/|\})[\w \*]*?\b(\w+)\(")


def blank(text, strings=True):
    """Returns the source with blanks for comments and strings."""
    def spaces(match):
        if match[0].startswith('"') and not strings:
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', spaces, text,
                  flags=re.S)


def another(digits):
    """Returns a number near the number of these digits."""
    if digits.startswith("0x"):
        return hex(int(digits, 0) ^ 1)
    if digits.startswith("0"):      # octal: a mode
        return f"0{int(digits, 8) + 1:o}" if digits != "0" else "1"
    value = int(digits)
    return value + 1 if value < LARGE else 2 * value


def changes(line):
    """Yields each change of one line of code: the replaced text and its replacement."""
    for match in TOKEN.finditer(line):
        token, begin, end = match[0], match.start(), match.end()
        if token in EXCHANGED:
            yield begin, end, EXCHANGED[token]
        elif NUMBER.match(token) and not line[:begin].endswith("["):
            digits, suffix = NUMBER.match(token).groups()
            value = another(digits)
            if re.search(r"[-+] $", line[:begin]) and digits == "1":
                value = 0
            yield begin, end, f"{value}{suffix}"
    match = re.match(r"(\s*(?:\} else |else )?if \()(.*)(\)(?: \{)?)$", line)
    if match and match[2].count("(") == match[2].count(")"):
        yield match.start(2), match.end(2), None
    body = line.strip()
    if STATEMENT.match(body) and not DECLARATION.match(body) and \
            body.count("(") == body.count(")"):
        yield line.index(body), len(line), ";"


class Mutant:
    """One change. @old and @new are its line before and after, without comments."""

    def __init__(self, path, function, number, line, edit):
        self.path, self.number, self.edit = path, number, edit
        self.where = f"{path}:{function}"
        self.old, self.new = (" ".join(text.split())
                              for text in (line, self.edited(line)))

    def edited(self, line):
        begin, end, text = self.edit
        if text is None:
            text = f"!({line[begin:end]})"
        return line[:begin] + text + line[end:]

    def source(self):
        """Returns the whole file with the change."""
        with open(self.path, encoding="utf-8") as source:
            lines = source.read().split("\n")
        lines[self.number - 1] = self.edited(lines[self.number - 1])
        return "\n".join(lines)

    def rank(self, seed):
        """Returns the mutant's rank in a sample. It depends only on the mutant, so a
        change elsewhere keeps the sample."""
        text = f"{seed} {self.where} {self.old} {self.new}"
        return hashlib.sha256(text.encode()).digest()

    def __str__(self):
        return f"{self.path}:{self.number}: {self.old}  =>  {self.new}"


def mutants_of(path):
    if path.startswith("core/") and path.endswith("_validate.c"):
        return      # only tests call its functions
    with open(path, encoding="utf-8") as source:
        text = source.read()
    shown = blank(text, strings=False).split("\n")
    function = ""
    macro = False
    for i, line in enumerate(blank(text).split("\n")):
        match = FUNCTION.match(line)
        if match:
            function = match[1]
        if line.startswith("}"):
            function = ""
            continue
        is_constant = re.match(r"#define\s+\w+\s+\S", line)
        skip = (line.startswith("#") and not is_constant) or macro
        macro = line.rstrip().endswith("\\")
        if skip or not line.strip() or match:
            continue
        if "static_assert" in line or "__attribute__" in line:
            continue
        # In a function's body, or a constant.
        if not is_constant and not line.startswith("\t"):
            continue
        if path.startswith("core/") and SPARED.search(function) or \
                re.search(r"\b(prefetchw?|core_broken|assert)\(", line):
            continue
        for edit in changes(line.rstrip()):
            yield Mutant(path, function, i + 1, shown[i], edit)


def sample(mutants, number, seed):
    """Returns a random sample, in the mutants' order."""
    chosen = set(sorted(mutants, key=lambda mutant: mutant.rank(seed))[:number])
    return [mutant for mutant in mutants if mutant in chosen]


class Equivalents:
    """Mutants that no test can notice: single ones, and lines by a pattern."""

    def __init__(self):
        self.mutants = set()
        self.classes = []
        with open(EQUIVALENT) as lines:
            for line in lines:
                if line.startswith("#") or not line.strip():
                    continue
                path, old, new, _ = [" ".join(part.split()) for part in
                                     line.rstrip("\n").split("\t")]
                if new == "*":
                    self.classes.append((path, re.compile(old)))
                else:
                    self.mutants.add((path, old, new))

    def have(self, mutant):
        return any((where, mutant.old, mutant.new) in self.mutants
                   for where in (mutant.path, mutant.where)) or \
            any(fnmatch.fnmatch(mutant.path, path) and line.search(mutant.old)
                for path, line in self.classes)
