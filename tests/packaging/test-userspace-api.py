#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/userspace-api/: reStructuredText without faults, which names what the device's
header defines."""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "socket"))
import tap  # noqa: E402

FOLDER = os.path.join(ROOT, "docs", "userspace-api")
HEADER = os.path.join(ROOT, "include", "uapi", "linux", "expiry.h")
# Numbers and masks, for which the manual page is the place.
OTHER = re.compile(r"EXPIRY_(MODE_\w+|LAYOUT_\w+|IOC_MAGIC|ABI|BATCH_MAX|"
                   r"LATENESS_BUCKETS)$")


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def parse(name, source):
    """The document's tree; a fault of any level is one of the test."""
    try:
        import docutils.core
        import docutils.utils
    except ImportError:
        raise tap.Skip("no python3-docutils")
    faults = []

    class Stream:
        def write(self, line):
            faults.append(line)

    tree = docutils.core.publish_doctree(source, name, settings_overrides={
        "report_level": 1, "halt_level": 5, "warning_stream": Stream(),
        "syntax_highlight": "none"})
    assert not faults, "".join(faults)
    return tree


def test_documents_have_no_faults():
    names = sorted(os.listdir(FOLDER))
    assert names == ["expiry.rst", "ioctl-number.rst"], names
    for name in names:
        parse(name, text(os.path.join(FOLDER, name)))


def test_fault_is_noticed():
    for source in ("Title\n===\n", "``open\n", "== ==\na  b\n"):
        try:
            parse("wrong", source)
        except AssertionError:
            continue
        raise AssertionError("no fault in %r" % source)


def test_each_name_of_the_header_is_there():
    document = text(os.path.join(FOLDER, "expiry.rst"))
    names = re.findall(r"^#define (EXPIRY_\w+)[ \t]", text(HEADER), re.M)
    assert len(names) > 20, names
    missing = [name for name in names if not OTHER.match(name) and
               not re.search(r"``%s``" % name, document)]
    assert not missing, missing
    unknown = set(re.findall(r"EXPIRY_\w+", document)) - set(names)
    assert not unknown, unknown


def test_numbers_are_in_the_range():
    tree = parse("ioctl-number.rst",
                 text(os.path.join(FOLDER, "ioctl-number.rst")))
    rows = [[entry.astext() for entry in row.children]
            for row in tree.findall(lambda node: node.tagname == "row")]
    magic, numbers, include, _ = rows[-1]
    header = text(HEADER)
    assert re.search(r"EXPIRY_IOC_MAGIC\s+%s$" % magic, header, re.M), magic
    assert os.path.exists(os.path.join(ROOT, "include", include)), include
    first, last = (int(number, 16) for number in numbers.split("-"))
    used = [int(number) for number in
            re.findall(r"\(EXPIRY_IOC_MAGIC, (\d+)", header)]
    assert len(used) == len(set(used)) >= 7, used
    assert all(first <= number <= last for number in used), used


if __name__ == "__main__":
    tap.main()
