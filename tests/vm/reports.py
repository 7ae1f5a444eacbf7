# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a kernel says when something is wrong with it."""

import re

REPORT = re.compile(
    r"WARNING: |BUG: |kernel BUG at|Oops: |Kernel panic|general protection fault"
    r"|KASAN: |KCSAN: |UBSAN: |KFENCE: |possible (circular|recursive|irq)"
    r"|inconsistent lock state|inconsistent \{|INFO: task .* blocked"
    r"|detected (expedited )?stalls|self-detected stall|suspicious RCU usage"
    r"|sleeping function called|unreferenced object|suspected memory leak"
    r"|trying to register non-static key|ODEBUG: |refcount_t: "
    r"|list_(add|del) corruption|bad: scheduling from|unable to handle"
)
