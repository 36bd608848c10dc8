package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspace/delivery"
	"countersign/internal/demo/workspaceclient"
)

// processHarness is a workspace and a model for a bot in its own process. As in production, the bot gets only the
// addresses of the workspace and the model.
type processHarness struct {
	*testing.T
	dir   string
	base  string   // address of the workspace
	slack *program // the workspace, if it has flags
	env   []string // environment of the bot
	http  bool     // Slack delivers over HTTP
}

// openProcessHarness starts a workspace and a model. With flags, the workspace is the program. The bot has the policy of
// docs/policy.md, as countersign.yaml.
func openProcessHarness(t *testing.T, flags ...string) *processHarness {
	t.Helper()
	p := &processHarness{T: t, dir: t.TempDir()}
	model := httptest.NewServer(scriptedmodel.New(scriptedmodel.Config{APIKey: "sk-the-key"}))
	t.Cleanup(model.Close)
	if len(flags) > 0 {
		p.slack = launch(t, p.dir, nil, append([]string{"workspace", "--addr", "127.0.0.1:0"}, flags...)...)
		p.base = p.slack.says(`is open at (http://\S+)`)
	} else {
		p.base = openWorkspace(t)
	}
	doc, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	policy := regexp.MustCompile("(?s)```yaml\n(version: 1.*?)```").FindSubmatch(doc)
	if policy == nil {
		t.Fatal("docs/policy.md has no whole example")
	}
	write(t, p.policy(), policy[1])
	pinShop(t, p.policy())
	program := programPath(t)
	p.env = []string{
		"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"),
		"SLACK_API_URL=" + p.base + "/api", "SLACK_BOT_TOKEN=" + workspace.DemoBotToken, "SLACK_APP_TOKEN=" + workspace.DemoAppToken,
		"OPENAI_BASE_URL=" + model.URL + "/v1", "OPENAI_API_KEY=sk-the-key", "OPENAI_MODEL=" + scriptedmodel.DefaultModel,
		"COUNTERSIGN_ADMIN_ADDR=127.0.0.1:0", "COUNTERSIGN_STORE=bolt:" + p.store(),
	}
	return p
}

// openWorkspace starts a workspace as the command workspace does, and returns its address. The functions change the
// workspace's seed.
func openWorkspace(t *testing.T, change ...func(*workspace.Seed)) string {
	t.Helper()
	seed := workspace.OpenSeed()
	for _, c := range change {
		c(&seed)
	}
	srv := httptest.NewUnstartedServer(nil)
	base := "http://" + srv.Listener.Addr().String()
	ws, err := workspace.New(workspace.Config{Seed: seed, BaseURL: base, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	srv.Config.Handler = ws.Handler()
	srv.Start()
	t.Cleanup(func() {
		if err := ws.Close(); err != nil {
			t.Error(err)
		}
		srv.Close()
	})
	return base
}

func (p *processHarness) policy() string { return filepath.Join(p.dir, "countersign.yaml") }

func (p *processHarness) store() string { return filepath.Join(p.dir, "bot.db") }

// overHTTP makes Slack deliver over HTTP.
func (p *processHarness) overHTTP() *processHarness {
	p.http = true
	p.env = append(p.env, "COUNTERSIGN_TRANSPORT=http", "SLACK_APP_TOKEN=", "SLACK_SIGNING_SECRET="+workspace.DemoSigningSecret, "COUNTERSIGN_HTTP_ADDR=127.0.0.1:0")
	return p
}

// serve starts the bot and waits until it is connected. admin is the bot's admin address.
func (p *processHarness) serve() (bot *program, admin string) {
	p.Helper()
	bot = launch(p.T, p.dir, p.env, "serve")
	admin = "http://" + bot.says(`countersign is up.* admin=(\S+)`)
	if !p.http {
		bot.says(`(connected to Slack)`)
		return bot, admin
	}
	p.deliverTo("http://" + bot.httpAddress())
	return bot, admin
}

// httpAddress returns the address at which the bot listens for Slack's requests.
func (p *program) httpAddress() string {
	p.t.Helper()
	return p.says(`listening for Slack's requests.* address=(\S+)`)
}

// deliverTo makes Slack deliver to the paths below a URL.
func (p *processHarness) deliverTo(base string) {
	p.Helper()
	urls, err := json.Marshal(delivery.URLsAt(base + "/slack/"))
	if err != nil {
		p.Fatal(err)
	}
	resp, err := http.Post(p.base+"/app/request_urls", "application/json", bytes.NewReader(urls))
	if err != nil {
		p.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		p.Fatalf("the URL for events was not verified: %s", resp.Status)
	}
}

func (p *processHarness) watcher(user string) watcher {
	return watcher{p.T, workspaceclient.Client{Base: p.base, User: user}}
}
