#!/bin/bash
# check-users.sh BINARY
#
# Checks that a static binary finds users and groups that only a module of glibc
# knows. Changes the machine, so run it where nothing stays:
#
#   packaging/overlay.sh libnss-extrausers -- packaging/check-users.sh BINARY
set -euo pipefail
mkdir -p /var/lib/extrausers
echo 'ann:x:7001:7002::/home/ann:/bin/sh' > /var/lib/extrausers/passwd
echo 'staff-of-ann:x:7002:' > /var/lib/extrausers/group
sed -i -E 's/^(passwd|group):.*/\1: files extrausers/' /etc/nsswitch.conf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CCM_STATE_DIR=$work/state
set -- "$1" ensure file "$work/owned" --content x --owner ann --group staff-of-ann --mode 0644
"$@"
[ "$(stat -c '%u:%g' "$work/owned")" = 7001:7002 ]
[ "$("$1" status file "$work/owned" | grep -c -E '^ *(owner: ann|group: staff-of-ann)$')" = 2 ]
"$@" --json | grep -q -E '"changed": ?false'
