package redact

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secret is part of every secret of these tests, and must never be written.
const secret = "S3cr3tValue"

func TestText(t *testing.T) {
	for _, in := range []string{
		"xoxb-123-456-" + secret, "xoxe.xoxp-1-" + secret, "xapp-1-A0-" + secret, "xwfp-" + secret,
		"sk-proj-" + secret + "123456", "Authorization: Bearer " + secret, "authorization: [Bearer " + secret + "]", "bearer%20" + secret,
		`Post "https://slack.com/api/auth.test?token=` + secret + `": EOF`, "token=" + secret + "&channel=C1", `{"token":"` + secret + `"}`, `{"client_secret": "` + secret + `"}`,
		"wss://wss-primary.slack.com/link/?ticket=" + secret + "&app_id=x", "https://hooks.slack.com/actions/T0/1/" + secret, "https://hooks.slack.com/commands/T0/1/" + secret,
		"postgres://countersign:" + secret + "@db/x", "signing_secret=" + secret, "OPENAI_API_KEY=" + secret, "password: " + secret, "ghp_" + secret + "12345678",
		"eyJhbGciOiJI.eyJzdWIiOiIx." + secret, "Basic " + secret + "==", "basic%20" + secret,
	} {
		if got := Text("before " + in + " after"); strings.Contains(got, secret) || !strings.HasPrefix(got, "before ") || !strings.Contains(got, Removed) {
			t.Errorf("%q is written as %q", in, got)
		}
	}
	if got := Text("Authorization: Basic Plainword"); strings.Contains(got, "Plainword") {
		t.Errorf("a password that looks like a word is written in %q", got)
	}
	for _, in := range []string{
		"", "the token is missing", "tokens=200000", "a request waits: req_03E6LK18D6HMPQBJ6CAPAVTQ5G", "https://slack.com/api/chat.postMessage", "ask-me-anything-now", "risk-assessment-of-it",
		"users.info: missing_scope", "jane@example.com", "Slack refuses a token: the bot token (invalid_auth)", "bearer of bad news", "secret: no",
		"write postgres://USER@HOST/DATABASE", "from your app's page Basic Information", "on Basic Information.", "a basic understanding of it",
	} {
		if got := Text(in); got != in {
			t.Errorf("%q is written as %q", in, got)
		}
	}
}

// Registered secrets are never written, and neither are their forms in URLs and in quoted strings.
func TestKnownSecrets(t *testing.T) {
	odd := `p&ss "w` + secret + "/\u00e9"
	Environ([]string{"SHOP_PASSWORD=" + odd, "MCP_API_KEY=plain" + secret, "HOME=/root", "TOKEN_FILE=/run/secrets/token", "SHORT_TOKEN=abc", "COUNTERSIGN_AUDIT_KEY=audit-key"})
	for _, in := range []string{odd, url.QueryEscape(odd), url.PathEscape(odd), fmt.Sprintf("%q", odd), "plain" + secret} {
		if got := Text("x " + in); strings.Contains(got, secret) {
			t.Errorf("%q is written as %q", in, got)
		}
	}
	if got := Text("abc /run/secrets/token /root audit-key"); got != "abc /run/secrets/token /root audit-key" {
		t.Errorf("%q", got)
	}
}

// If a variable like SHOP_TOKEN_FILE names a file, the content of the file is also a secret. The path of the file is
// not.
func TestSecretInFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("in-a-file-"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	Environ([]string{"SHOP_TOKEN_FILE=" + path, "OTHER_TOKEN_FILE=" + path + ".none", "PROFILE=" + path})
	if got := Text("x in-a-file-" + secret + " y " + path); got != "x (removed) y "+path {
		t.Errorf("%q", got)
	}
}

// A logger writes no secrets, whether they are in a message, text, error, group or struct. An example is an error of
// net/http that quotes an address with a secret.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(Writer(&out), &slog.HandlerOptions{Level: slog.LevelDebug}))
	_, err := (&http.Client{}).Get("http://127.0.0.1:1/api?token=xoxb-1-" + secret)
	if err == nil {
		t.Fatal("somebody listens there")
	}
	log.With("token", "xoxb-2-"+secret).WithGroup("g").Error("it said xapp-1-"+secret, "error", fmt.Errorf("wrapped: %w", err), slog.Group("h", "header", http.Header{"Authorization": {"Bearer " + secret}}),
		"form", url.Values{"token": {"xoxb-3-" + secret}}, "joined", errors.Join(err, errors.New("password="+secret)), "struct", struct{ Key string }{"sk-" + secret + "xyz"})
	if strings.Contains(out.String(), secret) || strings.Count(out.String(), "(removed)") < 6 || !strings.HasSuffix(out.String(), "\n") {
		t.Error(out.String())
	}
}

// The length of the result is limited, and no text causes a panic.
func FuzzText(f *testing.F) {
	for _, s := range []string{"xoxb-1-2", "token=abcd", "://a@", "Bearer abcdef", "hooks.slack.com/actions/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := Text(s)
		if len(once) > len(s)*(len(Removed)+2)+64 {
			t.Fatalf("%d bytes became %d", len(s), len(once))
		}
	})
}
