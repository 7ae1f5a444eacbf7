#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What systemd is given: units that it understands, a service that is shut in,
# its user, its directory.

command -v systemd-analyze >/dev/null || exit 4

. tests/lib/tap

# Some versions end with 0 whatever they say.
verify() {
	MANPATH=$dir/usr/share/man systemd-analyze verify --man=no \
		"$units/expiryd.service" "$units/expiryd.socket" \
		>"$dir/verify" 2>&1 || :
	! grep expiryd "$dir/verify"
}

secure() {
	systemd-analyze security --offline=yes --threshold=15 \
		"$units/expiryd.service"
}

keys_agree() {
	store=$(sed -n 's/^FileDescriptorStoreMax=//p' "$units/expiryd.service")
	kept=$(sed -n 's/^#kept_queues = //p' packaging/expiryd.conf)
	files=$(sed -n 's/^LimitNOFILE=//p' "$units/expiryd.service")
	connections=$(sed -n 's/^#connections = //p' packaging/expiryd.conf)
	queues=$(sed -n 's/^#queues = //p' packaging/expiryd.conf)
	[ "$kept" -lt "$store" ] &&
		[ $((connections + queues + store)) -lt "$files" ]
}

account() {
	mkdir -p "$dir/root/etc"
	systemd-sysusers --root="$dir/root" - <packaging/systemd/sysusers.conf &&
		grep '^expiry:' "$dir/root/etc/passwd" &&
		grep '^expiry:' "$dir/root/etc/group"
}

directory() {
	systemd-tmpfiles --root="$dir/root" --create - \
		<packaging/systemd/tmpfiles.conf &&
		[ "$(stat -c '%a %u' "$dir/root/run/expiryd")" = "755 0" ]
}

rule() {
	[ "$(grep -v '^#' packaging/systemd/udev.rules)" = \
		'KERNEL=="expiry", SUBSYSTEM=="misc", GROUP="expiry", MODE="0660"' ]
}

# Every kind of entry is explained, and journalctl can read it.
catalog() {
	mkdir -p "$dir/root/usr/lib/systemd/catalog" \
		"$dir/root/var/lib/systemd/catalog"
	cp packaging/systemd/expiryd.catalog "$dir/root/usr/lib/systemd/catalog/"
	journalctl --root="$dir/root" --update-catalog || return 1
	journalctl --root="$dir/root" --list-catalog | cut -d ' ' -f 1 |
		sort >"$dir/explained"
	sed -n 's/^#define LOG_[A-Z_]*[[:space:]]*"\([0-9a-f]\{32\}\)"$/\1/p' \
		daemon/log.h | sort | diff - "$dir/explained" && [ -s "$dir/explained" ]
}

make -s install DESTDIR="$dir" PREFIX=/usr UNITDIR=/units >/dev/null
units=$dir/units
sed -i "s|/usr/sbin/|$dir/usr/sbin/|" "$units/expiryd.service"

is 'units are understood' verify
is 'the service is shut in: at most 1.5 of 10' secure
is 'limits of the service and of the daemon agree' keys_agree
is 'the user and the group are made' account
if [ "$(id -u)" = 0 ]; then
	is "the socket's directory is root's" directory
else
	number=$((number + 1))
	echo "ok $number - the socket's directory # SKIP needs root"
fi
is 'the device is the group'"'"'s' rule
is 'what the journal is told is explained' catalog
tap_end
