# SPDX-License-Identifier: LGPL-2.1-or-later
# fish completion of expiryctl(1), from the tool's own --help.

# Prints the command on the line, if any.
function __expiryctl_command
    set -l words (commandline -opc)
    set -l skip 0
    for word in $words[2..-1]
        if test $skip = 1
            set skip 0
            continue
        end
        switch $word
            case -q --queue --socket --device --clock --id --period --count --limit --in --at
                set skip 1
            case '-*'
            case '*'
                echo $word
                return 0
        end
    end
    return 1
end

# The lines of --help's section $argv[1] as NAME, a tab, WHAT; of the command
# $argv[2] if any.
function __expiryctl_lines
    set -l program (commandline -opc)[1]
    $program $argv[2..-1] --help 2>/dev/null |
        sed -n "/^$argv[1]/,/^\$/s/^  \([^ ].*\)\$/\1/p" |
        sed -E 's/^([^ ,]+)(, --?[a-z]+)?( [A-Z]+)? +/\1\t/'
end

# The queues of the daemon that the line names.
function __expiryctl_queues
    set -l words (commandline -opc)
    set -l socket
    for i in (seq 2 (count $words))
        switch $words[$i]
            case --socket
                set socket --socket $words[(math $i + 1)]
            case '--socket=*'
                set socket $words[$i]
        end
    end
    $words[1] (string replace -r '^~/' $HOME/ -- $socket) queues --names 2>/dev/null
end

complete -c expiryctl -f
complete -c expiryctl -n 'not __expiryctl_command >/dev/null' -a '(__expiryctl_lines Commands)'
complete -c expiryctl -n 'contains -- help (__expiryctl_command)' -a '(__expiryctl_lines Commands)'
complete -c expiryctl -n 'string match -q -- "-*" (commandline -ct)' -a '(__expiryctl_lines Options; __expiryctl_lines Options (__expiryctl_command))'
complete -c expiryctl -s q -l queue -x -a '(__expiryctl_queues)'
complete -c expiryctl -n 'contains -- top (__expiryctl_command)' -a '(__expiryctl_queues)'
complete -c expiryctl -l clock -x -a 'realtime monotonic boottime'
complete -c expiryctl -l socket -r -F
complete -c expiryctl -l device -r -F
complete -c expiryctl -n 'contains -- journal (__expiryctl_command)' -a 'check dump export import (__fish_complete_directories)'
complete -c expiryctl -n 'contains -- load (__expiryctl_command)' -F
complete -c expiryctl -n 'contains -- (__expiryctl_command) arm refresh' -a '+1s +1m +1h +1d never'
