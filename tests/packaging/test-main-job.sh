#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The main job with few timers. It notices what is lost while the daemon is down: timers
# that are taken out of the journal, and one whose deadline is made earlier.

. tests/tap.sh

export EXPIRY_ENGINE=embedded EXPIRY_RUN_TIMERS=60000 EXPIRY_RUN_SECONDS=4

main_job() {
	demo/main-job </dev/null >"$dir/said" 2>&1
	status=$?
	cat "$dir/said"
	return $status
}

# change AWK: the main job fails after the journal's lines went through that
change() {
	cat >"$dir/change" <<END
#!/bin/sh
build/expiryctl journal export "\$1" | awk '$1' >"$dir/lines"
mv "\$1" "\$1.old"
build/expiryctl journal import "\$1" <"$dir/lines"
END
	chmod +x "$dir/change"
	! EXPIRY_RUN_KILLED=$dir/change main_job
}

finds() {
	grep "^  $1  *[1-9]" "$dir/said"
}

is 'nothing is lost, early, out of order or delivered twice' main_job
is 'the daemon was killed: clients connected again' finds connected
is 'an exit status for timers that are lost' change 'NR % 5000 != 4999'
is 'which are counted' finds lost
is 'and for deadlines that are others than was answered' \
	change '{ if (NR % 1000 == 999) sub(/[0-9]", "deadline": /, "5\", \"deadline\": "); print }'
is 'which are counted, too' finds misdated
tap_end
