#!/bin/bash
# scriptlets.sh deb DIRECTORY
# scriptlets.sh rpm
#
# What packages do beside placing files: systemd learns of the agent's unit, an
# upgrade restarts an agent that runs, a removal stops it. For dpkg, scripts in
# DIRECTORY; for rpm, sections of a spec file on standard output.
set -euo pipefail
umask 022

# An agent can be what upgrades or removes this package. It waits for its
# package manager, so the package manager must not wait for it.
reload='    systemctl daemon-reload'
restart='    systemctl --no-block try-restart ccm-agent.service'
disable='systemctl --quiet disable ccm-agent.service'
stop='    systemctl --no-block stop ccm-agent.service'
runs='[ -d /run/systemd/system ]'

case $1 in
deb)
    mkdir -p "$2"
    cat > "$2/postinst" <<END
#!/bin/sh
set -e
if [ "\$1" = configure ] && $runs; then
$reload
    if [ -n "\$2" ]; then
    $restart
    fi
fi
END
    cat > "$2/prerm" <<END
#!/bin/sh
set -e
if [ "\$1" = remove ] && command -v systemctl > /dev/null; then
    $disable
    if $runs; then
    $stop
    fi
fi
END
    cat > "$2/postrm" <<END
#!/bin/sh
set -e
if [ "\$1" = remove ] && $runs; then
$reload
fi
END
    chmod 755 "$2"/{postinst,prerm,postrm}
    ;;
rpm)
    cat <<END
%post
if $runs; then
$reload
    if [ "\$1" -gt 1 ]; then
    $restart
    fi
fi
exit 0

%preun
if [ "\$1" -eq 0 ] && command -v systemctl > /dev/null; then
    $disable
    if $runs; then
    $stop
    fi
fi
exit 0

%postun
if $runs; then
$reload
fi
exit 0
END
    ;;
*)
    echo "usage: scriptlets.sh deb DIRECTORY | rpm" >&2
    exit 2
    ;;
esac
