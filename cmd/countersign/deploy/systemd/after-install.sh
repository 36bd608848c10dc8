#!/bin/sh
# The package does not start the service, because the service first needs a policy and tokens.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
