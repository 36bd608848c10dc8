package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/internal/tracing"
)

// heads checks the places to which the bot copies the signed heads of the history.
func (d *Doctor) heads(ctx context.Context, to config.Audit) {
	if to.Heads == "" && to.Syslog.Network == "" {
		return
	}
	d.begin("Signed heads")
	if to.Heads != "" {
		if err := appendable(to.Heads); err != nil {
			d.fail(cli.ExitUsage, fmt.Sprintf("%s can't be written: %v", to.Heads, err), "let the bot's user write there, or name another file with COUNTERSIGN_AUDIT_HEADS")
		} else {
			d.ok("%s can be written", to.Heads)
		}
	}
	if to.Syslog.Network == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	server := &audit.Syslog{Network: to.Syslog.Network, Address: to.Syslog.Address}
	switch err := server.Reach(ctx); {
	case err != nil:
		d.fail(cli.ExitFailed, fmt.Sprintf("%s can't be reached: %v", server, err), "see whether it works, or correct COUNTERSIGN_AUDIT_SYSLOG")
	case to.Syslog.Network == "udp":
		d.ok("heads are sent to %s; over UDP, nobody can see whether they arrive", server)
	default:
		d.ok("%s can be reached", server)
	}
}

// appendable reports whether text can be appended to a file. The file may be missing.
func appendable(path string) error {
	if missing(path) {
		return writable(filepath.Dir(path))
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// traces checks the variables of traces, and whether their receiver accepts a message.
func (d *Doctor) traces(ctx context.Context, env config.Env) {
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	address, err := tracing.Probe(ctx, os.Getenv, env.TraceHeaders.Reveal())
	if err == nil && address == "" {
		return
	}
	d.begin("Traces")
	switch {
	case errors.Is(err, tracing.ErrVariable):
		d.fail(cli.ExitUsage, err.Error(), "docs/traces.md lists the variables")
	case err != nil:
		d.warn(fmt.Sprintf("%s does not accept traces: %v", address, err), "see whether it works, or correct the OTEL_ variables; the bot works without it")
	default:
		d.ok("%s accepts traces", address)
	}
}
