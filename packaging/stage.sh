#!/bin/bash
# stage.sh BINARY PREFIX [ZSH]
#
# Lays out below PREFIX what belongs to an installed ccm: the binary, and the
# manual pages and completions that the binary prints. ZSH is where zsh looks,
# below PREFIX/share/zsh.
set -euo pipefail
umask 022
binary=$1 prefix=$2 zsh=${3:-site-functions}
share=$prefix/share

install -D -m 755 "$binary" "$prefix/bin/ccm"
mkdir -p "$share/man/man1" "$share/bash-completion/completions" \
    "$share/zsh/$zsh" "$share/fish/vendor_completions.d"
"$binary" man --dir "$share/man/man1"
gzip -9n "$share"/man/man1/*.1
"$binary" completion bash > "$share/bash-completion/completions/ccm"
"$binary" completion zsh > "$share/zsh/$zsh/_ccm"
"$binary" completion fish > "$share/fish/vendor_completions.d/ccm.fish"
chmod 644 "$share"/man/man1/*
