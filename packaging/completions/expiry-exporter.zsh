#compdef expiry-exporter
# SPDX-License-Identifier: LGPL-2.1-or-later
# zsh completion of expiry-exporter(8), from the program's own --help.

_expiry_exporter() {
	local -a lines

	case $words[CURRENT-1] in
	--socket) _files ;;
	--listen | --limit) ;;
	*)
		lines=("${(@f)$($words[1] --help 2>/dev/null |
			sed -n -E 's/^  (--[a-z]+)(, -[a-z])?( [A-Z]+)? +/\1:/p')}")
		_describe -o option lines
		;;
	esac
}

_expiry_exporter "$@"
