#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The Python client is typed: mypy --strict finds nothing, and it would find a fault.

. tests/tap.sh

strict() {
	(cd clients/python && MYPYPATH=src mypy --strict --cache-dir "$dir/cache" "$@")
}

finds_a_fault() {
	printf 'import expiry\nexpiry.sync.connect(queue=5)\n' >"$dir/fault.py"
	! strict "$dir/fault.py" >"$dir/said" && grep 'arg-type' "$dir/said"
}

command -v mypy >/dev/null || {
	echo '1..0 # SKIP mypy is not installed'
	exit 4
}
is 'nothing is wrong with the types' strict -p expiry
is 'a call with a wrong type is noticed' finds_a_fault
tap_end
