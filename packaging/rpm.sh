#!/bin/bash
# rpm.sh BINARY DIRECTORY [PAYLOAD]
#
# Makes DIRECTORY/ccm-VERSION-1.ARCHITECTURE.rpm of a binary, with the content of
# the Debian package. PAYLOAD is how rpm compresses, w6.xzdio unless given. Says the
# name of what was made. The same binary makes the same bytes where
# SOURCE_DATE_EPOCH and RPM_PACKAGER are the same. Needs rpmbuild;
# CCM_LICENSES and CCM_RUNS as stage.sh says.
set -euo pipefail
umask 022
export LC_ALL=C.UTF-8
binary=$(realpath "$1") directory=$2 payload=${3:-w6.xzdio}
project=$(cd "$(dirname "$0")/.." && pwd)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date +%s)}

IFS=' (,)' read -r _ upstream commit _ < <("${CCM_RUNS:-$binary}" --version)
version=${upstream/-/\~} # What comes before a release is less than it.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
"$project/packaging/stage.sh" "$binary" "$tree/usr" site-functions
doc=$tree/usr/share/doc/ccm
install -m 644 "$project/CHANGELOG.md" "$doc/CHANGELOG.md"
install -D -m 644 "$project/LICENSE" "$tree/usr/share/licenses/ccm/LICENSE"
mv "$doc/LICENSES.third-party.gz" "$tree/usr/share/licenses/ccm"

{
    # The tree is complete: nothing is compiled, stripped or compressed again,
    # and what the binary is linked to, rpm finds out.
    cat <<SPEC
%global __os_install_post %{nil}
%global debug_package %{nil}
%global _build_id_links none
%global _binary_payload $payload
%global _buildhost ccm
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
Name: ccm
Version: $version
Release: 1
Summary: Configuration management in one binary
License: Apache-2.0
${RPM_PACKAGER:+Packager: $RPM_PACKAGER
}Requires(post): /bin/sh
Requires(preun): /bin/sh
%description
ccm configures Linux machines from a manifest. You describe files, commands,
packages, services, archives and template directories. ccm changes only what
differs, verifies each change and reports it. Made from commit $commit.

%install
cp -a $tree/. %{buildroot}/

SPEC
    "$project/packaging/scriptlets.sh" rpm
    printf '\n%%files\n%%defattr(-, root, root, -)\n'
    (
        cd "$tree"
        find usr/share/doc/ccm usr/share/licenses/ccm -type d -printf '%%dir /%p\n'
        # Those that no other package need have are ours too, and go when empty.
        find usr/share/{licenses,bash-completion,fish,zsh} -maxdepth 1 -type d ! -name ccm -printf '%%dir /%p\n'
        find usr/share/doc -type f -printf '%%doc /%p\n'
        find usr/share/licenses -type f -printf '%%license /%p\n'
        find usr -path usr/share/doc -prune -o -path usr/share/licenses -prune -o -type f -printf '/%p\n'
    ) | LC_ALL=C sort
} > "$work/ccm.spec"
find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$directory"
directory=$(realpath "$directory")
rpmbuild -bb --quiet --target "$("$project/packaging/architecture.sh" "$binary" rpm)" --define "_topdir $work/build" --define "_rpmdir $work/made" \
    --define '_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' "$work/ccm.spec" >&2
for file in "$work"/made/*.rpm; do
    mv "$file" "$directory/"
    echo "$directory/${file##*/}"
done
