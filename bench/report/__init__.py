# SPDX-License-Identifier: LGPL-2.1-or-later
"""What every benchmark reports with: figures of several rounds (figures), tables
and aims (tables), the machine (machine) and plots (plots)."""
