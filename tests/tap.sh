# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For test programs that are shell scripts, read in by them from the checkout:
# a directory of their own, $dir, and tests by name. They end with `tap_end`.

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
number=0

# is NAME COMMAND...: one test
is() {
	name=$1
	shift
	number=$((number + 1))
	if "$@" >"$dir/log" 2>&1; then
		echo "ok $number - $name"
	else
		failed=1
		echo "not ok $number - $name"
		sed 's/^/# /' "$dir/log"
	fi
}

# skip NAME REASON: one test that cannot be done here
skip() {
	number=$((number + 1))
	echo "ok $number - $1 # SKIP $2"
}

# silent COMMAND...: it has status 0 and nothing to say
silent() {
	"$@" >"$dir/heard" 2>&1
	status=$?
	cat "$dir/heard"
	[ $status -eq 0 ] && ! [ -s "$dir/heard" ]
}

tap_end() {
	echo "1..$number"
	exit $failed
}
