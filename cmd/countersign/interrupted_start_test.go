package main

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"countersign/internal/testkit"
)

// TestInterruptedStart stops the bot while the bot waits for the database, or for Slack, during its start. The bot ends
// with exit code 0 and without an error.
func TestInterruptedStart(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	for name, setting := range map[string]string{
		"database": "COUNTERSIGN_STORE=postgres://bot:hush@ADDRESS/bot?sslmode=disable&connect_timeout=3600",
		"Slack":    "SLACK_API_URL=http://ADDRESS/api",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and does not answer
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			p := openProcessHarness(t)
			bot := launch(t, p.dir, append(p.env, strings.Replace(setting, "ADDRESS", silent.Addr().String(), 1)), "serve")
			conn, err := silent.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := bot.end(syscall.SIGTERM); err != nil {
				t.Errorf("the bot ended with %v", err)
			}
			if said := bot.text(); strings.Contains(said, "countersign: ") {
				t.Errorf("the bot reports an error:\n%s", said)
			}
		})
	}
}
