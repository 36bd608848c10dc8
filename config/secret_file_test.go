package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/config"
)

// TestSecretFiles checks that a secret can come from a file. TestSecretFiles also checks the errors and warnings about
// such a file. These messages say what is wrong, but never show the file's content.
func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := file("token", botToken+"\n", 0o400)
	for _, c := range []struct {
		name    string
		env     map[string]string
		command config.Command
		problem string // empty: none
		warning string
	}{
		{name: "a line end", env: map[string]string{"SLACK_BOT_TOKEN_FILE": token}},
		{name: "a line end of Windows", env: map[string]string{"SLACK_BOT_TOKEN_FILE": file("crlf", botToken+"\r\n", 0o400)}},
		{name: "no line end", env: map[string]string{"SLACK_BOT_TOKEN_FILE": file("bare", botToken, 0o400)}},
		{name: "two line ends", env: map[string]string{"SLACK_BOT_TOKEN_FILE": file("two", botToken+"\n\n", 0o400)}, problem: "SLACK_BOT_TOKEN: has a space or a line end around it"},
		{name: "missing", env: map[string]string{"SLACK_BOT_TOKEN_FILE": filepath.Join(dir, "none")}, problem: "SLACK_BOT_TOKEN_FILE: names " + filepath.Join(dir, "none") + ", which does not exist"},
		{name: "empty", env: map[string]string{"SLACK_BOT_TOKEN_FILE": file("empty", "\n", 0o400)}, problem: "empty, which is empty"},
		{name: "a directory", env: map[string]string{"SLACK_BOT_TOKEN_FILE": dir}, problem: "which is not a file"},
		{name: "below a file", env: map[string]string{"SLACK_BOT_TOKEN_FILE": filepath.Join(token, "x")}, problem: "token/x, which can't be read: not a directory"},
		{name: "too large", env: map[string]string{"SLACK_BOT_TOKEN_FILE": file("large", strings.Repeat("x", 1<<17), 0o400)}, problem: "so it is not a secret"},
		{name: "both", env: map[string]string{"SLACK_BOT_TOKEN_FILE": token, "SLACK_BOT_TOKEN": botToken}, problem: "SLACK_BOT_TOKEN_FILE: is set, and SLACK_BOT_TOKEN is set, too; unset one of them"},
		{name: "readable by everybody", env: map[string]string{"SLACK_BOT_TOKEN_FILE": file("open", botToken, 0o444)}, warning: "open can be read by every user of this machine; chmod 400 "},
		{name: "a wrong token", env: map[string]string{"SLACK_BOT_TOKEN_FILE": file("wrong", appToken, 0o400)}, problem: "SLACK_BOT_TOKEN: is an app-level token"},
		{name: "a command that does not use it", command: config.Offline, env: map[string]string{"SLACK_BOT_TOKEN_FILE": filepath.Join(dir, "none")}},
		{name: "a slip", env: map[string]string{"SLACK_BOT_TOKEN_FILE": token, "COUNTERSIGN_STORE_FIEL": "x"}, problem: "did you mean COUNTERSIGN_STORE_FILE?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			others := map[string]string{"SLACK_APP_TOKEN": appToken, "OPENAI_API_KEY": modelKey, "OPENAI_MODEL": "m"}
			for name, value := range c.env {
				others[name] = value
			}
			setenv(t, others)
			env, err := config.ReadEnv(c.command)
			said := ""
			if err != nil {
				said = err.Error()
			}
			switch {
			case c.problem == "" && err != nil, !strings.Contains(said, c.problem), strings.Count(said, "\n") > 0:
				t.Errorf("%v; want %q", err, c.problem)
			case c.problem == "" && c.command == config.Serve && env.BotToken.Reveal() != botToken:
				t.Errorf("the token is %q", env.BotToken.Reveal())
			}
			if warned := env.Warnings.Error(); (c.warning == "") != (warned == "") || !strings.Contains(warned, c.warning) {
				t.Errorf("warned of %q, want %q", warned, c.warning)
			}
			if strings.Contains(said, "hush") {
				t.Errorf("a secret is printed: %s", said)
			}
		})
	}
}

// Each secret has a variable for a file. Even the store's address has such a variable, because the address may
// contain a password.
func TestEverySecretFromAFile(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{"OPENAI_MODEL": "m", "COUNTERSIGN_TRANSPORT": "http"}
	const address = "postgres://user:hush@127.0.0.1/db"
	for name, value := range map[string]string{
		"SLACK_BOT_TOKEN": botToken, "SLACK_APP_TOKEN": appToken, "SLACK_SIGNING_SECRET": signing, "OPENAI_API_KEY": modelKey, "COUNTERSIGN_STORE": address,
		"OTEL_EXPORTER_OTLP_HEADERS": "x-key=hush",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(value+"\n"), 0o400); err != nil {
			t.Fatal(err)
		}
		env[name+"_FILE"] = path
	}
	setenv(t, env)
	got, err := config.ReadEnv(config.Serve)
	if err != nil {
		t.Fatal(err)
	}
	if got.BotToken != botToken || got.AppToken != appToken || got.SigningSecret != signing || got.ModelKey != modelKey || got.Store.URL != address || got.TraceHeaders != "x-key=hush" || len(got.SecretFiles) != 6 {
		t.Errorf("%#v", got)
	}
	t.Setenv("SHOP_TOKEN_FILE", filepath.Join(dir, "SLACK_BOT_TOKEN"))
	if v, ok := config.Lookup("SHOP_TOKEN"); v != botToken || !ok {
		t.Errorf("Lookup: %q, %t", v, ok)
	}
	t.Setenv("OTHER_TOKEN_FILE", filepath.Join(dir, "gone"))
	const want = "OTHER_TOKEN is not set in the environment; OTHER_TOKEN_FILE names "
	if _, err := config.Expand("Bearer ${OTHER_TOKEN}", config.Lookup); !errors.Is(err, config.ErrVariable) || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "which does not exist") {
		t.Errorf("Expand: %v", err)
	}
	t.Setenv("SHOP_TOKEN", "first")
	if v, _ := config.Lookup("SHOP_TOKEN"); v != "first" {
		t.Errorf("Lookup: %q", v)
	}
}
