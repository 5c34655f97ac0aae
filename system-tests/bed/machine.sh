#!/bin/bash
# machine.sh NAME BED LOWER UPPER NETWORK [FROM:TO...]
#
# Boots a machine with systemd as its first process, made of an overlay over the
# layers LOWER. Runs in the keeper's mount namespace. Says `ready PID` when the
# machine is up and waits until its standard input is closed: then the machine
# is killed and nothing of it stays.
#
# UPPER keeps what the machine writes, to be a layer of others; empty for a
# machine that nothing is kept of. NETWORK is `none` or `host`. FROM:TO are
# files that the machine sees of the host.
set -euo pipefail
export NAME=$1 BED=$2 LOWER=$3 UPPER=$4 NETWORK=$5
shift 5
export BINDS="$*" HOME_OF_MACHINE=$BED/machines/$NAME
mkdir "$HOME_OF_MACHINE" "$HOME_OF_MACHINE"/{root,own}
group=$BED/cgroup/$NAME
mkdir "$group"

# Becomes the first process of the machine.
init() {
    local root=$HOME_OF_MACHINE/root upper=${UPPER:-$HOME_OF_MACHINE/own}
    # The old /proc is still there and knows this process by its outer number.
    local outer
    read -r outer _ < /proc/self/stat
    mkdir -p "$upper"/{data,work}
    mount -t overlay overlay "$root" -o "lowerdir=$LOWER,upperdir=$upper/data,workdir=$upper/work"

    if [ ! -e "$root/etc/ccm-bed" ]; then
        # Nothing that the host has enabled starts here, and packages may start
        # their services as on any machine. What ccm keeps of the host's runs is
        # not the machine's.
        rm -rf "$root"/etc/systemd/system/* "$root/usr/sbin/policy-rc.d" "$root/var/lib/ccm"
        local unit
        for unit in systemd-{logind,timesyncd,networkd,resolved,udevd,update-utmp,modules-load}.service \
            systemd-journald-audit.socket getty.target apt-daily{,-upgrade}.timer; do
            ln -s /dev/null "$root/etc/systemd/system/$unit"
        done
        : > "$root/etc/fstab"
        : > "$root/etc/ccm-bed"
    fi
    rm -f "$root/etc/machine-id"
    tr -d - < /proc/sys/kernel/random/uuid > "$root/etc/machine-id"
    echo "$NAME" > "$root/etc/hostname"
    hostname "$NAME"
    printf '127.0.0.1 localhost\n127.0.0.1 %s\n' "$NAME" > "$root/etc/hosts"
    local resolver
    resolver=$(cat /etc/resolv.conf)
    rm -f "$root/etc/resolv.conf"
    echo "$resolver" > "$root/etc/resolv.conf"

    mount -t proc proc "$root/proc"
    mount --bind "$root/proc/sys" "$root/proc/sys"
    mount -o remount,bind,ro "$root/proc/sys"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    # Not those of the host: who changes the mode of such a file changes it for all.
    local device major minor
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
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    ln -s /proc/self/fd/0 "$root/dev/stdin"
    ln -s /proc/self/fd/1 "$root/dev/stdout"
    ln -s /proc/self/fd/2 "$root/dev/stderr"
    : > "$root/dev/console"
    mount --bind "$HOME_OF_MACHINE/console" "$root/dev/console"
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"

    local bind from to
    for bind in $BINDS; do
        from=${bind%%:*} to=$root${bind##*:}
        if [ -d "$from" ]; then
            mkdir -p "$to"
        else
            mkdir -p "$(dirname "$to")"
            : > "$to"
        fi
        mount --bind "$from" "$to"
    done

    mkdir "$root/old"
    cd "$root"
    pivot_root . old
    echo "$outer" > "/old$HOME_OF_MACHINE/pid"
    umount -l /old
    rmdir /old
    exec env -i container=ccm-bed PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        /lib/systemd/systemd --unit=multi-user.target --log-target=journal
}
export -f init

: > "$HOME_OF_MACHINE/console"
spaces=(--mount --propagation private --pid --cgroup --uts --ipc)
[ "$NETWORK" = host ] || spaces+=(--net)
# The cgroup has to be entered before its namespace is made.
bash -c 'echo $$ > "$0/cgroup.procs"; exec unshare "$@" --fork --kill-child bash -euc init' \
    "$group" "${spaces[@]}" < /dev/null > "$HOME_OF_MACHINE/log" 2>&1 &
launcher=$!

end() {
    # The launcher's end is that of the first process, and so of all.
    kill -KILL "$launcher" 2> /dev/null || true
    wait "$launcher" 2> /dev/null || true
    for _ in $(seq 250); do
        find "$group" -depth -type d -exec rmdir {} + 2> /dev/null || true
        [ -d "$group" ] || break
        sleep 0.02
    done
    rm -rf "$HOME_OF_MACHINE"
}
trap end EXIT

# One minute, for machines that have much else to do.
for _ in $(seq 1200); do
    kill -0 "$launcher" 2> /dev/null || break
    if [ -s "$HOME_OF_MACHINE/pid" ]; then
        pid=$(cat "$HOME_OF_MACHINE/pid")
        state=$(nsenter --target "$pid" --mount --uts --ipc --net --pid --cgroup --root \
            systemctl is-system-running --wait 2> /dev/null || true)
        case $state in running | degraded)
            echo "ready $pid"
            cat > /dev/null
            exit 0
            ;;
        esac
    fi
    sleep 0.05
done
echo "failed"
cat "$HOME_OF_MACHINE"/{log,console} >&2
exit 1
