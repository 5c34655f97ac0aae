#!/bin/bash
# Runs in a machine that has the host's network: installs dnf, then makes a
# repository of rpm packages in /srv/repository/rpm, the only one that dnf knows.
#
#   ccm-app    1.0-1, 1.1-1, 2.0-1: a file, a configuration file, a service
#   ccm-epoch  1:1.0-1
#   ccm-many01 to ccm-many10  1.0-1: nothing
#   ccm-slow   1.0-1: takes four seconds to be installed, and as long as there is
#              a file /run/ccm-slow.hold
set -euo pipefail
repository=/srv/repository/rpm
mkdir -p "$repository"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

apt-get -q update
apt-get -q install -y --no-install-recommends dnf rpm createrepo-c
apt-get clean
# Debian's rpm would keep its database in the home directory.
mkdir -p /etc/rpm
echo '%_dbpath /var/lib/rpm' > /etc/rpm/macros.ccm
echo 9 > /etc/dnf/vars/releasever

# package NAME EPOCH VERSION RELEASE [LINE...]: builds what is in $work/tree.
package() {
    local name=$1 epoch=$2 version=$3 release=$4
    shift 4
    {
        printf 'Name: %s\nEpoch: %s\nVersion: %s\nRelease: %s\n' "$name" "$epoch" "$version" "$release"
        printf 'Summary: %s for tests\nLicense: Apache-2.0\nURL: https://example.org/%s\n' "$name" "$name"
        printf 'BuildArch: noarch\n%%description\nNothing that anybody would want to have.\n'
        printf '%%install\ncp -a %s/tree/. %%{buildroot}/\n' "$work"
        printf '%s\n' "$@"
    } > "$work/package.spec"
    rpmbuild -bb --quiet --define "_topdir $work/build" --define "_rpmdir $repository" \
        --define '_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.rpm' "$work/package.spec"
    rm -rf "$work/tree"
}

for version in 1.0 1.1 2.0; do
    mkdir -p "$work"/tree/{etc,usr/share/ccm-app,usr/lib/systemd/system}
    echo "$version-1" > "$work/tree/usr/share/ccm-app/version"
    echo "setting = $version-1" > "$work/tree/etc/ccm-app.conf"
    printf '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n' \
        > "$work/tree/usr/lib/systemd/system/ccm-app.service"
    package ccm-app 0 "$version" 1 %files /usr/share/ccm-app '%config(noreplace) /etc/ccm-app.conf' \
        /usr/lib/systemd/system/ccm-app.service
done
mkdir "$work/tree"
package ccm-epoch 1 1.0 1 %files
mkdir "$work/tree"
# Lua, as nothing provides a shell to rpm here.
package ccm-slow 0 1.0 1 '%post -p <lua>' \
    'os.execute("sleep 4; while [ -e /run/ccm-slow.hold ]; do sleep 0.1; done")' %files
for number in $(seq -w 10); do
    mkdir "$work/tree"
    package "ccm-many$number" 0 1.0 1 %files
done
createrepo_c -q "$repository"

rm -f /etc/yum.repos.d/*
mkdir -p /etc/yum.repos.d
cat > /etc/yum.repos.d/ccm.repo <<END
[ccm]
name=ccm
baseurl=file://$repository
gpgcheck=0
metadata_expire=0
END
dnf -q makecache
