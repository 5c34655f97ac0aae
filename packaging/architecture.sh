#!/bin/bash
# architecture.sh BINARY deb|rpm
#
# Prints the architecture of a binary in the words of a package format.
set -euo pipefail
# The field e_machine in the header of an ELF file.
machine=$(od -A n -t u2 -j 18 -N 2 "$1")
case ${machine// /}:$2 in
    62:deb) echo amd64 ;;
    62:rpm) echo x86_64 ;;
    183:deb) echo arm64 ;;
    183:rpm) echo aarch64 ;;
    *)
        echo "architecture.sh: $1: no name of machine${machine} for $2" >&2
        exit 1
        ;;
esac
