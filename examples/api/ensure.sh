#!/bin/sh
# Drives ccm from a shell: one request, one response.
#
#     sh ensure.sh /tmp/greeting
#
# The program ccm is found in PATH, or where the variable CCM says.
set -eu

path=$1

response=$(
    "${CCM:-ccm}" ensure api pipe <<EOF
protocol: io.choria.ccm.v1.resource.ensure.request
type: file
properties:
  name: $path
  content: |
    Hello from a shell
  owner: "{{ Facts.user.name }}"
  group: "{{ Facts.user.group }}"
  mode: "0644"
EOF
)

case $response in
*'"changed":true'*) echo "greeting: changed" ;;
*) echo "greeting: stable" ;;
esac
