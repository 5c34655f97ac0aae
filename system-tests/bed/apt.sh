#!/bin/bash
# Runs in a machine: a repository of Debian packages in /srv/repository/apt, the
# only one that apt knows there.
#
#   ccm-app      1.0-1, 1.1-1, 2.0-1: a file, a configuration file, a service
#   ccm-broken   1.0-1: cannot be configured while /etc/ccm-broken.fail exists
#   ccm-slow     1.0-1: takes four seconds to be configured, and as long as there
#                is a file /run/ccm-slow.hold
#   ccm-plus+    1.0-1: has a name that ends like an order to apt
#   ccm-user     1.0-1: makes the user ccm-tester
#   ccm-many01 to ccm-many30  1.0-1: a file
#   ccm-gone     1.0-1: listed, but its file is not there
set -euo pipefail
repository=/srv/repository/apt
mkdir -p "$repository"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# deb NAME VERSION: builds what is in $work/NAME-VERSION.
deb() {
    local tree=$work/$1-$2 file=$repository/$1_$2_all.deb
    mkdir -p "$tree/DEBIAN"
    cat > "$tree/DEBIAN/control" <<END
Package: $1
Version: $2
Architecture: all
Maintainer: ccm <ccm@example.org>
Homepage: https://example.org/$1
Description: $1 for tests
 Nothing that anybody would want to have.
END
    dpkg-deb --root-owner-group --build "$tree" "$file" > /dev/null
    {
        dpkg-deb --field "$file"
        printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' \
            "${file##*/}" "$(stat -c %s "$file")" "$(sha256sum "$file" | cut -d' ' -f1)"
    } >> "$repository/Packages"
}

for version in 1.0-1 1.1-1 2.0-1; do
    tree=$work/ccm-app-$version
    mkdir -p "$tree"/{DEBIAN,etc,usr/share/ccm-app,usr/lib/systemd/system}
    echo "$version" > "$tree/usr/share/ccm-app/version"
    echo "setting = $version" > "$tree/etc/ccm-app.conf"
    echo /etc/ccm-app.conf > "$tree/DEBIAN/conffiles"
    cat > "$tree/usr/lib/systemd/system/ccm-app.service" <<END
[Unit]
Description=ccm-app $version
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
END
    deb ccm-app "$version"
done

mkdir -p "$work"/ccm-{broken,slow}-1.0-1/DEBIAN
printf '#!/bin/sh\ntest ! -e /etc/ccm-broken.fail\n' > "$work/ccm-broken-1.0-1/DEBIAN/postinst"
printf '#!/bin/sh\nsleep 4\nwhile [ -e /run/ccm-slow.hold ]; do sleep 0.1; done\n' \
    > "$work/ccm-slow-1.0-1/DEBIAN/postinst"
chmod 755 "$work"/ccm-{broken,slow}-1.0-1/DEBIAN/postinst
deb ccm-broken 1.0-1
deb ccm-slow 1.0-1
deb ccm-plus+ 1.0-1
mkdir -p "$work/ccm-user-1.0-1/DEBIAN"
printf '#!/bin/sh\nid ccm-tester > /dev/null 2>&1 || useradd --system ccm-tester\n' \
    > "$work/ccm-user-1.0-1/DEBIAN/postinst"
chmod 755 "$work/ccm-user-1.0-1/DEBIAN/postinst"
deb ccm-user 1.0-1
for number in $(seq -w 30); do
    tree=$work/ccm-many$number-1.0-1
    mkdir -p "$tree"/{DEBIAN,usr/share/ccm-many}
    echo "$number" > "$tree/usr/share/ccm-many/$number"
    deb "ccm-many$number" 1.0-1
done
deb ccm-gone 1.0-1
rm "$repository"/ccm-gone_*

rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
echo "deb [trusted=yes] file:$repository ./" > /etc/apt/sources.list.d/ccm.list
apt-get update
