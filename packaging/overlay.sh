#!/bin/bash
# overlay.sh [PACKAGE...] -- COMMAND...
#
# Runs a command where some Debian packages are installed in addition, without
# installing them: on a machine in memory whose files are an overlay over the
# real ones, with devices and processes of its own. Only what the command writes
# below the current directory and below CARGO_TARGET_DIR stays. Needs root, the
# network and `unshare`.
#
#   packaging/overlay.sh musl-tools -- cargo xtask dist
set -euo pipefail

# The first stage makes the namespaces. The second one knows by an argument that
# it is the second: variables are inherited from who knows where.
if [ "${1:-}" != --inside ]; then
    place=$(mktemp -d)
    trap 'rmdir "$place"' EXIT
    unshare --mount --pid --fork --kill-child --uts --ipc --propagation private \
        bash "$0" --inside "$place" "$(readlink /proc/self/ns/mnt)" "$@"
    exit
fi
place=$2
if [ "$(readlink /proc/self/ns/mnt)" = "$3" ]; then
    echo "overlay.sh: this is not a mount namespace of its own" >&2
    exit 2
fi
shift 3

packages=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    packages+=("$1")
    shift
done
if [ $# -lt 2 ]; then
    echo "usage: overlay.sh [PACKAGE...] -- COMMAND..." >&2
    exit 2
fi
shift

root=$place/root
mount -t tmpfs -o mode=700 overlay "$place"
mkdir "$place"/{upper,work,root}
mount -t overlay overlay "$root" \
    -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work"

mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"

# Devices are made anew. The kernel has one /dev for the whole machine: what is
# removed or changed in another mount of it is gone for everybody.
mount -t tmpfs -o mode=755,nosuid dev "$root/dev"
while read -r device major minor; do
    mknod -m 666 "$root/dev/$device" c "$major" "$minor"
done <<'LIST'
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
LIST
mkdir "$root"/dev/{pts,shm}
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"
ln -s fd/1 "$root/dev/stdout"
ln -s fd/2 "$root/dev/stderr"

# Sockets of the machine's services are in /run, perhaps its resolver too.
resolver=$(cat /etc/resolv.conf)
mount -t tmpfs -o mode=755 run "$root/run"
rm -f "$root/etc/resolv.conf"
echo "$resolver" > "$root/etc/resolv.conf"

# No package starts a service.
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"

directory=$PWD
for kept in "$directory" "${CARGO_TARGET_DIR:-}"; do
    [ -n "$kept" ] || continue
    mkdir -p "$kept" "$root$kept"
    mount --bind "$kept" "$root$kept"
done

cd "$root"
mkdir -p .old
pivot_root . .old
umount -l /.old
rmdir /.old
if [ "${#packages[@]}" -gt 0 ]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q update > /dev/null
    apt-get -q install -y --no-install-recommends "${packages[@]}" > /dev/null
    unset DEBIAN_FRONTEND
fi
cd "$directory"
exec "$@"
