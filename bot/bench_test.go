package bot

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/store"
)

// percentiles reports the median and the 99th percentile in milliseconds.
func percentiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	at := func(p float64) float64 {
		return float64(took[min(len(took)-1, int(p*float64(len(took))))]) / float64(time.Millisecond)
	}
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkClickToAck measures from a click as it arrives to the moment when Slack may be told: durable on disk.
func BenchmarkClickToAck(b *testing.B) {
	w := newWorkbench(b, func(w *workbench) { w.once = true })
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		payload := fmt.Appendf(nil, `{"type":"block_actions","trigger_id":"t%d","user":{"id":"U0002"},"container":{"channel_id":"C0002","message_ts":"1.1"},"actions":[{"action_id":"approve","value":"x","action_ts":"%d"}],"message":{"blocks":[%q]}}`, i, i, strings.Repeat("x", 4000))
		began := time.Now()
		if _, err := w.bot.receive(b.Context(), store.InboxInteraction, payload, began); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	percentiles(b, took)
}

// BenchmarkMessageToCard measures from a person's message until Slack has the card, through the real workspace, sockets, store
// and desk. The model takes no time here.
func BenchmarkMessageToCard(b *testing.B) {
	cards := cardWatch{posted: make(chan string, 100)}
	w := newWorkbench(b, func(w *workbench) { w.http, w.once = &http.Client{Transport: cards}, true })
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		order := fmt.Sprintf("ORD-%d.", i)
		began := time.Now()
		w.says("sam", "#support", `@bot call issue_refund {"order_id":"`+order+`","amount":1}`)
		for text := ""; !strings.HasPrefix(text, "Refund for order "+order); {
			select {
			case text = <-cards.posted:
			case <-time.After(10 * time.Second):
				b.Fatal("there is no card")
			}
		}
		took = append(took, time.Since(began))
	}
	percentiles(b, took)
}

// cardWatch passes on the text of what was posted, once Slack has answered.
type cardWatch struct{ posted chan string }

func (c cardWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "chat.postMessage") {
		if body, err := r.GetBody(); err == nil {
			raw, _ := io.ReadAll(body)
			form, _ := url.ParseQuery(string(raw))
			c.posted <- form.Get("text")
		}
	}
	return res, err
}
