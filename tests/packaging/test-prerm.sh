#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the package says before it stops the daemon: how many timers are lost, and
# nothing where none are. Whatever goes wrong, its script ends with 0.

. tests/tap.sh

# The machine has no such service: a systemctl of one's own says that it runs,
# an expiryctl of one's own asks the daemon here.
mkdir "$dir/bin"
cat >"$dir/bin/expiryctl" <<END
#!/bin/sh
exec "$PWD/build/expiryctl" --socket "$dir/socket" "\$@"
END
cat >"$dir/bin/systemctl" <<END
#!/bin/sh
[ ! -e "$dir/stopped" ]
END
printf '#!/bin/sh\n' >"$dir/bin/deb-systemd-invoke"
chmod +x "$dir/bin"/*
PATH=$dir/bin:$PATH

start() {
	build/expiryd --socket "$dir/socket" --engine embedded --journal "$dir/journal" \
		>"$dir/daemon" 2>&1 &
	daemon=$!
	until expiryctl status >/dev/null 2>&1; do
		kill -0 $daemon || return 1
	done
}

stop() {
	kill $daemon
	wait $daemon
}

prerm() {
	sh packaging/debian/expiryd.prerm "$@" >"$dir/said" 2>&1
	status=$?
	cat "$dir/said"
	return $status
}

quiet() {
	prerm "$@" && [ ! -s "$dir/said" ]
}

says() {
	prerm "$@" &&
		grep '^expiryd: 3 timers in [0-9]* queues are lost now' "$dir/said"
}

arm() {
	expiryctl --queue leases arm +1h 1 && expiryctl --queue leases arm +1h 2 &&
		expiryctl --queue sessions arm +1h 3
}

# A timer that the journal keeps is not lost.
arm_durable() {
	expiryctl --queue kept --durable arm --id 7 +1h 4
}

durable_alone() {
	mv "$dir/journal" "$dir/moved" && mkdir -m 700 "$dir/journal" && start &&
		arm_durable && quiet upgrade 1.0 && quiet remove && stop &&
		! grep 'end with the daemon' "$dir/daemon"
}

hangs() {
	kill -STOP $daemon
	quiet upgrade 1.0
	status=$?
	kill -CONT $daemon
	return $status
}

broken() {
	printf '#!/bin/sh\necho nonsense\nexit 1\n' >"$dir/bin/expiryctl"
	quiet upgrade 1.0
}

gone() {
	rm "$dir/bin/expiryctl"
	quiet remove
}

mkdir -m 700 "$dir/journal"
is 'the daemon starts' start
is 'nothing is said where no timer is lost' quiet upgrade 1.0
is 'timers are armed' arm
is 'and one that is durable' arm_durable
is 'an upgrade says how many are lost' says upgrade 1.0
is 'so does a removal' says remove
is 'not so the old script of a failed upgrade' quiet failed-upgrade 1.0
touch "$dir/stopped"
is 'nothing is said where the service is stopped' quiet upgrade 1.0
rm "$dir/stopped"
is 'a daemon that does not answer stops no upgrade' hangs
is 'the daemon names the queues' stop
is 'with their numbers' grep '3 timers end with the daemon: leases 2, sessions 1' \
	"$dir/daemon"
is 'nothing is said where the daemon is gone' quiet upgrade 1.0
is 'nor where all timers are durable' durable_alone
is 'a broken tool stops no upgrade' broken
is 'nor one that is gone' gone
tap_end
