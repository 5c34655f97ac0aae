#!/bin/sh
# Makes libraries of what cc.sh compiles.
exec "$CCM_ZIG" ar "$@"
