#!/bin/bash
# stage.sh BINARY PREFIX [ZSH [UNITS]]
#
# Lays out below PREFIX what belongs to an installed ccm: the binary, the manual
# pages and completions that the binary prints, the agent's unit, documentation,
# examples, and the licenses of the libraries in the binary. ZSH is where zsh
# looks, below PREFIX/share/zsh; UNITS where systemd looks, below PREFIX.
#
# CCM_LICENSES names the file that `cargo xtask licenses FILE` writes; without
# it, this script calls that command. CCM_RUNS is a binary of the same version that
# runs here, if this one does not.
set -euo pipefail
umask 022
binary=$1 prefix=$2 zsh=${3:-site-functions} units=${4:-lib/systemd/system}
project=$(cd "$(dirname "$0")/.." && pwd)
runs=${CCM_RUNS:-$binary}
share=$prefix/share
doc=$share/doc/ccm

install -D -m 755 "$binary" "$prefix/bin/ccm"
mkdir -p "$share/man/man1" "$share/bash-completion/completions" \
    "$share/zsh/$zsh" "$share/fish/vendor_completions.d"
"$runs" man --dir "$share/man/man1"
gzip -9n "$share"/man/man1/*.1
"$runs" completion bash > "$share/bash-completion/completions/ccm"
"$runs" completion zsh > "$share/zsh/$zsh/_ccm"
"$runs" completion fish > "$share/fish/vendor_completions.d/ccm.fish"
chmod 644 "$share"/man/man1/*

# The unit starts the binary where this package puts it.
mkdir -p "$prefix/$units"
sed "s|^ExecStart=/usr/bin/ccm|ExecStart=${CCM_PREFIX:-/usr}/bin/ccm|" \
    "$project/packaging/ccm-agent.service" > "$prefix/$units/ccm-agent.service"

mkdir -p "$doc/docs/resources" "$doc/examples"
install -m 644 "$project"/docs/*.md "$doc/docs"
install -m 644 "$project"/docs/resources/*.md "$doc/docs/resources"
cp -r --no-preserve=all "$project"/examples/{agent,monitoring} "$doc/examples"

licenses=${CCM_LICENSES:-}
if [ -z "$licenses" ]; then
    licenses=$(mktemp)
    trap 'rm -f "$licenses"' EXIT
    (cd "$project" && cargo run --quiet --locked --package xtask -- licenses "$licenses")
fi
gzip -9nc "$licenses" > "$doc/LICENSES.third-party.gz"
