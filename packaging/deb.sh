#!/bin/bash
# deb.sh BINARY DIRECTORY [OPTION...]
#
# Makes DIRECTORY/ccm_VERSION_ARCHITECTURE.deb of a binary, with options for
# `dpkg-deb` (such as -Znone). Says the name of what was made. The same binary
# makes the same bytes where SOURCE_DATE_EPOCH, DEBFULLNAME and DEBEMAIL are the
# same. Needs dpkg and readelf; CCM_LICENSES and CCM_RUNS as stage.sh says.
set -euo pipefail
umask 022
export LC_ALL=C.UTF-8
binary=$(realpath "$1") directory=$2
shift 2
project=$(cd "$(dirname "$0")/.." && pwd)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date +%s)}
# How many threads compress shows in the result.
export DPKG_DEB_THREADS_MAX=1

IFS=' (,)' read -r _ upstream commit _ < <("${CCM_RUNS:-$binary}" --version)
version=${upstream/-/\~}-1 # What comes before a release is less than it.
architecture=$("$project/packaging/architecture.sh" "$binary" deb)
maintainer="${DEBFULLNAME:-ccm} <${DEBEMAIL:-ccm@example.org}>"

# What the binary is linked to, as packages.
depends() {
    local needed libraries='' glibc
    needed=$(readelf --dynamic --wide "$binary" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    for library in $needed; do
        case $library in
        libc.so.6 | libm.so.6 | ld-linux-*.so.*) libraries+=$'libc6\n' ;;
        libgcc_s.so.1) libraries+=$'libgcc-s1\n' ;;
        *)
            echo "deb.sh: the package that $library is in is not known" >&2
            return 1
            ;;
        esac
    done
    glibc=$(readelf --dyn-syms --wide "$binary" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1 || true)
    sort -u <<< "$libraries" | sed -e '/^$/d' -e "s/^libc6$/libc6 (>= ${glibc#GLIBC_})/" | paste -sd, |
        sed 's/,/, /g'
}

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"
"$project/packaging/stage.sh" "$binary" "$tree/usr" vendor-completions
"$project/packaging/scriptlets.sh" deb "$tree/DEBIAN"
doc=$tree/usr/share/doc/ccm
install -m 644 "$project/packaging/copyright" "$doc/copyright"
install -D -m 644 "$project/packaging/lintian-overrides" "$tree/usr/share/lintian/overrides/ccm"
gzip -9nc "$project/CHANGELOG.md" > "$doc/changelog.gz"
gzip -9n > "$doc/changelog.Debian.gz" <<CHANGES
ccm ($version) unstable; urgency=medium

  * Made from ccm $upstream, commit $commit.

 -- $maintainer  $(date -uR -d "@$SOURCE_DATE_EPOCH")
CHANGES

(
    cd "$tree"
    find usr -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums
)
# In KiB: files by their size, all else counted as one.
size=$(find "$tree/usr" \( -type f -printf '%s\n' \) -o -printf '1\n' |
    awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
depends=$(depends)
cat > "$tree/DEBIAN/control" <<CONTROL
Package: ccm
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $size
${depends:+Depends: $depends
}Section: admin
Priority: optional
Description: configuration management in one binary
 ccm brings a machine to the state that a person has written down. Files,
 commands, packages, services, archives and rendered directories are described
 in a manifest or at the shell. ccm compares, changes only what differs,
 verifies the result and reports it.
CONTROL

find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$directory"
file=$directory/ccm_${version}_$architecture.deb
dpkg-deb --root-owner-group "$@" --build "$tree" "$file" > /dev/null
echo "$file"
