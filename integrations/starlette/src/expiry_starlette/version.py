# SPDX-License-Identifier: LGPL-2.1-or-later
VERSION = "0.1.0"
