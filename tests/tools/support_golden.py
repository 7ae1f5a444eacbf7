# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiryctl with a fake server at a fixed time; compares its output with the files in
golden/."""

import difflib
import errno
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "golden")
BUILD = os.path.join(HERE, "..", "..", "build")
CTL = os.path.abspath(os.environ.get("EXPIRYCTL",
                                     os.path.join(BUILD, "expiryctl")))
FIXED = os.path.abspath(os.path.join(BUILD, "tests", "tools", "fixed-time.so"))
WAIT = 60              # seconds for what must come
WRITE = "--write" in sys.argv

# Central Europe, by its rule: this needs no zone files.
ZONE = "CET-1CEST,M3.5.0,M10.5.0/3"


def environment(**more):
    assert os.path.exists(FIXED), FIXED + " is not there: make check-lib"
    variables = {name: value for name, value in os.environ.items()
                 if name not in ("NO_COLOR", "TERM")}
    # expiryctl's sanitizer, if any, usually must be the first library. It may be later.
    options = variables.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return dict(variables, LD_PRELOAD=FIXED, TZ=ZONE,
                ASAN_OPTIONS=options.lstrip(":"), **more)


def command(server, *arguments):
    return [CTL, "--socket", os.path.basename(server.path), *arguments]


def start(server, *arguments, **more):
    return subprocess.Popen(command(server, *arguments), cwd=server.folder,
                            env=environment(**more), stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(server, *arguments, stdin="", **more):
    """Returns exit status, standard output and standard error."""
    process = start(server, *arguments, **more)
    out, err = process.communicate(stdin.encode(), WAIT)
    server.wait_ended()
    return process.returncode, out.decode(), err.decode()


def run_on_terminal(server, *arguments, rows=24, **more):
    """Returns the output on a terminal with @rows rows, with readable escapes."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("4H", rows, 132, 0, 0))
    process = subprocess.Popen(
        command(server, *arguments), cwd=server.folder, stdin=side,
        stdout=side, stderr=side, env=environment(**{"TERM": "xterm", **more}))
    os.close(side)
    shown = b""
    while True:
        try:
            data = os.read(main, 65536)
        except OSError as error:
            assert error.errno == errno.EIO, error
            break
        if not data:
            break
        shown += data
    os.close(main)
    assert process.wait(WAIT) == 0, shown
    return shown.decode().replace("\r\n", "\n").replace("\033", "\\e") \
        .replace("\r", "\\r")


def shown(arguments, status, out, err):
    """Returns a call and its results, in the files' format."""
    # The module's state depends on the machine; test-module covers it.
    out = re.sub(r"^(  module  +)\S.*$", r"\1(of this machine)", out,
                 flags=re.M)
    out = re.sub(r'("module": )"\w+"', r'\1"(of this machine)"', out)
    text = "$ expiryctl %s\n%s" % (" ".join(
        argument if re.fullmatch(r"[\w+@:.,/=-]+", argument) else
        "'%s'" % argument for argument in arguments), out)
    text += "".join("! %s\n" % line for line in err.splitlines())
    return text + ("[status %d]\n" % status if status else "")


def compare(name, text):
    """Compares @text with golden/@name; with --write replaces the file."""
    path = os.path.join(GOLDEN, name)
    if WRITE:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    with open(path, encoding="utf-8") as file:
        expected = file.read()
    difference = "\n".join(difflib.unified_diff(
        expected.splitlines(), text.splitlines(), path, "now", lineterm=""))
    assert text == expected, difference or "the ends of lines differ"
