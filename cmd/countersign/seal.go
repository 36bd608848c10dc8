package main

import (
	"context"
	"log/slog"
	"time"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/auditcmd"
	"countersign/config"
	"countersign/store"
)

// sealing configures the sealer. The zero value means no sealing.
type sealing struct {
	keys    []approvers.SealKey // the first key signs the heads
	trusted []string            // the public keys of the key file
	places  []audit.HeadTarget  // destinations of the heads
}

// openSealing reads or creates the key, and determines the destinations of the signed heads.
func openSealing(ctx context.Context, a config.Audit, s store.Store, log *slog.Logger) (out sealing, err error) {
	if out.keys, err = audit.OpenKeyFile(ctx, a.Key, s, log); err != nil {
		return out, auditcmd.KeyError(err)
	}
	file, err := audit.ReadKeyFile(a.Key)
	if err != nil {
		return out, auditcmd.KeyError(err)
	}
	out.trusted = file.Public
	if a.Heads != "" {
		out.places = append(out.places, audit.HeadFile(a.Heads))
	}
	if a.Syslog.Network != "" {
		out.places = append(out.places, &audit.Syslog{Network: a.Syslog.Network, Address: a.Syslog.Address, Now: time.Now})
	}
	return out, nil
}

// sealProbes returns the sealer's probes for /readyz.
func sealProbes(s *audit.Sealer) []probe {
	if s == nil {
		return nil
	}
	return []probe{
		{name: "seal", ready: s.Ready, notice: true},
		{name: "heads", ready: s.HeadsShipped, notice: true},
	}
}
