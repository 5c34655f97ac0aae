#!/bin/sh
# Installs ccm from a release, without a compiler and without a package manager.
#
#   CCM_DOWNLOAD=https://downloads.example.net/ccm sh install.sh
#
# CCM_DOWNLOAD is the address of a directory with the files of a release:
# SHA256SUMS and the archives that it lists. `sh install.sh --help` shows the
# options.
set -eu

usage() {
    cat <<'END'
Usage: sh install.sh [OPTIONS]

Install ccm, its manual pages and its completions from a release.

Options:
  --from URL      Directory with the files of a release [env: CCM_DOWNLOAD]
  --prefix DIR    Install below this directory
                  [default: /usr/local as root, ~/.local for other users]
  --version V     Install this version, if the release lists more than one
  --uninstall     Remove what this script installed below the prefix
  -h, --help      Print help
END
}

say() { printf '%s\n' "$*"; }

fail() {
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# The name of this machine in the names of archives.
target() {
    system=$(uname -s)
    [ "$system" = Linux ] || fail "ccm runs on Linux, this is $system"
    machine=$(uname -m)
    case $machine in
        x86_64 | amd64) say x86_64-unknown-linux-musl ;;
        aarch64 | arm64) say aarch64-unknown-linux-musl ;;
        *) fail "there is no binary for $machine" "build ccm from source: see docs/install.md" ;;
    esac
}

# Downloads URL to a file. A proxy comes from the environment.
download() {
    if has curl; then
        # Plain HTTP is for tests and local mirrors; a redirect never leads there.
        curl --fail --silent --show-error --location --proto '=http,https' \
            --proto-redir '=https' --retry 2 --output "$2" "$1"
    elif has wget; then
        wget -q -O "$2" "$1"
    elif [ -x /usr/lib/apt/apt-helper ]; then
        # A minimal Debian has neither.
        /usr/lib/apt/apt-helper -q download-file "$1" "$2" >/dev/null
    else
        fail "curl or wget is needed to download $1" "install one of them"
    fi || fail "cannot download $1" "check the address, the network and the proxy"
}

sha256() {
    if has sha256sum; then
        sha256sum "$1"
    elif has shasum; then
        shasum -a 256 "$1"
    else
        fail "sha256sum is needed to verify the download" "install coreutils"
    fi | cut -d ' ' -f 1
}

# The line of SHA256SUMS with the archive for this machine.
choose() {
    case $version in
        *[!0-9A-Za-z.+-]*) fail "$version is not a version" ;;
    esac
    pattern=$(printf '%s' "$version" | sed 's/[.+]/\\&/g')
    lines=$(grep -E "^[0-9a-f]{64} [ *]ccm-${pattern:-[0-9][^ ]*}-$1\\.tar\\.gz\$" "$2" || true)
    [ -n "$lines" ] || fail "the release has no archive ${version:+of version $version }for $1"
    if [ "$(printf '%s\n' "$lines" | wc -l)" -gt 1 ]; then
        say "$lines" >&2
        fail "the release lists several versions" "choose one with --version"
    fi
    say "$lines"
}

# What a file at the place of the binary is.
version_of() { "$1" --version 2>/dev/null | head -n 1; }

# Copies one file to its place. It has its content and mode before it has its
# name, so nobody sees half of it.
place() {
    directory=$(dirname "$2")
    fresh=$(mktemp "$directory/.ccm-install.XXXXXX") ||
        fail "cannot write to $directory" "choose another --prefix, or run this as root"
    if cp "$1" "$fresh" && chmod "$3" "$fresh" && mv -f "$fresh" "$2"; then
        return
    fi
    rm -f "$fresh"
    fail "cannot write $2"
}

# Whether systemd runs, and this installation has the unit of the agent.
has_agent() {
    has systemctl && [ -d /run/systemd/system ] && grep -qx "lib/systemd/system/$unit" "$list"
}

# Removes what this script made: files, then the directories, which others may
# use by now.
remove_listed() {
    while IFS= read -r path; do
        case $path in
            /* | *..*) fail "$list is damaged: it lists $path" ;;
        esac
    done <"$list"
    while IFS= read -r path; do
        case $path in
            */) ;;
            *) rm -f "$prefix/$path" || fail "cannot remove $prefix/$path" ;;
        esac
    done <"$list"
    directories=$(grep '/$' "$list" | sort -r || true)
    rm -f "$list"
    printf '%s\n' "$directories" | while IFS= read -r path; do
        [ -z "$path" ] || rmdir "$prefix/$path" 2>/dev/null || true
    done
}

uninstall() {
    [ -f "$list" ] || fail "there is no installation of this script below $prefix" \
        "choose it with --prefix; remove packages with apt or dnf"
    agent=false
    ! has_agent || agent=true
    ! $agent || systemctl --quiet disable --now "$unit" || fail "cannot stop $unit"
    remove_listed
    ! $agent || systemctl daemon-reload
    say "Removed ccm from $prefix."
    say "Configuration in /etc/choria/ccm and state in /var/lib/ccm stay, if they exist."
}

install_release() {
    [ -n "$from" ] || fail "there is no address to download from" \
        "set CCM_DOWNLOAD to the directory of a release, or pass --from"
    from=${from%/}
    target=$(target)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    download "$from/SHA256SUMS" "$work/SHA256SUMS"
    line=$(choose "$target" "$work/SHA256SUMS")
    name=ccm-${line##*ccm-}
    say "Downloading $name"
    download "$from/$name" "$work/$name"
    found=$(sha256 "$work/$name")
    [ "$found" = "${line%% *}" ] || fail "checksum mismatch of $name, expected ${line%% *} got $found" \
        "the download is damaged or was changed; nothing was installed"
    tree=$work/${name%.tar.gz}
    tar -xzf "$work/$name" -C "$work" || fail "cannot extract $name"
    new=$(version_of "$tree/bin/ccm")
    [ -n "$new" ] || fail "the binary in $name does not run on this machine"
    binary=$prefix/bin/ccm
    if [ -e "$binary" ] || [ -L "$binary" ]; then
        old=$(version_of "$binary")
        case $old in
            "ccm "*) say "Replacing $old in $prefix/bin" ;;
            *) fail "$binary exists and is not ccm" "remove it, or choose another --prefix" ;;
        esac
    fi
    lay_out
    if has_agent; then
        systemctl daemon-reload
        systemctl --no-block try-restart "$unit"
    fi
    say "Installed $new in $prefix/bin"
    warn_about_path
}

# Copies everything to its place. The list of files and directories comes first:
# whatever happens then, an uninstallation finds all of it.
lay_out() {
    (cd "$tree" && find . -type f | sed 's|^\./||' | sort) >"$work/files"
    if [ "$prefix" != /usr/local ]; then
        # The unit starts the binary of /usr/local.
        grep -v '^lib/systemd/' "$work/files" >"$work/kept" || true
        mv "$work/kept" "$work/files"
    fi
    : >"$work/old"
    [ ! -f "$list" ] || cp "$list" "$work/old"
    # What only the version before had goes with the next uninstallation.
    new_directories >"$work/directories"
    sort -u "$work/old" "$work/files" "$work/directories" >"$work/list"
    mkdir -p "$prefix/share/ccm" ||
        fail "cannot create $prefix/share/ccm" "choose another --prefix, or run this as root"
    place "$work/list" "$list" 644
    while IFS= read -r path; do
        if [ "$path" != bin/ccm ] && [ -e "$prefix/$path" ] && ! grep -qxF "$path" "$work/old"; then
            say "Replacing $prefix/$path, which another program installed"
        fi
        mkdir -p "$(dirname "$prefix/$path")" || fail "cannot create the directory of $prefix/$path"
        mode=644
        [ "$path" != bin/ccm ] || mode=755
        place "$tree/$path" "$prefix/$path" "$mode"
    done <"$work/files"
}

# The directories that are missing, each with a slash at its end.
new_directories() {
    { cat "$work/files" && say share/ccm/installed-files; } | while IFS= read -r path; do
        while path=$(dirname "$path") && [ "$path" != . ]; do
            [ -d "$prefix/$path" ] || say "$path/"
        done
    done
}

warn_about_path() {
    case ":$PATH:" in
        *":$prefix/bin:"*) say "Next: ccm --help" ;;
        *)
            say "$prefix/bin is not in your PATH. Run this line, and add it to your profile:"
            say "  export PATH=\"$prefix/bin:\$PATH\""
            ;;
    esac
}

main() {
    from=${CCM_DOWNLOAD:-} prefix='' version='' action=install_release
    while [ $# -gt 0 ]; do
        case $1 in
            --from | --prefix | --version)
                [ $# -ge 2 ] || fail "$1 needs a value" "run: sh install.sh --help"
                case $1 in
                    --from) from=$2 ;;
                    --prefix) prefix=$2 ;;
                    --version) version=$2 ;;
                esac
                shift 2
                ;;
            --uninstall) action=uninstall && shift ;;
            -h | --help) usage && exit 0 ;;
            *) fail "unknown option $1" "run: sh install.sh --help" ;;
        esac
    done
    if [ -z "$prefix" ]; then
        if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
    fi
    case $prefix in
        /*) prefix=${prefix%/} ;;
        *) fail "--prefix must be an absolute path" ;;
    esac
    list=$prefix/share/ccm/installed-files
    unit=ccm-agent.service
    umask 022
    $action
}

# The last line: a script that was cut off while it was downloaded does nothing.
main "$@"
