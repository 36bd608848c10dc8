package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/demo/workspace"
)

// BenchmarkFlood measures how much the calls of one client slow the calls of another client. The client ci sends calls
// over 32 connections as fast as it gets answers. The client calm makes one call after the other: a call that needs no
// approval, and a call that waits for a card. The flood is on and off in turns, so other load on the machine affects
// both halves alike. During the pauses, the client ci may save up requests, so the flood is faster than a flood without
// pauses. The goal is a ratio of at most 1.2 for each median.
func BenchmarkFlood(b *testing.B) {
	for _, flood := range []struct {
		name, tool string
		status     int
	}{
		{"refused", loadTool, http.StatusTooManyRequests}, // the client has reached its cap
		{"accepted", "look", http.StatusOK},               // the calls need no approval, and are stored
	} {
		b.Run(flood.name, func(b *testing.B) { benchFlood(b, flood.tool, flood.status) })
	}
}

func benchFlood(b *testing.B, tool string, status int) {
	const connections, calls = 32, 10
	policy := strings.Replace(fmt.Sprintf(benchPolicy, "U0002", ""), "tools:\n", "tools:\n  look: {risk: low}\n", 1) + fmt.Sprintf(`clients:
  ci: {token: "sha256:%s", agent: support, owner: U0100, tools: [count, look], caps: {pending: 1}}
  calm: {token: "sha256:%s", agent: support, owner: U0100, tools: [count, look]}
`, tokenHash("cs_ci"), tokenHash("cs_calm"))
	posted := make(chan string, 100)
	h := openLoadHarness(b, loadConfig{seed: workspace.DemoSeed(), policy: policy, called: func(method string, form url.Values) {
		if method == "chat.postMessage" {
			posted <- form.Get("blocks")
		}
	}})
	h.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 2 * connections
	send := func(token, path, key, body string) (int, string) {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, h.gateway+path, strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Idempotency-Key": key} {
			req.Header.Set(name, value)
		}
		answer, err := h.client.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return 0, err.Error()
		}
		return answer.StatusCode, string(text)
	}
	var keys, flooded atomic.Int64
	call := func(token, tool, n string) (int, string) {
		return send(token, "/v1/requests", fmt.Sprint(keys.Add(1)), fmt.Sprintf(`{"tool":%q,"args":{"n":%q}}`, tool, n))
	}
	if tool == loadTool { // uses up the cap
		if code, text := call("cs_ci", tool, "first"); code != http.StatusAccepted {
			b.Fatal(code, text)
		}
		<-posted
	}
	flood := func() (stop func()) {
		over := make(chan struct{})
		var all sync.WaitGroup
		for range connections {
			all.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
					}
					if code, text := call("cs_ci", tool, "flood"); code != status {
						b.Error("the flood: ", code, text)
						return
					}
					flooded.Add(1)
				}
			})
		}
		return func() { close(over); all.Wait() }
	}
	stop := flood()
	for flooded.Load() < 1500 && !b.Failed() { // more than a client may send at once
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	var took [2]struct{ decided, stored, carded []time.Duration }
	lasted := time.Duration(0)
	for b.Loop() {
		for on := range took {
			stop := func() {}
			began := time.Now()
			if on == 1 {
				stop = flood()
			}
			for range calls {
				began := time.Now()
				if code, text := call("cs_calm", "look", "x"); code != http.StatusOK {
					b.Fatal(code, text)
				}
				took[on].decided = append(took[on].decided, time.Since(began))
				began = time.Now()
				n := fmt.Sprintf("calm-%d.", keys.Load())
				code, text := call("cs_calm", loadTool, n)
				took[on].stored = append(took[on].stored, time.Since(began))
				if code != http.StatusAccepted {
					b.Fatal(code, text)
				}
				for !strings.Contains(<-posted, n) {
				}
				took[on].carded = append(took[on].carded, time.Since(began))
				_, after, _ := strings.Cut(text, `"id":"`)
				id, _, _ := strings.Cut(after, `"`)
				if code, text := send("cs_calm", "/v1/requests/"+id+"/withdraw", "", ""); code != http.StatusOK {
					b.Fatal(code, text)
				}
			}
			stop()
			if on == 1 {
				lasted += time.Since(began)
			}
		}
	}
	alone, beside := took[0], took[1]
	b.ReportMetric(percentiles(b, "flood-decided-", beside.decided)/percentiles(b, "decided-", alone.decided), "decided-ratio")
	b.ReportMetric(percentiles(b, "flood-stored-", beside.stored)/percentiles(b, "stored-", alone.stored), "stored-ratio")
	b.ReportMetric(percentiles(b, "flood-card-", beside.carded)/percentiles(b, "card-", alone.carded), "card-ratio")
	b.ReportMetric(float64(flooded.Load())/lasted.Seconds(), "flood/s")
	b.ReportMetric(0, "ns/op")
}
