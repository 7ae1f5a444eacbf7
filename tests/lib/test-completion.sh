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
is 'bash: options of metrics' "$(printf -- "--http\n--limit")" "$(offers expiryctl metrics --h | grep -x -e --http; offers expiryctl metrics --l)"
is 'bash: not those of others' '' "$(offers expiryctl status --pe)"
is 'bash: clocks' monotonic "$(offers expiryctl --clock mo)"
is 'bash: files to load' packaging/completions/expiryctl.bash \
	"$(offers expiryctl load packaging/completions/expiryctl.b)"
is 'bash: sockets' packaging/completions/expiryctl.fish \
	"$(offers expiryctl --socket packaging/completions/expiryctl.f)"
is 'bash: nothing for a name' '' "$(offers expiryctl --queue '')"
is 'bash: deadlines' never "$(offers expiryctl arm ne)"

if command -v fish >/dev/null; then
	fish_offers() {
		fish --no-config -c "source packaging/completions/expiryctl.fish
			complete -C '$1'" | cut -f 1 | sort
	}
	is 'fish: every command' "$commands" "$(fish_offers 'expiryctl ')"
	is 'fish: after help, a command' drop "$(fish_offers 'expiryctl help dr')"
	is 'fish: options of a command' --period \
		"$(fish_offers 'expiryctl arm --pe')"
	is 'fish: clocks' "$(printf 'boottime\nmonotonic\nrealtime')" \
		"$(fish_offers 'expiryctl --clock ')"
fi
if command -v zsh >/dev/null; then
	# Completion itself wants a terminal; the helper that feeds it does not.
	zsh_lines() {
		zsh -f -c "words_0=expiryctl
			functions[f]=\"\$(sed -n '/^_expiryctl_lines/,/^}/p' \
				packaging/completions/expiryctl.zsh)\"
			f; _expiryctl_lines $1" | cut -d : -f 1 | sort
	}
	is 'zsh: reads' '' "$(zsh -f -n packaging/completions/expiryctl.zsh 2>&1)"
	is 'zsh: every command' "$commands" "$(zsh_lines Commands)"
	is 'zsh: an option with a short form' --queue \
		"$(zsh_lines Options | grep -x -e --queue)"
	is 'zsh: options of a command' "$(printf -- '--id\n--later\n--new\n--period')" \
		"$(zsh_lines 'Options arm')"
fi
echo "1..$number"
exit $failed
