#!/bin/bash
# overlay.sh PACKAGE... -- COMMAND...
#
# Runs a command where some Debian packages are installed in addition, without
# installing them: in a mount namespace whose root is an overlay in memory over
# the real one. Only what the command writes below the current directory and
# below CARGO_TARGET_DIR stays. Needs root, the network and `unshare`.
#
#   packaging/overlay.sh musl-tools -- cargo xtask dist
set -euo pipefail

if [ -z "${CCM_OVERLAY:-}" ]; then
    CCM_OVERLAY=$(mktemp -d)
    export CCM_OVERLAY
    trap 'rmdir "$CCM_OVERLAY"' EXIT
    unshare --mount --propagation private bash "$0" "$@"
    exit
fi

packages=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    packages+=("$1")
    shift
done
if [ "${#packages[@]}" -eq 0 ] || [ $# -lt 2 ]; then
    echo "usage: overlay.sh PACKAGE... -- COMMAND..." >&2
    exit 2
fi
shift

root=$CCM_OVERLAY/root
mount -t tmpfs overlay "$CCM_OVERLAY"
mkdir "$CCM_OVERLAY"/{upper,work,root}
mount -t overlay overlay "$root" \
    -o "lowerdir=/,upperdir=$CCM_OVERLAY/upper,workdir=$CCM_OVERLAY/work"
for kept in /proc /sys /dev "$PWD" "${CARGO_TARGET_DIR:-}"; do
    [ -n "$kept" ] || continue
    mkdir -p "$kept" "$root$kept"
    mount --rbind "$kept" "$root$kept"
done
chroot "$root" bash -euc '
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update
    apt-get -q install -y --no-install-recommends "$@"
' bash "${packages[@]}" > /dev/null
unset CCM_OVERLAY
exec chroot "$root" env -C "$PWD" "$@"
