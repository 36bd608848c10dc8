package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"countersign/internal/demo/workspace"
	"countersign/internal/testkit"
	"countersign/internal/tracing"
	"countersign/store"
)

// docs/figures.md explains the figures of these benchmarks, and says how to repeat the measurements.

// percentiles reports the median and the 99th percentile of durations, in milliseconds.
func percentiles(b *testing.B, name string, took []time.Duration) (median float64) {
	slices.Sort(took)
	at := func(p float64) float64 {
		return float64(took[min(len(took)-1, int(p*float64(len(took))))]) / float64(time.Millisecond)
	}
	b.ReportMetric(at(0.5), name+"p50-ms")
	b.ReportMetric(at(0.99), name+"p99-ms")
	return at(0.5)
}

const benchPolicy = `version: 1
tools:
  count: {risk: high, confirm: true}
approvers:
  team-lead: {title: Team Lead, members: [%s], max_risk: critical, can_approve: ["*"]%s}
agents:
  support: {channels: ["#support"], prompt: Count., tools: ["*"]}
`

// BenchmarkMessageToCard measures the time from a person's message until Slack has accepted the card for the approver's
// direct messages. The time includes the event, the inbox, the model call, the proposal and the card. The time of the
// model's own handler is subtracted. The goal is p99 < 150 ms.
func BenchmarkMessageToCard(b *testing.B) {
	card := cardTimer(b, nil)
	var took []time.Duration
	for b.Loop() {
		took = append(took, card())
	}
	percentiles(b, "", took)
	b.ReportMetric(0, "ns/op")
}

// BenchmarkHookHTTP measures the time that a hook over HTTP adds to a coding agent's call, if the call needs no
// approval. Before the bot answers, it stores the request and then the claim. So each call includes two durable
// transactions. The goal is p50 < 30 ms.
func BenchmarkHookHTTP(b *testing.B) {
	h := openHookLoad(b)
	benchHook(b, func(event string) (string, error) {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, h.gateway+"/v1/hooks/claude-code", strings.NewReader(event))
		if err != nil {
			return "", err
		}
		req.Header.Set("Authorization", "Bearer cs_laptop")
		req.Header.Set("Content-Type", "application/json")
		answer, err := h.client.Do(req)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		out, err := io.ReadAll(answer.Body)
		return string(out), err
	})
}

// BenchmarkHookCommand is like BenchmarkHookHTTP, but for the program of the hooks. The time includes the start and the
// end of the process, and a connection to the gateway.
func BenchmarkHookCommand(b *testing.B) {
	h := openHookLoad(b)
	program, err := hookProgram()
	if err != nil {
		b.Fatal(err)
	}
	home := b.TempDir()
	token := filepath.Join(home, "token")
	if err := os.WriteFile(token, []byte("cs_laptop"), 0o600); err != nil {
		b.Fatal(err)
	}
	env := append(plainEnv(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "COUNTERSIGN_HOOK_ADDRESS="+h.gateway, "COUNTERSIGN_HOOK_TOKEN_FILE="+token)
	benchHook(b, func(event string) (string, error) {
		cmd := exec.CommandContext(b.Context(), program, "claude-code")
		cmd.Env, cmd.Stdin = env, strings.NewReader(event)
		out, err := cmd.Output()
		return string(out), err
	})
}

// openHookLoad starts a bot with a client whose hooks may read files without approval.
func openHookLoad(b *testing.B) *loadHarness {
	policy := fmt.Sprintf(benchPolicy, "U0002", "") + fmt.Sprintf(
		"clients:\n  laptop: {token: \"sha256:%s\", agent: support, owner: U0002, tools: [\"*\"]}\n", tokenHash("cs_laptop"))
	policy = strings.Replace(policy, "tools:\n", "tools:\n  claude-code.Read: {risk: low}\n", 1)
	return openLoadHarness(b, loadConfig{seed: workspace.DemoSeed(), policy: policy})
}

// benchHook measures how long a hook takes for each event. The hook must allow each call.
func benchHook(b *testing.B, hook func(event string) (string, error)) {
	var took []time.Duration
	for b.Loop() {
		event := fmt.Sprintf(`{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"a.go"},"tool_use_id":"t%d"}`, len(took))
		began := time.Now()
		out, err := hook(event)
		took = append(took, time.Since(began))
		if err != nil || out != "{}\n" {
			b.Fatalf("%s (%v)", out, err)
		}
	}
	percentiles(b, "", took)
	b.ReportMetric(0, "ns/op")
}

// cardTimer starts a bot, and returns a function. The function makes a person write to the bot, and returns the time
// until the card.
func cardTimer(b *testing.B, t *tracing.Tracer) func() time.Duration {
	posted := make(chan string, 100)
	h := openLoadHarness(b, loadConfig{seed: workspace.DemoSeed(), policy: fmt.Sprintf(benchPolicy, "U0002", ""), tracer: t, called: func(method string, form url.Values) {
		if method == "chat.postMessage" {
			posted <- form.Get("text")
		}
	}})
	i := 0
	return func() time.Duration {
		i++
		order := fmt.Sprintf("m%d", i)
		thought, began := h.thinking.Load(), time.Now()
		if _, err := h.as("sam").Say(b.Context(), "#support", "", "@Countersign 1 of "+order); err != nil {
			b.Fatal(err)
		}
		for text := ""; !strings.Contains(text, "Waits for Team Lead") || !strings.Contains(text, order+".0"); {
			select {
			case text = <-posted:
			case <-time.After(patience):
				b.Fatal("there is no card")
			}
		}
		return time.Since(began) - time.Duration(h.thinking.Load()-thought)
	}
}

// BenchmarkTraced compares a bot that sends traces with a bot that sends none. The benchmark measures the time from a
// person's message until the card, and the processor time of the whole process, which includes the workspace and the
// model. The bots take turns, ten messages each, and begin alternately, so that changes in the machine's load affect
// both alike. The figures "more" are the medians, and the quartiles, of the comparisons. The goal is less than 5 % more.
func BenchmarkTraced(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	b.Cleanup(sink.Close)
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.URL)
	b.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "32") // the spans are sent during the turns of their bot
	tracer, err := tracing.FromEnv(b.Context(), os.Getenv, "", tracing.Service{}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { tracer.Close(context.Background()) })
	const messages = 10
	off, on := &comparedBot{card: cardTimer(b, nil)}, &comparedBot{card: cardTimer(b, tracer)}
	order := []*comparedBot{off, on}
	var wall, processor []float64
	for b.Loop() {
		for _, bot := range order {
			bot.work(b, messages)
		}
		slices.Reverse(order)
		wall, processor = append(wall, on.wall.Seconds()/off.wall.Seconds()), append(processor, on.processor.Seconds()/off.processor.Seconds())
	}
	for name, bot := range map[string]*comparedBot{"off-": off, "on-": on} {
		b.ReportMetric(bot.all.Seconds()*1000/float64(len(bot.took)), name+"cpu-ms")
		percentiles(b, name, bot.took)
	}
	for name, ratios := range map[string][]float64{"wall": wall, "cpu": processor} {
		slices.Sort(ratios)
		for quartile, of := range map[string]int{"q1": 1, "median": 2, "q3": 3} {
			b.ReportMetric(100*(ratios[of*len(ratios)/4]-1), name+"-more-"+quartile+"-%")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// comparedBot is a bot in a comparison.
type comparedBot struct {
	card            func() time.Duration
	took            []time.Duration // of each message so far
	all             time.Duration   // processor time of all messages so far
	wall, processor time.Duration   // of the last messages
}

// work lets people write messages to the bot.
func (c *comparedBot) work(b *testing.B, messages int) {
	b.Helper()
	c.wall = 0
	began := testkit.ProcessorTime(b)
	for range messages {
		took := c.card()
		c.took, c.wall = append(c.took, took), c.wall+took
	}
	c.processor = testkit.ProcessorTime(b) - began
	c.all += c.processor
}

// BenchmarkClick measures the time from a click on the page to the acknowledgement on the page. The click goes from the
// page over HTTP to the workspace, and from the workspace over the socket to the bot. The bot stores the click durably
// in the inbox, and the acknowledgement takes the same path back. For comparison, raw bbolt writes the same records
// between the clicks, in one transaction per click. The next click comes when all effects of the last click are done.
// The goal is p99 < 25 ms.
func BenchmarkClick(b *testing.B) { benchClicks(b, 1) }

// BenchmarkClick64 measures the same time as BenchmarkClick, but 64 people click at the same moment. Each person clicks
// on their own card. At the same time, the bot carries out the clicks. For comparison, raw bbolt has 64 writers.
// Records that wait at the same time share a transaction.
func BenchmarkClick64(b *testing.B) { benchClicks(b, 64) }

func benchClicks(b *testing.B, people int) {
	seed := workspace.DemoSeed()
	names := make([]string, people)
	for i := range names {
		names[i] = fmt.Sprintf("U1%03d", i)
		seed.People = append(seed.People, workspace.SeedPerson{ID: names[i], Name: fmt.Sprintf("person%d", i), RealName: fmt.Sprintf("Person %d", i)})
	}
	seed.Channels[2].Members = append(slices.Clone(seed.Channels[2].Members), names...)
	written := &written{}
	h := openLoadHarness(b, loadConfig{
		seed: seed, policy: fmt.Sprintf(benchPolicy, strings.Join(names, ", "), `, cards: "#support-approvals"`),
		wrap: func(s store.Store) store.Store { return recording{s, written} },
	})
	raw := openRaw(b)
	var clicked, wrote []time.Duration
	var stock []card
	for i := 0; b.Loop(); i++ {
		if len(stock) < people {
			b.StopTimer()
			stock = h.stock(max(people, 50), i)
			h.quiet()
			b.StartTimer()
		}
		now := stock[:people]
		stock = stock[people:]
		clicked = append(clicked, together(people, func(n int) {
			if err := h.as(names[n]).Press(h.Context(), now[n].message, now[n].button); err != nil {
				b.Error(err)
			}
		})...)
		b.StopTimer()
		h.quiet()
		wrote = append(wrote, together(people, func(n int) { raw.write(written.some(n)) })...)
		b.StartTimer()
	}
	ours, theirs := percentiles(b, "", clicked), percentiles(b, "raw-", wrote)
	b.ReportMetric(ours/theirs, "ratio")
	b.ReportMetric(0, "ns/op")
}

// The function "together" runs a function n times concurrently, and returns how long each call took.
func together(n int, do func(i int)) []time.Duration {
	took := make([]time.Duration, n)
	gate := make(chan struct{})
	var all sync.WaitGroup
	for i := range took {
		all.Go(func() {
			<-gate
			began := time.Now()
			do(i)
			took[i] = time.Since(began)
		})
	}
	close(gate)
	all.Wait()
	return took
}

// stock creates n cards, each for its own conversation.
func (h *loadHarness) stock(n, round int) []card {
	h.Helper()
	for i := range n {
		text := fmt.Sprintf("@Countersign 1 of r%d-%d", round, i)
		if _, err := h.as("sam").Say(h.Context(), "#support", "", text); err != nil {
			h.Fatal(err)
		}
	}
	return h.cards(n)
}

// quiet waits until the bot has nothing to do.
func (h *loadHarness) quiet() {
	h.Helper()
	h.until("the bot to have nothing to do", func(r store.Reader) (bool, error) {
		for _, kind := range append([]store.TimerKind{store.TimerInbox, store.TimerThink, store.TimerRun}, store.ShowTimers...) {
			left, err := r.Timers(kind, 1)
			if err != nil || len(left) > 0 {
				return false, err
			}
		}
		return true, nil
	})
}

// written lists the records that the bot wrote before it acknowledged clicks.
type written struct {
	mu   sync.Mutex
	rows []record
	next atomic.Int64
}

// record is the data that one acknowledged click wrote: the inbox row and its timer, as JSON.
type record struct{ row, timer []byte }

func (w *written) some(int) record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows[int(w.next.Add(1))%len(w.rows)]
}

// recording is a store that keeps a copy of the records that the delivery of a click writes.
type recording struct {
	store.Store
	to *written
}

func (s recording) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(t store.Tx) error { return fn(&recordingTx{Tx: t, to: s.to}) })
}

type recordingTx struct {
	store.Tx
	to  *written
	row []byte
}

func (t *recordingTx) PutInbox(row store.Inbox) error {
	if row.Kind == store.InboxInteraction && row.HandledAt.IsZero() {
		raw, err := json.Marshal(row)
		if err != nil {
			return err
		}
		t.row = raw
	}
	return t.Tx.PutInbox(row)
}

func (t *recordingTx) SetTimer(timer store.Timer) error {
	if t.row != nil && timer.Kind == store.TimerInbox {
		raw, err := json.Marshal(timer)
		if err != nil {
			return err
		}
		t.to.mu.Lock()
		t.to.rows = append(t.to.rows, record{t.row, raw})
		t.to.mu.Unlock()
	}
	return t.Tx.SetTimer(timer)
}

// rawWriter writes with bbolt alone: one goroutine puts all waiting records into one transaction.
type rawWriter struct {
	*testing.B
	jobs chan rawJob
}

type rawJob struct {
	record
	done chan error
}

func openRaw(b *testing.B) rawWriter {
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "raw.db"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, InitialMmapSize: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	w := rawWriter{B: b, jobs: make(chan rawJob)}
	var working sync.WaitGroup
	working.Go(func() { w.work(db) })
	b.Cleanup(func() {
		close(w.jobs)
		working.Wait()
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return w
}

func (w rawWriter) write(r record) {
	j := rawJob{r, make(chan error, 1)}
	w.jobs <- j
	if err := <-j.done; err != nil {
		w.Error(err)
	}
}

func (w rawWriter) work(db *bbolt.DB) {
	for key := 0; ; {
		first, ok := <-w.jobs
		if !ok {
			return
		}
		waiting := []rawJob{first}
		err := db.Update(func(tx *bbolt.Tx) error {
			inbox, err := tx.CreateBucketIfNotExists([]byte("inbox"))
			if err != nil {
				return err
			}
			timers, err := tx.CreateBucketIfNotExists([]byte("timers"))
			if err != nil {
				return err
			}
			for i := 0; i < len(waiting); i++ {
				key++
				k := fmt.Appendf(nil, "interaction:%032d", key)
				if err := inbox.Put(k, waiting[i].row); err != nil {
					return err
				}
				if err := timers.Put(k, waiting[i].timer); err != nil {
					return err
				}
				select {
				case j, ok := <-w.jobs:
					if ok {
						waiting = append(waiting, j)
					}
				default:
				}
			}
			return nil
		})
		for _, j := range waiting {
			j.done <- err
		}
	}
}
