package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/bot"
	"countersign/config"
)

// TestBadSecretFile checks that a file that can't be read does not stop the renewal of the secrets in other files. The
// log names the bad file once.
func TestBadSecretFile(t *testing.T) {
	dir := t.TempDir()
	for name, value := range map[string]string{
		"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1", "OPENAI_API_KEY": "sk-1", "COUNTERSIGN_STORE": "bolt:store.db",
	} {
		t.Setenv(name+"_FILE", filepath.Join(dir, name))
		t.Setenv(name, "")
		writeSecret(t, dir, name, value)
	}
	t.Setenv("OPENAI_MODEL", "m")
	env, err := config.ReadEnv(config.Serve)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	var slack bot.Secrets
	var key string
	s := &secrets{
		renewBot: func(_ context.Context, s bot.Secrets) error { slack = s; return nil }, renewKey: func(s string) { key = s },
		log: slog.New(slog.NewTextHandler(&log, nil)), used: env,
	}
	for _, name := range []string{"COUNTERSIGN_STORE", "SLACK_APP_TOKEN"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	writeSecret(t, dir, "SLACK_BOT_TOKEN", "xoxb-2")
	if !s.reread(t.Context(), true) || slack != (bot.Secrets{BotToken: "xoxb-2", AppToken: "xapp-1"}) || key != "" {
		t.Errorf("with files that can't be read, the bot uses %+v and the key %q", slack, key)
	}
	for range 3 {
		if s.reread(t.Context(), true) {
			t.Error("unchanged secrets are renewed")
		}
	}
	if n := strings.Count(log.String(), "a secret can't be used"); n != 1 || !strings.Contains(log.String(), "COUNTERSIGN_STORE_FILE: names") || !strings.Contains(log.String(), "SLACK_APP_TOKEN_FILE: names") {
		t.Errorf("%d times in the log:\n%s", n, log.String())
	}
	writeSecret(t, dir, "COUNTERSIGN_STORE", "bolt:store.db")
	writeSecret(t, dir, "SLACK_APP_TOKEN", "xapp-2")
	writeSecret(t, dir, "OPENAI_API_KEY", "sk-2")
	if !s.reread(t.Context(), true) || slack != (bot.Secrets{BotToken: "xoxb-2", AppToken: "xapp-2"}) || key != "sk-2" {
		t.Errorf("with all files, the bot uses %+v and the key %q", slack, key)
	}
}

func writeSecret(t *testing.T, dir, name, value string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
