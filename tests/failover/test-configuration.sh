#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The files of docs/two-machines.md, read by the programs that they are for.

. tests/tap.sh

files=examples/two-machines

# with PROGRAM NAME COMMAND: a test that needs another program
with() {
	if command -v "$1" >/dev/null; then
		is "$2" "$3"
	else
		skip "$2" "no $1"
	fi
}

units() {
	mkdir -p "$dir/expiryd.service.d" &&
		cp $files/expiry-active.target $files/*.service $files/*.mount "$dir" &&
		cp $files/expiryd-volume.conf "$dir/expiryd.service.d/volume.conf" &&
		cp packaging/systemd/expiryd.socket "$dir" &&
		sed "s,^ExecStart=.*,ExecStart=$PWD/build/expiryd," \
			packaging/systemd/expiryd.service.in >"$dir/expiryd.service" || return
	# drbdadm and DRBD's own unit are perhaps not here.
	printf '[Service]\nExecStart=/bin/true\n' >"$dir/drbd.service"
	sed -i 's,/usr/sbin/drbdadm,/bin/true,' "$dir/expiry-volume.service"
	SYSTEMD_UNIT_PATH=$dir: systemd-analyze verify --man=no "$dir/expiry-active.target" \
		"$dir/expiryd.service" >"$dir/said" 2>&1 || :
	grep -e expiry -e cycle "$dir/said" && return 1
	return 0
}

# A dependency on the mount that starts it would let a client of the standby fence the
# active machine.
nothing_else_mounts() {
	! grep -rnE '^(Requires|BindsTo|Wants|RequiresMountsFor)=.*srv-expiry' $files \
		--exclude=expiry-active.target &&
		! grep -n '^Where=/var/lib/expiryd' $files/*.mount &&
		! grep -n 'WantedBy' $files/*
}

settings() {
	mkdir -p "$dir/journal" && sed "s,/srv/expiry/journal,$dir/journal," \
		$files/expiryd.conf >"$dir/expiryd.conf" &&
		build/expiryd --config "$dir/expiryd.conf" --check-config
}

volume() {
	DRBD_DRIVER_VERSION_OVERRIDE=8.4.11 drbdadm -c $files/expiry.res dump >"$dir/said" &&
		grep -q 'protocol *C;' "$dir/said" &&
		grep -q 'fencing *resource-and-stonith;' "$dir/said"
}

# keepalived reports a script that is not installed here.
election() {
	sed "s,/usr/local/sbin/expiry-check,$PWD/$files/expiry-check,; s,eth0,$interface," \
		$files/keepalived.conf >"$dir/keepalived.conf"
	keepalived -t -f "$dir/keepalived.conf" >"$dir/said" 2>&1
	grep -vE 'No VIP specified' "$dir/said" && return 1
	return 0
}

scripts() {
	sh -n $files/expiry-fence && sh -n $files/expiry-check &&
		[ -x $files/expiry-fence ] && [ -x $files/expiry-check ]
}

with systemd-analyze 'systemd takes the units, and there is no cycle' units
is 'only the target mounts the volume' nothing_else_mounts
is 'expiryd takes the settings' settings
with drbdadm 'drbdadm takes the volume' volume
# Any network interface but lo.
interface=$(find /sys/class/net -mindepth 1 ! -name lo -printf '%f\n' -quit 2>/dev/null)
if [ "$interface" ]; then
	with keepalived 'keepalived takes the election' election
else
	skip 'keepalived takes the election' 'no network interface'
fi
is 'the scripts are scripts' scripts
tap_end
