#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What `make install` leaves is what a program needs: pkg-config finds the
# library, a program compiles with what it says and runs.

# The same whatever the engine: once is enough.
[ "${EXPIRY_ENGINE:-}" != kernel ] || exit 4

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

flags() {
	PKG_CONFIG_PATH=$dir/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir \
		pkg-config "$@" libexpiry
}

compile() {
	# shellcheck disable=SC2046
	cc -o "$dir/program" "$dir/program.c" $(flags --cflags --libs)
}

run() {
	[ "$(LD_LIBRARY_PATH=$dir/usr/lib "$dir/program")" = refused ]
}

cat >"$dir/program.c" <<'END'
#include <expiry/expiry.h>
#include <stdio.h>

int main(void)
{
	struct expiry *h;

	puts(expiry_open(&h, "unix:/nonexistent", NULL) < 0 ? "refused" : "?");
	return 0;
}
END

echo 1..5
is 'make install' make -s install DESTDIR="$dir" PREFIX=/usr
is 'the version is the project'"'"'s' [ "$(flags --modversion)" = "$(cat VERSION)" ]
is 'a program compiles' compile
is 'and runs on the shared library' run
is 'every manual page is there' \
	[ "$(find "$dir/usr/share/man" -type f | wc -l)" = "$(ls docs/man | wc -l)" ]
exit $failed
