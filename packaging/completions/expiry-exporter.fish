# SPDX-License-Identifier: LGPL-2.1-or-later
# fish completion of expiry-exporter(8), from the program's own --help.

# The options as NAME, a tab, WHAT.
function __expiry_exporter_options
    set -l program (commandline -opc)[1]
    $program --help 2>/dev/null |
        sed -n -E 's/^  (--[a-z]+)(, -[a-z])?( [A-Z]+)? +/\1\t/p'
end

complete -c expiry-exporter -f
complete -c expiry-exporter -n 'string match -q -- "-*" (commandline -ct)' -a '(__expiry_exporter_options)'
complete -c expiry-exporter -l socket -r -F
