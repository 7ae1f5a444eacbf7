#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What `make install` leaves is what a program needs: pkg-config finds the
# library, a program compiles with what it says and runs. Without DESTDIR it runs
# with no variable set, below /usr/local; elsewhere the output says what to do.

. tests/tap.sh
. tests/packaging/own-system

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
		grep -x 'ExecStart=/usr/bin/expiry-exporter' \
			"${unit%/*}/expiry-exporter.service"
}

# What a package of a service puts its files into.
folder() {
	[ -d "$dir/usr/lib/expiry/queues.d" ]
}

watching() {
	[ -s "$dir/usr/share/expiry/grafana/expiry.json" ] &&
		[ -s "$dir/usr/share/expiry/prometheus/expiry.rules.yml" ]
}

uninstall() {
	make -s uninstall DESTDIR="$dir" PREFIX=/usr &&
		rm -f "$dir/program" "$dir/program.c" &&
		[ -z "$(find "$dir" ! -type d ! -name log)" ] &&
		[ ! -e "$dir/usr/lib/expiry" ]
}

# What is done in a system of its own: its functions, by name.
inside=$(cat <<'END'
# As a user does it, with the environment of a plain login.
build_and_run() {
	# shellcheck disable=SC2046
	cc -o "$dir/own/program" "$dir/program.c" \
		$(pkg-config --cflags --libs libexpiry) "$@" &&
		[ "$(env -i "$dir/own/program")" = refused ]
}

install_local() {
	PATH=/usr/bin:/bin make -s install && build_and_run &&
		PATH=/usr/bin:/bin make -s uninstall &&
		! /sbin/ldconfig -p | grep libexpiry
}

# The linker does not look there: either way that the output names will do.
install_opt() {
	PKG_CONFIG_PATH=/opt/e/lib/pkgconfig
	export PKG_CONFIG_PATH
	make -s install PREFIX=/opt/e >"$dir/own/said" 2>&1 || return
	cat "$dir/own/said"
	! build_and_run && build_and_run -Wl,-rpath,/opt/e/lib &&
		grep -F 'PKG_CONFIG_PATH=/opt/e/lib/pkgconfig' "$dir/own/said" &&
		grep -F -e '-Wl,-rpath,/opt/e/lib' "$dir/own/said" &&
		sed -n 's/^ *\(echo .*ldconfig\)$/\1/p' "$dir/own/said" \
			>"$dir/own/advice" && [ -s "$dir/own/advice" ] &&
		sh "$dir/own/advice" && build_and_run
}
END
)

# A package's build is no installation on this machine.
leave_cache_alone() {
	before=$(stat -c '%i %Y' /etc/ld.so.cache)
	make -s install DESTDIR="$dir/package" PREFIX=/usr >"$dir/said" 2>&1 &&
		! [ -s "$dir/said" ] &&
		[ "$before" = "$(stat -c '%i %Y' /etc/ld.so.cache)" ] &&
		rm -rf "$dir/package" "$dir/said"
}

if can_own_system; then
	is 'installed by root, a program runs without a variable' \
		own_system install_local
	is 'below another PREFIX, what is said makes it run' \
		own_system install_opt
	rm -rf "$dir/own"
else
	skip 'what root installs runs' 'no mount namespace here'
fi
is 'with DESTDIR the linker is left alone' leave_cache_alone
is 'make install' make -s install DESTDIR="$dir" PREFIX=/usr
is 'the version is the project'"'"'s' [ "$(flags --modversion)" = "$(cat VERSION)" ]
is 'a program compiles' compile
is 'and runs on the shared library' run
is 'dashboard and alerts are there' watching
is 'every manual page is there' \
	[ "$(find "$dir/usr/share/man" -type f | wc -l)" = "$(ls docs/man | wc -l)" ]
is 'and every call has one' link
is 'units know where the daemon is' units
is 'there is a folder for declared queues' folder
is 'make install-dkms' make -s install-dkms DESTDIR="$dir" PREFIX=/usr
is 'make uninstall leaves nothing' uninstall
tap_end
