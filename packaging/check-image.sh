#!/bin/bash
# check-image.sh IMAGE
#
# Checks that podman loads a container image of ccm, and that ccm works in it.
# Mounts and writes below /etc, so run it where nothing stays:
#
#   packaging/overlay.sh podman crun -- packaging/check-image.sh IMAGE
set -euo pipefail
mount -t cgroup2 cgroup2 /sys/fs/cgroup
# The settings of the kernel are read-only here.
printf '[containers]\ndefault_sysctls = []\n' > /etc/containers/containers.conf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
on_podman() {
    podman --root "$work/storage" --runroot "$work/run" --storage-driver vfs \
        --cgroup-manager cgroupfs --events-backend file "$@"
}
loaded=$(on_podman load --quiet --input "$1")
image=${loaded##* }
ccm() {
    on_podman run --rm --network none --cgroups disabled --volume "$work/site:/work" \
        --workdir /work "$image" "$@"
}
mkdir "$work/site"
echo 'ccm: {resources: [{file: [{/work/made: {content: x, owner: root, group: root, mode: "0600"}}]}]}' \
    > "$work/site/site.yaml"
ccm --version
ccm validate site.yaml
ccm apply site.yaml
[ "$(cat "$work/site/made")" = x ]
ccm apply site.yaml | grep -q '1 stable'
