package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
)

// As in production, the bot, the workspace and the model are three processes. Each process gets only the addresses of
// the other processes. The test stops the bot while a card waits, and then starts the bot again. The bot continues its
// work. Slack delivers through Socket Mode, or over HTTP.
func TestServe(t *testing.T) {
	t.Parallel()
	t.Run("socket", func(t *testing.T) { testServe(t, openProcessHarness(t, "--data", "workspace.json"), "") })
	t.Run("http", func(t *testing.T) {
		testServe(t, openProcessHarness(t, "--data", "workspace.json").overHTTP(), "requests: ok\n")
	})
}

func testServe(t *testing.T, p *processHarness, requests string) {
	t.Parallel()
	bot, admin := p.serve()
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz?wait=5": "store: ok\ndeliveries: ok\npolicy in force: ok\nrows: ok\nmended: ok\nslack: ok\nrefused by Slack: ok\nmodel: ok\npolicy: ok\npins: ok\nservers: ok\nrunning: ok\nchannels: ok\ncards: ok\nmessages: ok\nwebhooks: ok\nscopes: ok\n" + requests + "seal: ok\nheads: ok\n"} {
		status, body := get(t, admin+path)
		for end := time.Now().Add(patience); (status != http.StatusOK || body != want) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			status, body = get(t, admin+path) // the shop's server may still be connecting
		}
		if status != http.StatusOK || body != want {
			t.Errorf("%s answers %d: %s", path, status, body)
		}
	}
	sam, teo := p.watcher("sam"), p.watcher("teo")
	root := sam.says("#support", "", "@Countersign refund ORD-123, it arrived broken")
	sam.sees("#support", root, "Waits for Team Lead")
	teo.clicks("countersign", "", "Approve", "Refund of $49.99 for order ORD-123")
	sam.sees("#support", root, "I refunded $49.99")

	second := sam.says("#support", "", "@Countersign refund 20 USD of order ORD-131, the box was damaged")
	teo.sees("countersign", "", "Refund of $20.00 for order ORD-131", "Waits for")
	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Fatalf("asked to stop, the bot ended with %v", err)
	}

	again, _ := p.serve()
	teo.clicks("countersign", "", "Approve", "Refund of $20.00 for order ORD-131")
	sam.sees("#support", second, "I refunded $20.00")
	if err := again.end(syscall.SIGTERM); err != nil {
		t.Errorf("asked to stop, the bot ended with %v", err)
	}
	if err := p.slack.end(syscall.SIGINT); err != nil {
		t.Errorf("asked to stop, the workspace ended with %v", err)
	}
}

// TestStartTime limits the time that a start takes, because the bot does no work during a start. The goal is 300 ms.
// The limit of the test is higher, because the machine may be busy. Of several starts, one has to be fast enough.
func TestStartTime(t *testing.T) {
	testkit.SkipIfShort(t)
	const bound = 2 * time.Second
	its := openProcessHarness(t)
	check, serve := time.Hour, time.Hour
	starts := 0
	for ; starts < 5 && (check > bound || serve > bound); starts++ {
		p := launch(t, its.dir, its.env, "check")
		if <-p.gone; p.err != nil {
			t.Fatal(p.err)
		}
		check = min(check, time.Since(p.began))
		p = launch(t, its.dir, its.env, "serve")
		p.says(`(countersign is up)`)
		serve = min(serve, time.Since(p.began))
		p.end(syscall.SIGKILL)
	}
	t.Logf("best of %d: countersign check ended after %s, serve was up after %s", starts, check.Round(time.Millisecond), serve.Round(time.Millisecond))
	if check > bound || serve > bound {
		t.Errorf("that is above %s", bound)
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// The demo works with an independent model. The demo is stopped with Ctrl-C while a card waits. The demo is then
// started again on the same data, and continues.
func TestDemoForeignModel(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(&foreignModel{})
	t.Cleanup(model.Close)
	dir := t.TempDir()
	env := []string{"OPENAI_BASE_URL=" + model.URL + "/gateway/openai/", "OPENAI_API_KEY=secret", "OPENAI_MODEL=vendor/strange-7b"}
	args := []string{"demo", "--no-browser", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "kept")}

	demo := launch(t, dir, env, args...)
	sam := watcher{t, workspaceclient.Client{Base: demo.says(`The workspace +(http://[^/]+)`), User: "sam"}}
	demo.says(`The model +(vendor/strange-7b at ` + model.URL + `)`)
	teo := watcher{t, workspaceclient.Client{Base: sam.Base, User: "teo"}}
	sam.wait("the bot", connectedTo(sam))
	root := sam.says("#support", "", "@Countersign give 5 dollars back on ORD-123")
	teo.clicks("countersign", "", "Approve", "Refund of $5.00 for order ORD-123")
	sam.sees("#support", root, "strange words")
	sam.says("#support", root, "and 6 dollars more")
	teo.sees("countersign", "", "Refund of $6.00 for order ORD-123", "Waits for")
	if err := demo.end(syscall.SIGINT); err != nil {
		t.Fatalf("after Ctrl-C the demo ended with %v", err)
	}

	demo = launch(t, dir, env, args...)
	sam.Base = demo.says(`The workspace +(http://[^/]+)`)
	teo.Base = sam.Base
	sam.wait("the bot", connectedTo(sam))
	teo.clicks("countersign", "", "Approve", "Refund of $6.00 for order ORD-123")
	sam.sees("#support", root, "strange words", "2 results")
	if err := demo.end(syscall.SIGTERM); err != nil {
		t.Errorf("asked to stop, the demo ended with %v", err)
	}
	if status, body := get(t, model.URL+"/complaints"); status != http.StatusOK || strings.TrimSpace(body) != "" {
		t.Errorf("the model complains: %s", body)
	}
}
