#!/bin/bash
# image.sh BINARY CERTIFICATES DIRECTORY
#
# Makes DIRECTORY/ccm-VERSION-ARCHITECTURE.image.tar: a container image of a static
# binary, certificates and nothing else, which `podman load` and `docker load`
# take. Says the name of what was made. The same binary makes the same bytes where
# SOURCE_DATE_EPOCH is the same. CCM_RUNS as stage.sh says.
set -euo pipefail
umask 022
export LC_ALL=C.UTF-8
binary=$(realpath "$1") certificates=$(realpath "$2") directory=$3
project=$(cd "$(dirname "$0")/.." && pwd)
: "${SOURCE_DATE_EPOCH:=$(date +%s)}"
IFS=' (,)' read -r _ version commit _ < <("${CCM_RUNS:-$binary}" --version)
architecture=$("$project/packaging/architecture.sh" "$binary" deb)
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
blobs=$work/archive/blobs/sha256
mkdir -p "$blobs" "$work/root"/{etc/ssl/certs,tmp,root,var/lib/ccm}

# Everything in a directory, with the same times and owners on every machine.
archive() {
    (cd "$1" && tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --format=ustar \
        --owner=0 --group=0 --numeric-owner -- *)
}
# Moves a file to its digest, and prints that.
blob() {
    local digest
    digest=$(sha256sum "$1" | cut -d ' ' -f 1)
    mv "$1" "$blobs/$digest"
    echo "$digest"
}

install -D -m 755 "$binary" "$work/root/usr/bin/ccm"
install -m 644 "$certificates" "$work/root/etc/ssl/certs/ca-certificates.crt"
install -D -m 644 "$project/LICENSE" "$work/root/usr/share/doc/ccm/LICENSE"
gzip -9nc "$CCM_LICENSES" > "$work/root/usr/share/doc/ccm/LICENSES.third-party.gz"
echo 'root:x:0:0:root:/root:/usr/bin/ccm' > "$work/root/etc/passwd"
echo 'root:x:0:' > "$work/root/etc/group"
chmod 1777 "$work/root/tmp"
archive "$work/root" > "$work/layer.tar"
content=$(sha256sum "$work/layer.tar" | cut -d ' ' -f 1)
gzip -9n "$work/layer.tar"
size=$(stat -c %s "$work/layer.tar.gz")
layer=$(blob "$work/layer.tar.gz")

cat > "$work/config" <<JSON
{"created":"$created","architecture":"$architecture","os":"linux","config":{"Entrypoint":["/usr/bin/ccm"],"Env":["PATH=/usr/bin"],"WorkingDir":"/","Labels":{"org.opencontainers.image.title":"ccm","org.opencontainers.image.version":"$version","org.opencontainers.image.revision":"$commit","org.opencontainers.image.licenses":"Apache-2.0"}},"rootfs":{"type":"layers","diff_ids":["sha256:$content"]},"history":[{"created":"$created","created_by":"packaging/image.sh"}]}
JSON
config_size=$(stat -c %s "$work/config")
config=$(blob "$work/config")
cat > "$work/manifest" <<JSON
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:$config","size":$config_size},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:$layer","size":$size}]}
JSON
manifest_size=$(stat -c %s "$work/manifest")
manifest=$(blob "$work/manifest")

# For podman, and docker since version 25.
echo '{"imageLayoutVersion":"1.0.0"}' > "$work/archive/oci-layout"
cat > "$work/archive/index.json" <<JSON
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:$manifest","size":$manifest_size,"platform":{"architecture":"$architecture","os":"linux"},"annotations":{"io.containerd.image.name":"localhost/ccm:$version","org.opencontainers.image.ref.name":"$version"}}]}
JSON
# For older docker, with the same blobs.
cat > "$work/archive/manifest.json" <<JSON
[{"Config":"blobs/sha256/$config","RepoTags":["localhost/ccm:$version"],"Layers":["blobs/sha256/$layer"]}]
JSON
mkdir -p "$directory"
file=$directory/ccm-$version-$architecture.image.tar
archive "$work/archive" > "$file"
echo "$file"
