# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion of expiry-exporter(8), from the program's own --help.

_expiry_exporter() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	COMPREPLY=()
	case $prev in
	--socket)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		;;
	--listen | --limit) ;;
	*)
		mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" --help 2>/dev/null |
			grep -o -e '^  --[a-z]*')" -- "$cur")
		;;
	esac
}

complete -F _expiry_exporter expiry-exporter
