#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What `make install` leaves is what a program needs: pkg-config finds the
# library, a program compiles with what it says and runs.

. tests/lib/tap

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

link() {
	[ "$(readlink "$dir/usr/share/man/man3/expiry_refresh.3")" = expiry_arm.3 ]
}

units() {
	[ -n "$(find "$dir" -path '*/systemd/system/expiryd.socket')" ] &&
		unit=$(find "$dir" -path '*/systemd/system/expiryd.service') &&
		grep -x 'ExecStart=/usr/sbin/expiryd' "$unit" &&
		! grep '@[A-Z]*@' "$unit" &&
		grep -x 'ExecStart=/usr/bin/expiryctl metrics --http' \
			"${unit%/*}/expiry-metrics@.service"
}

# What a package of a service puts its files into.
folder() {
	[ -d "$dir/usr/lib/expiry/queues.d" ]
}

uninstall() {
	make -s uninstall DESTDIR="$dir" PREFIX=/usr &&
		rm -f "$dir/program" "$dir/program.c" &&
		[ -z "$(find "$dir" ! -type d ! -name log)" ] &&
		[ ! -e "$dir/usr/lib/expiry" ]
}

is 'make install' make -s install DESTDIR="$dir" PREFIX=/usr
is 'the version is the project'"'"'s' [ "$(flags --modversion)" = "$(cat VERSION)" ]
is 'a program compiles' compile
is 'and runs on the shared library' run
is 'every manual page is there' \
	[ "$(find "$dir/usr/share/man" -type f | wc -l)" = "$(ls docs/man | wc -l)" ]
is 'and every call has one' link
is 'units know where the daemon is' units
is 'there is a folder for declared queues' folder
is 'make install-dkms' make -s install-dkms DESTDIR="$dir" PREFIX=/usr
is 'make uninstall leaves nothing' uninstall
tap_end
