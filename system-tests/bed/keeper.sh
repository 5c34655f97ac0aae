#!/bin/bash
# keeper.sh DIRECTORY
#
# Holds the mount namespace that all machines of a test run live in. Runs in a
# private mount namespace, mounts a tmpfs over DIRECTORY, says `ready` and waits
# until its standard input is closed: then the tests have ended, however they
# did. Everything that was mounted vanishes with the namespace; the directory
# below is empty and removed.
#
# Says `impossible REASON` where such machines cannot be made.
set -uo pipefail
directory=$1

impossible() { echo "impossible $*"; exit 0; }

mount -t tmpfs -o mode=755 ccm-bed "$directory" || impossible "nothing can be mounted"
trap 'umount -l "$directory"; rmdir "$directory"' EXIT
mkdir -p "$directory"/{machines,layers,cgroup,probe/{lower,work,upper,root}}

mount -t cgroup2 cgroup2 "$directory/cgroup" || impossible "cgroup version 2 is missing"
lower=$directory/probe/lower
mount -t overlay overlay "$directory/probe/root" \
    -o "lowerdir=$lower:/,upperdir=$directory/probe/upper,workdir=$directory/probe/work" ||
    impossible "the root file system cannot be overlaid"
umount "$directory/probe/root"
unshare --mount --pid --cgroup --uts --ipc --net --fork true || impossible "namespaces are missing"

echo ready
cat > /dev/null

# The machines end by themselves now, and need what is mounted here for that.
for _ in $(seq 300); do
    [ -n "$(ls "$directory/machines")" ] || break
    sleep 0.05
done
