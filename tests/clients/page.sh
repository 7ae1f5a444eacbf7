# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For the tests of the clients' pages in docs/, read in by them after tests/tap.sh.

# page_source PAGE LANGUAGE N: prints the Nth program of the page in this language
page_source() {
	awk -v fence="\`\`\`$2" -v want="$3" '$0 == fence { nr++; inside = nr == want; next }
		/^```$/ { inside = 0 } inside' "$1"
}

# run_beside_daemon PROGRAM TEXT: with a daemon of its own; it succeeds and prints TEXT
run_beside_daemon() {
	"$EXPIRYD" --engine embedded --socket "$dir/socket" >"$dir/daemon" 2>&1 &
	daemon=$!
	tries=200
	until [ -S "$dir/socket" ] || [ $tries = 0 ]; do
		tries=$((tries - 1))
		sleep 0.05
	done
	EXPIRY_SOCKET=$dir/socket timeout 30 "$1" >"$dir/output" 2>&1
	status=$?
	kill $daemon
	wait $daemon
	cat "$dir/output"
	[ $status -eq 0 ] && grep -q "$2" "$dir/output"
}
