#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The user's units as they were installed: under a manager of a user's own."""

import os
import subprocess

from service import LIMIT, figure, main, output_of, systemctl, wait_for

UNITS = "expiryd.service", "expiryd.socket"
USER, MANAGER, FOLDER = "daemon", "expiry-test-manager.service", "expiry-test-user"
RUNTIME = "/run/" + FOLDER
SOCKET = RUNTIME + "/expiry/socket"


def as_user(*command, check=True, **environment):
    """What it prints as the user, with the user's own runtime directory."""
    done = subprocess.run(command, user=USER, group=USER, extra_groups=[], text=True,
                          env={**os.environ, "XDG_RUNTIME_DIR": RUNTIME, **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=2 * LIMIT, check=False)
    assert not check or not done.returncode, (command, done.returncode, done.stdout)
    return done.stdout


def test_user_units_are_in_order():
    said = output_of("env", "XDG_RUNTIME_DIR=/run", "systemd-analyze", "verify",
                     "--user", "--man=no", *UNITS, check=False)
    assert "expiryd" not in said, said


def test_user_s_socket_starts_the_user_s_daemon():
    """Without pam_systemd, which a small root has not: the manager itself."""
    output_of("systemd-run", "--unit", MANAGER, "--service-type=notify",
              "-p", "User=" + USER, "-p", "Delegate=yes",
              "-p", "RuntimeDirectory=" + FOLDER, "-p", "RuntimeDirectoryMode=0700",
              "-E", "XDG_RUNTIME_DIR=" + RUNTIME, "/lib/systemd/systemd", "--user")
    as_user("systemctl", "--user", "start", "expiryd.socket")
    own = {"EXPIRY_SOCKET": SOCKET}
    as_user("expiryctl", "arm", "+1ms", "4242", **own)
    assert "4242" in as_user("expiryctl", "watch", "--count", "1", **own)
    assert as_user("systemctl", "--user", "is-active", "expiryd.service") == "active\n"
    text = as_user("systemctl", "--user", "show", "--value", "--property=StatusText",
                   "expiryd.service")
    assert text.startswith("Engine embedded: "), text
    figure(text.strip())
    systemctl("stop", MANAGER)
    assert wait_for(lambda: not os.path.exists(RUNTIME), LIMIT)


if __name__ == "__main__":
    main()
