package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/agent/gateway"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render/control"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/shop"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// workweek is the demo, in which people, another agent and an operator work for some days. Slack and the model are
// sometimes down.
type workweek struct {
	*synctestHarness
	*recorder
	agenda []appointment    // sorted by time
	seen   map[string]bool  // noticed by people: requests at a stage, and runs with an unknown outcome
	hurry  int              // number of the next requests to the support agent that are approved at once
	down   bool             // true: the bot or Slack is down
	ci     *http.Client     // the other agent's client
	gate   *testkit.Network // the gateway's listener
	calls  sync.WaitGroup   // the other agent's calls in progress
	counts map[string]int

	chance *rand.Rand // decides what people do; separate from noise, so that each run has the same decisions

	mu    sync.Mutex
	noise *rand.Rand // decides how long programs work
}

// appointment is an action at a time.
type appointment struct {
	at time.Time
	do func()
}

// weekPolicy returns the demo's policy with longer deadlines, and with a tool whose outcome can become unknown.
func weekPolicy() []byte {
	text := strings.NewReplacer(
		"expires_after: 5m", "expires_after: 4h", "escalate_after: 45s", "escalate_after: 90m", "run_within: 2m", "run_within: 30m",
		"sha256:e882bb8c9abf717b5708d08be6004a4b3102d13239bb1781691cecc59b6b8b1e", "sha256:"+tokenHash(ciToken),
		"process_payment: {risk: high,", "book_courier: {risk: high, confirm: true}\n  process_payment: {risk: high, break_glass: true,",
		"issue_refund, process_payment,", "issue_refund, process_payment, book_courier,",
	).Replace(string(demoPolicy))
	return []byte(text)
}

// slowStore is a store on a disk that needs some milliseconds for each transaction.
type slowStore struct {
	*bolt.Store
	takes func() time.Duration
}

func (s slowStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	time.Sleep(s.takes())
	return s.Store.Update(ctx, fn)
}

// inWeek plays the first hours of the week, and records the metrics of each minute.
func inWeek(t *testing.T, hours int, r *recorder) {
	w := &workweek{recorder: r, chance: testkit.Chance(20261127, 1), noise: testkit.Chance(20261127, 2), seen: map[string]bool{}, counts: map[string]int{}}
	dir := t.TempDir()
	r.dir = dir
	sold := shop.New(time.Now)
	server := httptest.NewUnstartedServer(closing(sold.Handler())) // outside of faked time
	server.Config.ReadHeaderTimeout = 10 * time.Second             // in real time: the timeout ends a connection that the bot opened and did not use
	server.Start()
	defer server.Close()
	inFakedTime(t, func(b *synctestHarness) {
		w.synctestHarness = b
		w.prepare(dir, catalogOfWeek(sold, server.URL+"/mcp"))
	}, func(b *synctestHarness) {
		b.ws.SetRealRates(true)
		b.ok(b.endAll())
		b.pass(time.Until(weekBegins))
		w.restarts()
		ends := weekBegins.Add(time.Duration(hours) * time.Hour)
		w.plan(ends)
		w.play(ends)
		t.Logf("hours=%d scrapes=%d series=%d %v", hours, r.scrapes, len(r.last), w.counts)
	})
}

// closing makes a server end each connection after its answer, and refuse streams of events. In faked time, no time
// passes while a goroutine reads from a server outside of faked time.
func closing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Connection", "close")
			http.Error(w, "this server sends no events", http.StatusMethodNotAllowed)
			return
		}
		h.ServeHTTP(&closingWriter{ResponseWriter: w}, r)
	})
}

// closingWriter replaces the header Connection of an answer.
type closingWriter struct{ http.ResponseWriter }

func (w *closingWriter) WriteHeader(status int) {
	w.Header().Set("Connection", "close")
	w.ResponseWriter.WriteHeader(status)
}

func (w *closingWriter) Write(p []byte) (int, error) {
	w.Header().Set("Connection", "close")
	return w.ResponseWriter.Write(p)
}

func (w *closingWriter) Flush() {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

func catalogOfWeek(s *shop.Shop, url string) catalog.Config {
	c := shopCatalog(s, url)
	c.Registry = &agent.Registry{}
	return c
}

// prepare sets up the bot.
func (w *workweek) prepare(dir string, c catalog.Config) {
	b := w.synctestHarness
	for _, tool := range agent.BuiltIns() {
		b.ok(c.Registry.Register(tool))
	}
	var n atomic.Int64
	b.ok(c.Registry.Register(agent.Tool{
		Name: "book_courier", Description: "Books a courier.", Effect: approvers.Unprotected, Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}}}`),
		Run: func(context.Context, agent.Invocation) (string, error) {
			time.Sleep(w.spread(3 * time.Second))
			if n.Add(1)%4 == 0 {
				return "", fmt.Errorf("the courier's server broke the connection: %w", agent.ErrOutcomeUnknown)
			}
			return `{"booked":true}`, nil
		},
	}))
	b.ok(c.Registry.Register(agent.Tool{ // the policy does not name the tool, so a call is critical
		Name: "write_off", Description: "Writes off what a customer owes.", Effect: approvers.Idempotent, Schema: json.RawMessage(`{"type":"object","properties":{"user_id":{"type":"string"}}}`),
		Run: func(context.Context, agent.Invocation) (string, error) { return `{"done":true}`, nil },
	}))
	tools, err := catalog.New(c)
	b.ok(err)
	b.setup.tools = tools
	b.setup.policies, err = policyfile.New("demo.yaml", weekPolicy(), tools, b.setup.log)
	b.ok(err)
	b.setup.store = slowStore{b.db, func() time.Duration { return w.spread(2 * time.Millisecond) }}
	b.setup.seal, err = openSealing(b.ctx, config.AuditBeside(filepath.Join(dir, "week.db")), b.db, b.setup.log)
	b.ok(err)
	b.setup.unlimited = false
	b.setup.http.Timeout = 20 * time.Second
	b.note = func(apiCall) {}
	b.front = func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/api/") {
				time.Sleep(w.spread(120 * time.Millisecond))
			}
			h.ServeHTTP(rw, r)
		})
	}
	b.instead = func(http.Handler) http.Handler {
		return scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(func(ctx context.Context, r scriptedmodel.Request) (scriptedmodel.Reply, error) {
			time.Sleep(w.spread(4 * time.Second))
			return runner(ctx, r)
		})})
	}
	w.ci = &http.Client{Timeout: 90 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		return w.gate.DialContext(ctx, network, addr)
	}, DisableKeepAlives: true}}
	b.setup.receiptKey = gateway.NewReceiptKey()
	w.opens()
}

// opens opens the gateway's listener for the next process of the bot.
func (w *workweek) opens() {
	w.gate = testkit.NewNetwork()
	w.setup.gateway = w.gate
	w.started = time.Now()
}

// restarts starts the bot as a new process.
func (w *workweek) restarts() {
	w.opens()
	w.start()
	w.pass(2 * time.Second)
}

// spread returns a random duration of the work of a program. Half of the durations are shorter than the median.
func (w *workweek) spread(median time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return spread(w.noise, median, .5)
}

// The method "later" returns a random duration until a person acts. A few durations are much longer than the median.
func (w *workweek) later(median time.Duration) time.Duration { return spread(w.chance, median, 1.1) }

func spread(r *rand.Rand, median time.Duration, by float64) time.Duration {
	return time.Duration(float64(median) * math.Exp(by*r.NormFloat64()))
}

// The method "at" adds an action to the agenda.
func (w *workweek) at(at time.Time, do func()) {
	i, _ := slices.BinarySearchFunc(w.agenda, at, func(a appointment, at time.Time) int {
		if a.at.After(at) {
			return 1
		}
		return -1
	})
	w.agenda = slices.Insert(w.agenda, i, appointment{at, do})
}

// The function "working" returns the time, or the beginning of the next working day if nobody works at this time.
func working(at time.Time) time.Time {
	for {
		day := at.Truncate(24 * time.Hour)
		begins, ends := day.Add(8*time.Hour), day.Add(17*time.Hour)
		switch free := at.Weekday() == time.Saturday || at.Weekday() == time.Sunday; {
		case free || !at.Before(ends):
			at = day.Add(32 * time.Hour)
		case at.Before(begins):
			at = begins
		default:
			return at
		}
	}
}

// play runs the agenda until a time, and records the metrics once a minute.
func (w *workweek) play(until time.Time) {
	ctx, stop := context.WithCancel(w.ctx)
	w.ctx = ctx
	defer w.calls.Wait()
	defer stop()
	for minute := weekBegins; !minute.After(until); minute = minute.Add(time.Minute) {
		for len(w.agenda) > 0 && !w.agenda[0].at.After(minute) {
			next := w.agenda[0]
			w.agenda = w.agenda[1:]
			w.pass(time.Until(next.at))
			next.do()
		}
		w.pass(time.Until(minute))
		if w.bot == nil {
			w.ok(w.take(nil))
			continue
		}
		w.look()
		w.ok(w.take(w.bot.metrics))
	}
}

// plan fills the agenda with requests of people and of the other agent, with outages, and with a pause.
func (w *workweek) plan(ends time.Time) {
	for at := working(weekBegins.Add(2 * time.Minute)); at.Before(ends); at = working(at.Add(w.later(8 * time.Minute))) {
		w.at(at, w.asks)
	}
	for at := working(weekBegins.Add(20 * time.Minute)); at.Before(ends); at = working(at.Add(w.later(50 * time.Minute))) {
		w.at(at, func() { w.calls.Go(func() { w.deploys(w.ctx, fmt.Sprint(at.Unix())) }) })
	}
	tuesday := weekBegins.Truncate(24 * time.Hour).Add(24 * time.Hour)
	thursday := tuesday.Add(48 * time.Hour)
	w.at(tuesday.Add(7*time.Hour), func() { w.ok(w.bot.end()); w.bot = nil })
	w.at(tuesday.Add(7*time.Hour+10*time.Minute), w.restarts)
	var back func()
	w.at(tuesday.Add(10*time.Hour+20*time.Minute), func() { w.writes(`run process_payment {"order_id":"ORD-126","amount":59,"currency":"USD"}`) })
	w.at(tuesday.Add(10*time.Hour+30*time.Minute), func() { back, w.down = w.cut(testkit.NetworkRefuses), true })
	w.at(tuesday.Add(11*time.Hour+5*time.Minute), w.breaksGlass)
	w.at(tuesday.Add(11*time.Hour+40*time.Minute), func() { back(); w.down = false })
	w.at(thursday.Add(13*time.Hour+30*time.Minute), func() { w.model.SetState(testkit.NetworkRefuses) })
	w.at(thursday.Add(14*time.Hour+10*time.Minute), func() { w.model.SetState(testkit.NetworkWorks) })
	w.at(thursday.Add(25*time.Hour), func() { w.ok(w.bot.workflow.Pauses.Pause(w.ctx, approvers.Operator("anna"), "refunds look wrong")) })
	w.at(thursday.Add(25*time.Hour+25*time.Minute), func() { w.ok(w.bot.workflow.Pauses.Resume(w.ctx, approvers.Operator("anna"), "they are right")) })
}

// asks makes Sam ask for something.
func (w *workweek) asks() {
	switch d := w.chance.Float64(); {
	case d < .30:
		w.writes(`run search_orders {"order_id":"ORD-131"}`)
	case d < .52:
		w.hurry += b2i(w.chance.Float64() < .4)
		w.writes(`run apply_discount {"order_id":"ORD-132","percent":5}`)
	case d < .70:
		w.writes(`run issue_refund {"order_id":"ORD-129","amount":3,"currency":"USD","reason":"scratched"}`)
	case d < .84:
		w.writes(`run send_email {"to":"jane@example.com","subject":"Your order","body":"It is on its way."}`)
	case d < .93:
		w.writes(`run book_courier {"n":"1"}`)
	default:
		w.writes(`run write_off {"user_id":"USR-457"}`)
	}
}

// The method "writes" makes Sam write to the bot.
func (w *workweek) writes(text string) {
	w.counts["messages"]++
	w.says(text)
	for i := range 20 {
		w.at(time.Now().Add(time.Duration(i+1)*time.Second), func() {
			if w.hurry > 0 {
				w.look()
			}
		})
	}
}

// members are the people of each role, with the median of the time until they decide.
var members = map[string]struct {
	people []string
	median time.Duration
}{
	"support-agent":    {[]string{"ada", "priya"}, 4 * time.Minute},
	"team-lead":        {[]string{"teo"}, 12 * time.Minute},
	"finance-director": {[]string{"ingrid", "kenji"}, 40 * time.Minute},
}

// look makes people notice new requests, and the operator notice runs with an unknown outcome.
func (w *workweek) look() {
	if w.bot == nil {
		return
	}
	var open []approvers.Request
	var unknown []store.Timer
	w.view(func(r store.Reader) (err error) {
		open, err = r.OpenRequests(store.RequestCursor{}, 1000)
		if err == nil {
			unknown, err = r.Timers(store.TimerLeave, 100)
		}
		return err
	})
	for _, r := range open {
		if r.State != approvers.Pending || r.Tool == "process_payment" {
			continue
		}
		role := r.CurrentStage().Approver
		key := fmt.Sprint(r.ID, role, len(r.Decisions))
		if w.seen[key] {
			continue
		}
		w.seen[key] = true
		of := members[role]
		who := of.people[int(w.chance.Float64()*float64(len(of.people)))]
		if n := len(r.Decisions); n > 0 { // the other person of a quorum
			who = of.people[n%len(of.people)]
		}
		verdict, at := "Approve", working(time.Now().Add(w.later(of.median)))
		switch d := w.chance.Float64(); {
		case role == "support-agent" && w.hurry > 0:
			w.hurry--
			at = time.Now().Add(500 * time.Millisecond)
		case d < .06:
			w.counts["ignored"]++
			continue
		case d < .18:
			verdict = "Reject"
		}
		w.at(at, func() { w.decides(who, r.ID, verdict, at.Add(5*time.Hour)) })
	}
	for _, u := range unknown {
		if key := "unknown " + u.Ref; !w.seen[key] {
			w.seen[key] = true
			w.at(working(time.Now().Add(w.later(30*time.Minute))), func() { w.reports(u.Ref) })
		}
	}
}

// decides makes a person press a button of a request's card. If the person does not see the card, or Slack is down,
// the person tries again later.
func (w *workweek) decides(who, id, verdict string, until time.Time) {
	again := func(d time.Duration) {
		if at := time.Now().Add(d); at.Before(until) {
			w.at(at, func() { w.decides(who, id, verdict, until) })
		}
	}
	var r approvers.Request
	var cards []store.OutboxMessage
	w.view(func(rd store.Reader) (err error) {
		if r, err = rd.Request(id); err == nil {
			cards, err = rd.OutboxMessagesOf(id)
		}
		return err
	})
	if r.State != approvers.Pending {
		return
	}
	if w.down || w.bot == nil {
		again(3 * time.Minute)
		return
	}
	for _, c := range cards {
		if c.Kind != store.OutboxCard || c.State != store.OutboxShown {
			continue
		}
		messages, err := w.as(who).Messages(w.ctx, c.Channel, "")
		if err != nil {
			continue // in a direct message to somebody else
		}
		i := slices.IndexFunc(messages, func(m workspaceclient.Message) bool { return m.TS == c.TS })
		if i < 0 {
			continue
		}
		e, ok := buttonFor(messages[i], verdict, id)
		if !ok || w.as(who).Press(w.ctx, messages[i], e) != nil {
			continue
		}
		switch {
		case verdict == "Reject":
			w.submits(who, "reason", "not this one")
		case e.ActionID == control.ActTyped:
			w.submits(who, control.FieldTyped, "USR-457")
		}
		w.counts[verdict]++
		return
	}
	again(time.Second)
}

// submits makes a person submit the form that opens.
func (w *workweek) submits(who, field, text string) {
	for range 100 {
		w.pass(100 * time.Millisecond)
		form, err := w.as(who).Views(w.ctx)
		w.ok(err)
		if len(form) > 0 && form[len(form)-1].Submit != nil {
			err := w.as(who).Submit(w.ctx, form[len(form)-1].ID, map[string]string{field: text})
			if err == nil {
				return
			}
			if workspaceclient.Code(err) != "view_not_found" { // the bot has just replaced the form
				w.ok(err)
			}
		}
	}
	w.Errorf("%s can't submit the form", who)
}

// breaksGlass makes the operator approve the payment that waits, because Slack is down.
func (w *workweek) breaksGlass() {
	var open []approvers.Request
	w.view(func(r store.Reader) (err error) {
		open, err = r.OpenRequests(store.RequestCursor{}, 1000)
		return err
	})
	for _, r := range open {
		if r.Tool == "process_payment" && r.State == approvers.Pending {
			_, err := w.bot.workflow.Requests.BreakGlass(w.ctx, workflow.Click{
				Who: approvers.Operates(approvers.Operator("anna")), Request: r.ID, Kind: approvers.Approve, Digest: r.Digest, Reason: "Slack is down, agreed with Teo by phone",
			})
			w.ok(err)
			return
		}
	}
	w.Error("no payment waits")
}

// The method "reports" makes the operator report that a run with an unknown outcome happened.
func (w *workweek) reports(execution string) {
	if w.bot == nil {
		w.at(time.Now().Add(10*time.Minute), func() { w.reports(execution) })
		return
	}
	w.counts["reports"]++
	w.ok(w.bot.workflow.Runs.Report(w.ctx, workflow.Click{Who: approvers.Operates(approvers.Operator("anna")), Execution: execution, Reason: "seen at the courier's"}, workflow.Happened))
}

// deploys makes the other agent ask the gateway for a deployment, wait for the decision, and report the outcome.
func (w *workweek) deploys(ctx context.Context, n string) {
	var answer struct {
		ID, Status string
		Digest     string `json:"args_sha256"`
	}
	body := fmt.Sprintf(`{"tool":"deploy","args":{"service":"shop","version":"1.%s"},"summary":"All tests passed","wait":55}`, n)
	method, path := http.MethodPost, "/v1/requests"
	for ctx.Err() == nil {
		status, raw, err := w.gateway(ctx, method, path, body, n)
		switch {
		case err != nil || status >= 500 || status == http.StatusTooManyRequests:
			select {
			case <-time.After(30 * time.Second):
			case <-ctx.Done():
			}
			continue
		case status >= 400:
			w.Errorf("the gateway: %d %s", status, raw)
			return
		}
		if err := json.Unmarshal(raw, &answer); err != nil {
			w.Errorf("the gateway: %s: %v", raw, err)
			return
		}
		method, path, body = http.MethodGet, "/v1/requests/"+answer.ID+"?wait=55", ""
		if answer.Status == "pending" {
			continue
		}
		break
	}
	if answer.Status != "approved" {
		return
	}
	status, raw, err := w.gateway(ctx, http.MethodPost, "/v1/requests/"+answer.ID+"/claim", fmt.Sprintf(`{"args_sha256":%q}`, answer.Digest), "")
	if err != nil || status != http.StatusOK {
		if ctx.Err() == nil {
			w.Errorf("the claim: %d %s %v", status, raw, err)
		}
		return
	}
	time.Sleep(w.spread(40 * time.Second))
	_, _, _ = w.gateway(ctx, http.MethodPost, "/v1/requests/"+answer.ID+"/outcome", `{"status":"succeeded","text":"deployed"}`, "")
}

func (w *workweek) gateway(ctx context.Context, method, path, body, key string) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://gate.test"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+ciToken)
	req.Header.Set("Content-Type", "application/json")
	if key != "" && method == http.MethodPost {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := w.ci.Do(req)
	if err != nil {
		return 0, nil, err
	}
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, errors.Join(err, resp.Body.Close())
}
