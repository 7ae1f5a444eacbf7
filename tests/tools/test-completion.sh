#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the shells offer after expiryctl: the tool's commands and options, files
# where a file is meant. bash is here always, zsh and fish where packaging/bootstrap
# or somebody else has installed them.

PATH=$PWD/build:$PATH
failed=0
number=0

# is NAME WANTED GOT: one test
is() {
	number=$((number + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $number - $1"
	else
		failed=1
		echo "not ok $number - $1"
		printf '# wanted: %s\n# got:    %s\n' "${2//$'\n'/ }" "${3//$'\n'/ }"
	fi
}

# offers WORD...: what bash offers for the last word, sorted
offers() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_expiryctl
	printf '%s\n' "${COMPREPLY[@]}" | sort
}

# A daemon with two queues and one without a name.
folder=$(mktemp -d)
trap 'kill $pids; rm -r "$folder"' EXIT
pids=
export EXPIRY_SOCKET=$folder/socket
expiryd --engine embedded --socket "$EXPIRY_SOCKET" 2>"$folder/log" &
pids+=" $!"
until expiryctl status >/dev/null 2>&1; do
	kill -0 $pids || exit 1
	sleep 0.02
done
expiryctl -q leases arm never >/dev/null
expiryctl -q leasing arm never >/dev/null
both=$(printf 'leases\nleasing')

commands=$(expiryctl --help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' | sort)

. packaging/completions/expiryctl.bash
is 'bash: every command' "$commands" "$(offers expiryctl '')"
is 'bash: after help, a command' drop "$(offers expiryctl help dr)"
is 'bash: a command that is begun' "$(printf 'stats\nstatus')" \
	"$(offers expiryctl sta)"
is 'bash: after options with values' arm \
	"$(offers expiryctl -q load --queue status --json ar)"
is 'bash: global options' "$(printf -- '--queue')" "$(offers expiryctl --q)"
is 'bash: options of a command' "$(printf -- '--ids\n--id')" \
	"$(offers expiryctl load --id; offers expiryctl arm --id | grep -x -e --id)"
is 'bash: what to do with a journal' "$(printf 'check\ndump\nexport\nimport')" \
	"$(offers expiryctl journal '')"
is 'bash: a folder of journals' "$folder" \
	"$(offers expiryctl journal check "${folder%??}")"
is 'bash: options of metrics' --limit "$(offers expiryctl metrics --l)"
is 'bash: not those of others' '' "$(offers expiryctl status --pe)"
is 'bash: clocks' monotonic "$(offers expiryctl --clock mo)"
is 'bash: files to load' packaging/completions/expiryctl.bash \
	"$(offers expiryctl load packaging/completions/expiryctl.b)"
is 'bash: sockets' packaging/completions/expiryctl.fish \
	"$(offers expiryctl --socket packaging/completions/expiryctl.f)"
is 'bash: nothing for an id' '' "$(offers expiryctl query '')"
is 'bash: deadlines' never "$(offers expiryctl arm ne)"

. packaging/completions/expiry-exporter.bash
exporter_options='--help
--limit
--listen
--socket
--version'
exporter_offers() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_expiry_exporter
	printf '%s\n' "${COMPREPLY[@]}" | sort
}
if command -v expiry-exporter >/dev/null; then
	is 'bash: options of the exporter' "$exporter_options" \
		"$(exporter_offers expiry-exporter --)"
	is 'bash: sockets for the exporter' packaging/completions/expiryctl.fish \
		"$(exporter_offers expiry-exporter --socket packaging/completions/expiryctl.f)"
	is 'bash: nothing for an address' '' "$(exporter_offers expiry-exporter --listen '')"
fi

is 'bash: queues' "$both" "$(offers expiryctl --queue '')"
is 'bash: a queue that is begun' "$both" "$(offers expiryctl list -q leas)"
is 'bash: a queue behind =' leases "$(offers expiryctl --queue = lease)"
is 'bash: all queues behind =' "$both" "$(offers expiryctl --queue =)"
is 'bash: queues of top' leasing "$(offers expiryctl top leases leasi)"
is 'bash: queues where no daemon is' '' \
	"$(offers expiryctl --socket "$folder/none" -q '' 2>&1)"
is 'bash: queues of the socket on the line' "$both" "$(
	EXPIRY_SOCKET=$folder/none
	offers expiryctl --socket "$folder/socket" -q ''
)"
is 'bash: not what a shell would run' '' "$(offers expiryctl -q '$(')"

# A server that takes the connection and says nothing: a minute would be too long.
python3 -c 'import socket, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print(flush=True)
time.sleep(1000)' "$folder/silent" >"$folder/ready" &
pids+=" $!"
until [ -s "$folder/ready" ]; do
	sleep 0.02
done
timeout 30 build/expiryctl --socket "$folder/silent" queues --names >"$folder/out" 2>&1
is 'no answer ends by itself' 1 $?
is 'no answer is one line' 1 "$(wc -l <"$folder/out")"

if command -v fish >/dev/null; then
	fish_offers() {
		fish --no-config -c "source packaging/completions/expiryctl.fish
			complete -C '$1'" | cut -f 1 | sort
	}
	is 'fish: every command' "$commands" "$(fish_offers 'expiryctl ')"
	is 'fish: after help, a command' drop "$(fish_offers 'expiryctl help dr')"
	is 'fish: options of a command' --period \
		"$(fish_offers 'expiryctl arm --pe')"
	is 'fish: options of the exporter' "$exporter_options" \
		"$(fish --no-config -c "source packaging/completions/expiry-exporter.fish
			complete -C 'expiry-exporter --'" | cut -f 1 | sort -u)"
	is 'fish: clocks' "$(printf 'boottime\nmonotonic\nrealtime')" \
		"$(fish_offers 'expiryctl --clock ')"
	is 'fish: queues' "$both" "$(fish_offers 'expiryctl list --queue ')"
	is 'fish: queues behind =' "$(printf -- '--queue=leases\n--queue=leasing')" \
		"$(fish_offers 'expiryctl list --queue=lea')"
	is 'fish: queues of top' leasing "$(fish_offers 'expiryctl top leasi')"
	is 'fish: queues where no daemon is' '' \
		"$(fish_offers "expiryctl --socket $folder/none -q " 2>&1)"
	is 'fish: queues of the socket on the line' "$both" "$(
		EXPIRY_SOCKET=$folder/none
		fish_offers "expiryctl --socket $folder/socket -q "
	)"
fi
if command -v zsh >/dev/null; then
	# Completion itself wants a terminal; the helper that feeds it does not.
	zsh_lines() {
		zsh -f -c "words_0=expiryctl
			functions[f]=\"\$(sed -n '/^_expiryctl_lines/,/^}/p' \
				packaging/completions/expiryctl.zsh)\"
			f; _expiryctl_lines $1" | cut -d : -f 1 | sort
	}
	zsh_queues() {
		zsh -f -c "functions[f]=\"\$(sed -n '/^_expiryctl_queues/,/^}/p' \
				packaging/completions/expiryctl.zsh)\"
			f; words_0=expiryctl words=($*) CURRENT=\$#words
			_expiryctl_queues" 2>&1
	}
	is 'zsh: reads' '' "$(zsh -f -n packaging/completions/expiryctl.zsh 2>&1)"
	is 'zsh: the exporter, too' '' \
		"$(zsh -f -n packaging/completions/expiry-exporter.zsh 2>&1)"
	is 'zsh: every command' "$commands" "$(zsh_lines Commands)"
	is 'zsh: an option with a short form' --queue \
		"$(zsh_lines Options | grep -x -e --queue)"
	is 'zsh: options of a command' "$(printf -- '--durable\n--id\n--later\n--new\n--period')" \
		"$(zsh_lines 'Options arm')"
	is 'zsh: queues' "$both" "$(zsh_queues expiryctl --queue "''")"
	is 'zsh: queues where no daemon is' '' \
		"$(zsh_queues expiryctl --socket "$folder/none" -q "''")"
	is 'zsh: queues of the socket on the line' "$both" "$(
		EXPIRY_SOCKET=$folder/none
		zsh_queues expiryctl --socket="$folder/socket" -q "''"
	)"
fi
echo "1..$number"
exit $failed
