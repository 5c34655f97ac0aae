#!/bin/sh
# The C compiler for static binaries: zig, which brings the headers of musl for
# every architecture. CCM_ZIG is the program, and cargo sets TARGET.
for argument; do
    shift
    case $argument in
        # zig has its own names for targets.
        --target=*) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "$CCM_ZIG" cc -target "${TARGET%%-*}-linux-musl" -fno-sanitize=undefined "$@"
