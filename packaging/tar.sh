#!/bin/bash
# tar.sh BINARY TARGET DIRECTORY
#
# Makes DIRECTORY/ccm-VERSION-TARGET.tar.gz, to be unpacked over a prefix such as
# /usr/local. Says the name of what was made. The same binary makes the same bytes
# where SOURCE_DATE_EPOCH is the same. CCM_LICENSES and CCM_RUNS as stage.sh says.
set -euo pipefail
umask 022
binary=$(realpath "$1") target=$2 directory=$3
project=$(cd "$(dirname "$0")/.." && pwd)
: "${SOURCE_DATE_EPOCH:=$(date +%s)}"
read -r _ version _ < <("${CCM_RUNS:-$binary}" --version)
name=ccm-$version-$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

CCM_PREFIX=/usr/local "$project/packaging/stage.sh" "$binary" "$work/$name"
for file in LICENSE README.md CHANGELOG.md; do
    install -D -m 644 "$project/$file" "$work/$name/share/doc/ccm/$file"
done
mkdir -p "$directory"
tar --create --directory "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --format=ustar \
    --owner=0 --group=0 --numeric-owner "$name" | gzip -9n > "$directory/$name.tar.gz"
echo "$directory/$name.tar.gz"
