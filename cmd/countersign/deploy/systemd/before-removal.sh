#!/bin/sh
# The removal of the package stops the service. The first argument is "remove" from dpkg or 0 from rpm. During an
# update, it is "upgrade" or 1, and the bot continues to run until the operator restarts it.
if [ -d /run/systemd/system ]; then
  case "$1" in remove | 0) systemctl disable --now countersign || true ;; esac
fi
