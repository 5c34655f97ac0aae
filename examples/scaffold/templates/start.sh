#!/bin/sh
exec server --config "$(dirname "$0")/server.conf"
