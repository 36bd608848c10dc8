package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/workspace"
)

// keeper is a proxy in front of the workspace or the model. keeper accepts only the current secrets.
type keeper struct {
	mu       sync.Mutex
	accepted map[string]string // maps each accepted secret to the secret of the server behind the proxy
	refusal  func(http.ResponseWriter)
	foreign  string // auth.test with this token names another bot
	behind   http.Handler
}

func (k *keeper) accept(secrets map[string]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.accepted = secrets
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if k.foreign != "" && (bytes.Contains(body, []byte(k.foreign)) || strings.HasSuffix(r.Header.Get("Authorization"), k.foreign)) {
		io.WriteString(w, `{"ok":true,"user_id":"U9999","team_id":"T9999","bot_id":"B9999"}`)
		return
	}
	k.mu.Lock()
	var known bool
	for secret, is := range k.accepted {
		token, header := []byte("token="+url.QueryEscape(secret)), "Bearer "+secret
		known = known || bytes.Contains(body, token) || r.Header.Get("Authorization") == header
		body = bytes.ReplaceAll(body, token, []byte("token="+url.QueryEscape(is)))
		if r.Header.Get("Authorization") == header {
			r.Header.Set("Authorization", "Bearer "+is)
		}
	}
	k.mu.Unlock()
	if !known {
		k.refusal(w)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	k.behind.ServeHTTP(w, r)
}

// TestRotatedSecrets replaces every secret of a running bot with Socket Mode in the secret's file. After that, the servers refuse the
// old secrets, and the bot continues without a restart. The bot does not use a token of another bot.
func TestRotatedSecrets(t *testing.T) {
	t.Parallel()
	p := openProcessHarness(t)
	behind, err := url.Parse(p.base)
	if err != nil {
		t.Fatal(err)
	}
	slack := &keeper{
		behind: httputil.NewSingleHostReverseProxy(behind), foreign: "xoxb-foreign",
		refusal: func(w http.ResponseWriter) { io.WriteString(w, `{"ok":false,"error":"invalid_auth"}`) },
	}
	model := &keeper{
		behind: scriptedmodel.New(scriptedmodel.Config{APIKey: "sk-inside"}),
		refusal: func(w http.ResponseWriter) {
			http.Error(w, `{"error":{"message":"wrong key"}}`, http.StatusUnauthorized)
		},
	}
	atSlack, atModel := httptest.NewServer(slack), httptest.NewServer(model)
	defer atSlack.Close()
	defer atModel.Close()
	file := func(name string) string { return filepath.Join(p.dir, name) }
	set := func(bot, app, key string) {
		t.Helper()
		slack.accept(map[string]string{bot: workspace.DemoBotToken, app: workspace.DemoAppToken})
		model.accept(map[string]string{key: "sk-inside"})
		for name, value := range map[string]string{"bot": bot, "app": app, "key": key} {
			if err := os.WriteFile(file(name), []byte(value+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	set("xoxb-first", "xapp-1-A0001-first", "sk-first-key")
	p.env = append(slices.DeleteFunc(p.env, func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains([]string{"SLACK_API_URL", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "OPENAI_BASE_URL", "OPENAI_API_KEY"}, name)
	}), "SLACK_API_URL="+atSlack.URL+"/api", "OPENAI_BASE_URL="+atModel.URL+"/v1",
		"SLACK_BOT_TOKEN_FILE="+file("bot"), "SLACK_APP_TOKEN_FILE="+file("app"), "OPENAI_API_KEY_FILE="+file("key"))
	running, _ := p.serve()
	ada := p.watcher("ada")
	asks := func(order string) {
		t.Helper()
		thread := ada.says("#support", "", "@Countersign what is the state of "+order+"?")
		ada.sees("#support", thread, order) // if the model failed, the bot's message would not name the order
	}
	asks("ORD-123")

	set("xoxb-second", "xapp-1-A0001-second", "sk-second-key")
	hangup(t, running)
	running.says(`secrets changed in their files, and the new ones are used.*(SLACK_BOT_TOKEN, SLACK_APP_TOKEN, OPENAI_API_KEY)`)
	asks("ORD-131")

	// The bot also reads the files every few seconds.
	if err := os.WriteFile(file("bot"), []byte("xoxb-foreign"), 0o600); err != nil {
		t.Fatal(err)
	}
	running.says(`a secret can't be used; the previous one stays in use.*(the token belongs to another app or workspace)`)
	if err := os.WriteFile(file("bot"), []byte("xoxb-refused"), 0o600); err != nil {
		t.Fatal(err)
	}
	running.says(`(SLACK_BOT_TOKEN can't be used: Slack refuses a token \(invalid_auth\))`)
	if err := os.WriteFile(file("app"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	running.says(`(can't be used; the previous one stays in use.*SLACK_APP_TOKEN_FILE: names \S+, which is empty)`)
	asks("ORD-123")
	set("xoxb-third", "xapp-1-A0001-third", "sk-second-key")
	hangup(t, running)
	running.says(`(new ones are used.*SLACK_BOT_TOKEN, SLACK_APP_TOKEN)`)
	asks("ORD-131")

	if err := running.end(syscall.SIGTERM); err != nil {
		t.Errorf("it ended with %v", err)
	}
	for _, secret := range []string{"first", "second", "third", "foreign"} {
		for _, form := range []string{"xoxb-" + secret, "xapp-1-A0001-" + secret, "sk-" + secret} {
			if strings.Contains(running.text(), form) {
				t.Errorf("the log contains %s", form)
			}
		}
	}
}

// TestRotatedSigningSecret replaces the signing secret of a running bot in the secret's file. The bot then accepts only
// requests that are signed with the new secret.
func TestRotatedSigningSecret(t *testing.T) {
	t.Parallel()
	p := openProcessHarness(t).overHTTP()
	file, fresh := filepath.Join(p.dir, "signing"), strings.Repeat("0a1b", 8)
	set := func(secret string) {
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set(workspace.DemoSigningSecret)
	p.env = append(p.env, "SLACK_SIGNING_SECRET=", "SLACK_SIGNING_SECRET_FILE="+file)
	running, _ := p.serve()
	at := "http://" + running.says(`listening for Slack's requests.* address=(\S+)`) + "/slack/events"
	answers := func(secret string) int {
		t.Helper()
		const body = `{"type":"url_verification","challenge":"c"}`
		now := strconv.FormatInt(time.Now().Unix(), 10)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte("v0:" + now + ":" + body))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Slack-Request-Timestamp", now)
		r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if first, second := answers(workspace.DemoSigningSecret), answers(fresh); first != http.StatusOK || second != http.StatusUnauthorized {
		t.Errorf("before: the first secret gives %d, the second %d", first, second)
	}
	set(fresh)
	hangup(t, running)
	running.says(`secrets changed in their files, and the new ones are used.*(SLACK_SIGNING_SECRET)`)
	if first, second := answers(workspace.DemoSigningSecret), answers(fresh); first != http.StatusUnauthorized || second != http.StatusOK {
		t.Errorf("after: the first secret gives %d, the second %d", first, second)
	}
	if err := running.end(syscall.SIGTERM); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if strings.Contains(running.text(), fresh) {
		t.Error("the log contains the secret")
	}
}

// hangup asks a running program to read its files again.
func hangup(t *testing.T, p *program) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}
