#compdef expiryctl
# SPDX-License-Identifier: LGPL-2.1-or-later
# zsh completion of expiryctl(1), from the tool's own --help.

# The lines of --help's section $1 as NAME:WHAT, of the command $2 if any.
_expiryctl_lines() {
	$words_0 ${2:+$2} --help 2>/dev/null |
		sed -n "/^$1/,/^\$/s/^  \([^ ].*\)\$/\1/p" |
		sed -E 's/^([^ ,]+)(, --?[a-z]+)?( [A-Z]+)? +/\1:/'
}

# The queues of the daemon that the line names.
_expiryctl_queues() {
	local socket= i

	for ((i = 2; i < CURRENT; i++)); do
		case $words[i] in
		--socket) socket=$words[i+1] ;;
		--socket=*) socket=${words[i]#*=} ;;
		esac
	done
	$words_0 ${socket:+--socket} ${socket:+${socket/#\~\//$HOME/}} queues --names 2>/dev/null
}

_expiryctl() {
	local words_0=$words[1] command= i
	local -a lines

	case $words[CURRENT-1] in
	--clock)
		compadd realtime monotonic boottime
		return
		;;
	--socket | --device)
		_files
		return
		;;
	-q | --queue)
		compadd -- $(_expiryctl_queues)
		return
		;;
	--id | --period | --count | --limit | --in | --at)
		return
		;;
	esac
	if [[ $words[CURRENT] == --queue=* ]]; then
		compset -P '*='
		compadd -- $(_expiryctl_queues)
		return
	fi
	for ((i = 2; i < CURRENT; i++)); do
		case $words[i] in
		-q | --queue | --socket | --device | --clock | --id | --period | --count | --limit | --in | --at)
			((i++))
			;;
		--)
			_normal
			return
			;;
		-*) ;;
		*)
			command=$words[i]
			break
			;;
		esac
	done
	if [[ $words[CURRENT] == -* ]]; then
		lines=("${(@f)$(_expiryctl_lines Options)}")
		[[ -z $command ]] ||
			lines+=("${(@f)$(_expiryctl_lines Options $command)}")
		_describe -o option lines
	elif [[ -z $command || $command == help ]]; then
		lines=("${(@f)$(_expiryctl_lines Commands)}")
		_describe command lines
	elif [[ $command == top ]]; then
		compadd -- $(_expiryctl_queues)
	elif [[ $command == journal && $words[CURRENT-1] == journal ]]; then
		compadd check dump export import
	elif [[ $command == journal ]]; then
		_files -/
	elif [[ $command == load ]]; then
		_files
	elif [[ $command == arm || $command == refresh ]]; then
		compadd -- +1s +1m +1h +1d never
	fi
}

_expiryctl "$@"
