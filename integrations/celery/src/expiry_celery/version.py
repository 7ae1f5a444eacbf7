# SPDX-License-Identifier: LGPL-2.1-or-later
"""The version of the project."""

VERSION = "0.1.0"
