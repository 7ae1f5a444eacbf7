#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What systemd is given: units that it understands, a service that is shut in,
# its user, its directory.

command -v systemd-analyze >/dev/null || exit 4

. tests/tap.sh

# Some versions end with 0 whatever they say.
verify() {
	MANPATH=$dir/usr/share/man systemd-analyze verify --man=no \
		"$units/expiryd.service" "$units/expiryd.socket" \
		"$units/expiry-exporter.socket" "$units/expiry-exporter.service" \
		>"$dir/verify" 2>&1 || :
	! grep -e expiryd -e expiry-exporter "$dir/verify"
}

# The manager's of a user, started or not.
verify_user() {
	mkdir -p "$dir/run" && XDG_RUNTIME_DIR=$dir/run MANPATH=$dir/usr/share/man \
		systemd-analyze --user verify --man=no \
		"$user_units/expiryd.service" "$user_units/expiryd.socket" \
		>"$dir/verify" 2>&1 || :
	cat "$dir/verify"
	! grep -e expiryd "$dir/verify"
}

# systemd makes the directory of the journal, and names it in the environment: a durable
# queue can be made without any setting, as the service's unit and a user's say.
journal() {
	grep -x 'StateDirectory=expiryd' "$1" && grep -x 'StateDirectoryMode=0700' "$1" &&
		mkdir -p -m 700 "$dir/state" || return
	STATE_DIRECTORY=$dir/state build/expiryd --engine embedded \
		--socket "$dir/durable" >"$dir/said" 2>&1 &
	daemon=$!
	until build/expiryctl --socket "$dir/durable" status; do
		kill -0 $daemon || break
		sleep 0.1
	done
	build/expiryctl --socket "$dir/durable" --queue leases --durable arm --id 7 +1h
	status=$?
	kill $daemon
	wait $daemon
	[ $status = 0 ] && build/expiryctl journal check "$dir/state" | grep 'timers 1$'
	status=$?
	rm -rf "$dir/state"
	return $status
}

# As many threads as there may be have rings within the unit's limit.
most_threads() {
	mkdir "$dir/threads" && chmod 755 "$dir" "$dir/threads" &&
		cp build/expiryd "$dir/threads" && chown 64323 "$dir/threads" || return
	prlimit --memlock="${limit:-8388608}" setpriv \
		--reuid=64323 --regid=64323 --clear-groups "$dir/threads/expiryd" \
		--threads 64 --socket "$dir/threads/socket" >"$dir/said" 2>&1 &
	daemon=$!
	until build/expiryctl --socket "$dir/threads/socket" status; do
		kill -0 $daemon || {
			cat "$dir/said"
			return 1
		}
		sleep 0.1
	done
	kill $daemon
	wait $daemon
}

# What it listens on is where the library looks, and the service serves that.
user_socket() {
	path=$(sed -n 's/^ListenStream=%t//p' "$user_units/expiryd.socket")
	command=$(sed -n 's/^ExecStart=//p' "$user_units/expiryd.service")
	[ "$path" = /expiry/socket ] && mkdir -p "$dir/run/expiry" || return
	# shellcheck disable=SC2086
	systemd-socket-activate -l "$dir/run$path" $command >"$dir/said" 2>&1 &
	listener=$!
	i=0
	until EXPIRY_SOCKET=$dir/run$path build/expiryctl status; do
		i=$((i + 1))
		[ $i -lt 100 ] && kill -0 $listener || break
		sleep 0.1
	done
	kill $listener
	wait $listener
}

secure() {
	systemd-analyze security --offline=yes --threshold=15 \
		"$units/$1"
}

# Without it the journal cannot tell each reboot from a restart.
boot_id() {
	! grep -e ^ProcSubset -e '^InaccessiblePaths=.*/proc' "$units/expiryd.service" \
		"$user_units/expiryd.service"
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

# No unit pulls it in.
not_started() {
	! grep -l -e 'Also=.*metrics' -e '^\(Wants\|Requires\)=.*metrics' "$units"/*
}

# As systemd has it: the first connection starts the process.
answers() {
	command=$(sed -n 's/^ExecStart=//p' "$units/expiry-exporter.service")
	build/expiryd --socket "$dir/daemon" >"$dir/said" 2>&1 &
	daemon=$!
	# shellcheck disable=SC2086
	systemd-socket-activate -l "$dir/metrics" $command \
		--socket "$dir/daemon" >>"$dir/said" 2>&1 &
	listener=$!
	python3 tests/packaging/ask-metrics "$dir/daemon" "$dir/metrics" 3
	status=$?
	kill $listener $daemon
	wait $listener $daemon
	return $status
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
		daemon/util/log.h | sort | diff - "$dir/explained" && [ -s "$dir/explained" ]
}

make -s install DESTDIR="$dir" PREFIX=/usr UNITDIR=/units \
	USERUNITDIR=/usr/lib/systemd/user >/dev/null
units=$dir/units
user_units=$dir/usr/lib/systemd/user
sed -i "s|/usr/sbin/|$dir/usr/sbin/|" "$units/expiryd.service"
sed -i "s|/usr/sbin/|$dir/usr/sbin/|" "$user_units/expiryd.service"
sed -i "s|/usr/bin/|$dir/usr/bin/|" "$units/expiry-exporter.service"

is 'units are understood' verify
is 'and those for a user' verify_user
is 'which serve where the library looks' user_socket
is 'the service journals out of the box' journal "$units/expiryd.service"
is "and so does a user's" journal "$user_units/expiryd.service"
is 'the service is shut in: at most 1.5 of 10' secure expiryd.service
is 'and so is the exporter of metrics' secure expiry-exporter.service
is 'the daemon can read the boot id' boot_id
is 'which starts only if enabled' not_started
is 'and answers on its socket, as often as it is asked' answers
is 'limits of the service and of the daemon agree' keys_agree
is 'the user and the group are made' account
if [ "$(id -u)" = 0 ]; then
	limit=$(sed -n 's/^LimitMEMLOCK=//p' "$units/expiryd.service" |
		numfmt --from=iec)
	if prlimit --memlock="${limit:-8388608}" true; then
		is 'the most threads have their rings' most_threads
	else
		skip 'the most threads have their rings' \
			'root may not raise the limit of locked memory'
	fi
	is "the socket's directory is root's" directory
else
	number=$((number + 1))
	echo "ok $number - the socket's directory # SKIP needs root"
fi
is 'the device is the group'"'"'s' rule
is 'what the journal is told is explained' catalog
tap_end
