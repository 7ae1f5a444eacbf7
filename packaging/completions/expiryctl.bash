# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion of expiryctl(1), from the tool's own --help.

# The first column of the lines of --help's section $1, of the command $2 if any.
_expiryctl_column() {
	"${COMP_WORDS[0]}" ${2:+"$2"} --help 2>/dev/null |
		sed -n "/^$1/,/^\$/s/^  \([^ ].*\)\$/\1/p" |
		sed 's/  .*//'
}

# Names of queues that begin with $1, of the daemon that the line names.
_expiryctl_queues() {
	local name socket= i

	for ((i = 1; i < ${#words[@]} - 1; i++)); do
		[[ ${words[i]} != --socket ]] || socket=${words[i + 1]/#\~\//$HOME/}
	done
	while read -r name; do
		[[ $name != "$1"* ]] || COMPREPLY+=("$name")
	done < <("${words[0]}" ${socket:+--socket "$socket"} queues --names 2>/dev/null)
}

_expiryctl() {
	local cur prev i command=
	local -a words=()

	COMPREPLY=()
	# Readline splits --queue=NAME into three words.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == = ]] || words+=("${COMP_WORDS[i]}")
	done
	[[ ${COMP_WORDS[COMP_CWORD]} != = ]] || words+=('')
	cur=${words[-1]} prev=${words[-2]}
	case $prev in
	--clock)
		mapfile -t COMPREPLY < <(compgen -W 'realtime monotonic boottime' -- "$cur")
		return
		;;
	--socket | --device)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	-q | --queue)
		_expiryctl_queues "$cur"
		return
		;;
	--id | --period | --count | --limit | --in | --at)
		return
		;;
	esac
	for ((i = 1; i < ${#words[@]} - 1; i++)); do
		case ${words[i]} in
		-q | --queue | --socket | --device | --clock | --id | --period | --count | --limit | --in | --at)
			((i++))
			;;
		--)
			# The rest is the command line of another program.
			compopt -o default 2>/dev/null
			return
			;;
		-*) ;;
		*)
			command=${words[i]}
			break
			;;
		esac
	done
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$({
			_expiryctl_column Options
			[[ -z $command ]] || _expiryctl_column Options "$command"
		} | grep -o -e '--[a-z][a-z-]*' | sort -u)" -- "$cur")
	elif [[ -z $command || $command == help ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_expiryctl_column Commands |
			cut -d ' ' -f 1)" -- "$cur")
	elif [[ $command == top ]]; then
		_expiryctl_queues "$cur"
	elif [[ $command == journal && $prev == journal ]]; then
		mapfile -t COMPREPLY < <(compgen -W 'check dump export import' -- "$cur")
	elif [[ $command == journal ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
	elif [[ $command == load ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	elif [[ $command == arm || $command == refresh ]]; then
		mapfile -t COMPREPLY < <(compgen -W '+1s +1m +1h +1d never' -- "$cur")
	fi
}

complete -F _expiryctl expiryctl
