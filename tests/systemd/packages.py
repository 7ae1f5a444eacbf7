# SPDX-License-Identifier: LGPL-2.1-or-later
"""Debian's packages of the project, if they were built for the release that runs."""

import glob
import os
import shutil

from service import LATER, PROGRAM, ROOT, figure, output_of, tap

FOLDER = os.path.join(ROOT, "build/tests/systemd/packages",
                      output_of("sh", "-c", ". /etc/os-release; "
                                "echo $VERSION_CODENAME"))


def built():
    """The files of the daemon's package and the library's."""
    paths = [path for name in ("expiryd", "libexpiry0")
             for path in glob.glob("%s/%s_*.deb" % (FOLDER, name))]
    if not paths:
        figure("skipped: none of this release")
        raise tap.Skip("no packages were built for this release")
    return paths


def later(path):
    """The package as of a version that is later, with the build that is."""
    tree, package = "/tmp/later", "/tmp/later-" + os.path.basename(path)
    shutil.rmtree(tree, ignore_errors=True)
    output_of("dpkg-deb", "-R", path, tree)
    output_of("sed", "-i", "s/^Version: .*/&+later/", tree + "/DEBIAN/control")
    if os.path.exists(tree + PROGRAM):
        output_of("install", LATER, tree + PROGRAM)
    output_of("dpkg-deb", "-Znone", "-b", tree, package)
    return package
