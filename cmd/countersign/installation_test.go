//go:build linux

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"countersign/cmd/countersign/cli"
	"countersign/internal/demo/workspace"
	"countersign/internal/testkit"
)

// A bot of another workspace, and a bot of another app, do not start on a store. An app that has replaced the store's
// app in the same workspace starts with --replaces-app, and the earlier app does not start any more. A bot whose
// signing key is lost does not start either, until the operator has written the lost public key into the key file.
func TestStoreOfAnotherInstallation(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	m := newMoving(t)
	m.ok(m.bot.end(syscall.SIGTERM))
	env := m.env
	in := func(change func(*workspace.Seed)) {
		m.env = append(env[:len(env):len(env)], "SLACK_API_URL="+openWorkspace(t, change)+"/api")
	}
	refuses := func(code int, words []string, args ...string) {
		t.Helper()
		out := m.exits(code, args...)
		for _, w := range words {
			if !strings.Contains(out, w) {
				t.Errorf("countersign %s does not say %q:\n%s", strings.Join(args, " "), w, out)
			}
		}
	}
	both := []string{"the store belongs to the app A0001 in the workspace T0001, and the bot token to the app A0001 in the workspace T0009"}
	in(func(s *workspace.Seed) { s.Team.ID = "T0009" })
	refuses(cli.ExitUsage, both, "serve")
	refuses(cli.ExitUsage, both, "serve", "--replaces-app", "A0001")
	refuses(cli.ExitUsage, []string{"the store belongs to the app A0001"}, "doctor")
	in(func(s *workspace.Seed) { s.App.ID = "A0009" })
	refuses(cli.ExitUsage, []string{"serve --replaces-app A0001"}, "serve")
	bot := launch(t, m.dir, m.env, "serve", "--replaces-app", "A0001")
	bot.says(`(countersign is up)`)
	m.ok(bot.end(syscall.SIGTERM))
	bot, _ = m.serve()
	m.ok(bot.end(syscall.SIGTERM))
	launch(t, m.dir, m.env, "audit", "list", "--long", "--kind", "adopted").says("(A0009)")
	m.env = env
	refuses(cli.ExitUsage, []string{"the store belongs to the app A0009"}, "serve")

	in(func(s *workspace.Seed) { s.App.ID = "A0009" })
	key := m.store + ".audit-key"
	public := strings.TrimSpace(m.exits(cli.ExitDone, "audit", "key"))
	m.ok(os.Remove(key))
	refuses(cli.ExitUsage, []string{public, key, "umask 077"}, "serve")
	refuses(cli.ExitUsage, []string{"the key that signed the newest head"}, "doctor")
	m.ok(os.WriteFile(key, []byte(public+"\n"), 0o600))
	bot, _ = m.serve()
	m.ok(bot.end(syscall.SIGTERM))
	launch(t, m.dir, m.env, "audit", "verify").says("(the history is whole)")
}
