#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A report of the kernel's, however long, is named in the last lines of a run, and a
machine that its emulator ended in booting is started once more. A TAP program, without a
guest."""

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import guest  # noqa: E402
import suites  # noqa: E402

NAME = "reports-test"
LAST = 10           # lines that are to have the title

TRACE = "".join(f"[  12.{i:06}]  function_{i}+0x10/0x20 [expiry]\n" for i in range(300))
REPORTS = {
    "a leak of the module's":
    ("[   12.5] BUG: memory of expiry leaked\n"
     "[   12.6] unreferenced object 0xffff (size 64):\n", "BUG: memory of expiry leaked"),
    "a warning":
    ("[   12.5] ------------[ cut here ]------------\n"
     "[   12.5] WARNING: CPU: 0 PID: 7 at kmod/queue.c:40 destroy+0x1/0x2\n",
     "WARNING: CPU: 0 PID: 7 at kmod/queue.c:40 destroy+0x1/0x2"),
    "a lock's":
    ("[   12.5] ======================================================\n"
     "[   12.5] WARNING: possible circular locking dependency detected\n",
     "WARNING: possible circular locking dependency detected"),
    "an access to freed memory":
    ("[   12.5] ==================================================================\n"
     "[   12.5] BUG: KASAN: use-after-free in fire+0x12/0x34 [expiry]\n",
     "BUG: KASAN: use-after-free in fire+0x12/0x34 [expiry]"),
}
PANIC = "[   13.0] Kernel panic - not syncing: panic_on_warn set ...\n"

number = failed = 0


def result(truth, name, detail=""):
    global number, failed
    number += 1
    failed += not truth
    print(f"{'ok' if truth else 'not ok'} {number} - {name}")
    if not truth:
        print("".join(f"# {line}\n" for line in str(detail).splitlines()), end="")


def judge(machine, log):
    """What a run comes to with this log of the kernel's: status and output."""
    with open(machine.path("console.log"), "w", encoding="utf-8") as file:
        file.write(f"[    0.1] BUG: before it began\n[    1.0] {guest.BEGIN}\n{log}")
    with open(machine.path("status"), "w", encoding="utf-8") as file:
        file.write("begin\n")
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        status = machine.judge(None, 1, 2)
    return status, said.getvalue().splitlines()


def check(machine, suite):
    """tests/vm/check on a machine that ends like that one: the line of its results."""
    results = machine.path("results-of-check")
    fake = machine.path("run")
    with open(fake, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\necho '9 0 0 1.0 {NAME}:test' >build/{NAME}/results\n"
                   f"printf %s \"$TITLE\" >build/{NAME}/report\nexit 2\n")
    os.chmod(fake, 0o755)
    if os.path.exists(results):
        os.unlink(results)
    done = subprocess.run([os.path.join(HERE, "check"), results, NAME, suite, fake],
                          stderr=subprocess.PIPE, text=True, check=False)
    total = subprocess.run([os.path.join(HERE, "..", "run"), "--summary", results],
                           stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr, total.stdout


def starts(machine, script):
    """Runs a machine that is a script, with the number of its start as $1: the status of
    the run, and how often it was started."""
    count = machine.path("starts")
    with open(machine.path("machine"), "w", encoding="utf-8") as file:
        file.write(f"cd build/{NAME}; echo >>starts; set -- $(wc -l <starts)\n{script}")
    if os.path.exists(count):
        os.unlink(count)
    options = argparse.Namespace(quiet=False, boot=10, time=10, silence=10)
    with contextlib.redirect_stderr(io.StringIO()):
        status = machine.run(["sh", machine.path("machine")], options)
    with open(count, encoding="ascii") as file:
        return status, len(file.readlines())


DIES = "[    1.0] Oops: int3: 0000 [#1] SMP NOPTI"
BEGINS = f"echo begin >status; echo '{guest.BEGIN}' >>console.log; "
STARTS = {
    "of its emulator": (f"[ $1 = 1 ] && echo '{DIES}' >console.log && exit\n"
                        f"{BEGINS} echo exit 0 >>status", guest.OK, 2),
    "of it twice": (f"echo '{DIES}' >console.log", guest.HARNESS, 2),
    "of another fault": ("echo '[    1.0] Oops: 0002' >console.log", guest.HARNESS, 1),
    "of it with a command running": (f"{BEGINS} echo '{DIES}' >>console.log",
                                     guest.KERNEL_REPORT, 1),
}


def main():
    os.chdir(guest.CHECKOUT)
    machine = guest.Guest(NAME)
    try:
        for what, (begin, title) in REPORTS.items():
            status, said = judge(machine, begin + TRACE + PANIC)
            result(status == guest.KERNEL_REPORT and
                   any(title in line for line in said[-LAST:]),
                   f"{what} is named at the end", "\n".join(said[-LAST:]))
            os.environ["TITLE"] = title.strip()
            status, said, summary = check(machine, "device")
            result(status == 1 and title in said and title in summary,
                   f"{what} is named in the summary", said + summary)
            table = suites.Table()
            suites.check(table, "6.1", ["device"], f"build/{NAME}", [machine.path("run")])
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                status = table.show()
            result(status == 1 and title in said.getvalue(),
                   f"{what} is named below the table", said.getvalue())
        status, said = judge(machine, "[   12.5] expiry: loaded\n")
        result(status == guest.HARNESS and "first report" not in " ".join(said),
               "without a report none is named", said)
        for what, (script, *wanted) in STARTS.items():
            got = list(starts(machine, script))
            result(got == wanted, f"a machine that dies {what}", f"{got}, not {wanted}")
    finally:
        shutil.rmtree(machine.work)
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
