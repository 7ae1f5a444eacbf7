#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The README's program is a whole one, and its commands build and run it as they
# are printed, but for the folder /tmp.

. tests/tap.sh
. tests/packaging/own-system

# The program, and the commands that name it or the daemon's socket, by their order.
sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' >"$dir/first.c"
sed -n 's/^[$#] //; /^```/d; s|/tmp/|'"$dir"'/|g; /\/first\( \|$\)/p' README.md \
	>"$dir/commands"
said='session 1001 has expired: 42'

start() {
	sed -n 's/^\$ \(build\/expiryd .*\) &$/exec \1/p' README.md |
		sed "s|/tmp/|$dir/|g" >"$dir/daemon"
	[ -s "$dir/daemon" ] || return
	sh "$dir/daemon" 2>"$dir/engine" &
	daemon=$!
	until build/expiryctl --socket "$dir/e" status >/dev/null 2>&1; do
		kill -0 $daemon || return
		sleep 0.1
	done
}

whole() {
	sed 1d examples/first.c | diff - "$dir/first.c"
}

from_the_tree() {
	sed -n '1,2p' "$dir/commands" >"$dir/steps"
	grep -F build/libexpiry.a "$dir/steps" &&
		[ "$(sh -e "$dir/steps")" = "$said" ] && grep -x "$said" README.md
}

inside=$(cat <<'END'
installed() {
	sed -n '3,4p' "$dir/commands" >"$dir/steps"
	cat "$dir/steps"
	grep -F pkg-config "$dir/steps" && make -s install && rm -f "$dir/first" &&
		[ "$(EXPIRY_SOCKET=$dir/e sh -e "$dir/steps")" = "$said" ]
}
END
)

compiles() {
	$1 -Wall -Wextra -Werror -pedantic -Iinclude -Iinclude/uapi -c -o /dev/null \
		"$2"
}

# headers COMPILER SUFFIX STANDARD...: each public header alone, its record in use
headers() {
	compiler=$1 suffix=$2
	shift 2
	for header in expiry/expiry.h expiry/wire.h linux/expiry.h; do
		printf '#include <%s>\nunsigned int period(struct expiry_record *record);\n%s\n' \
			$header 'unsigned int period(struct expiry_record *record)
			{ return record->count ? record->count : record->period_ms; }' \
			>"$dir/header.$suffix"
		for standard; do
			compiles "$compiler -std=$standard" "$dir/header.$suffix" || return
		done
	done
}

cplusplus() {
	headers g++ cc c++11 c++17 c++20 || return
	cp "$dir/first.c" "$dir/first.cc"
	compiles 'g++ -std=c++20' "$dir/first.cc"
}

c() {
	headers cc c c99 c11 c17 gnu11 || return
	for standard in c99 c11 gnu11; do
		compiles "cc -std=$standard" "$dir/first.c" || return
	done
}

is 'the program is that of examples/' whole
is 'it compiles as any C, as do the headers' c
if command -v g++ >/dev/null; then
	is 'and as C++20, as do the headers' cplusplus
else
	skip 'C++20' 'no g++'
fi
is 'a daemon starts' start
is 'it is built from the tree, and runs' from_the_tree
if can_own_system; then
	export said
	is 'it is built with an installed library, and runs' own_system installed
else
	skip 'an installed library' 'no mount namespace here'
fi
[ -z "${daemon-}" ] || kill "$daemon"
wait
tap_end
