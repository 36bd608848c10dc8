package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/bot/render/control"
	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/store"
)

// sending lists the Web API methods that show a message.
var sending = []string{"chat.postMessage", "chat.update", "chat.startStream", "chat.appendStream", "chat.postEphemeral", "views.publish", "response_url"}

// refusalsOf returns the refusals that the test tries. The short version tries only a few refusals of each sort.
func refusalsOf(long bool) (list []refusalRule) {
	add := func(r refusalRule) {
		r.name = strings.ReplaceAll(fmt.Sprintf("%s %s%s", r.name, r.code, map[bool]string{true: " with a reason"}[r.reason]), "  ", " ")
		list = append(list, r)
	}
	answers := []refusalRule{
		{name: "HTTP 404", status: http.StatusNotFound}, {name: "HTTP 500", status: http.StatusInternalServerError},
		{name: "an empty body"}, {name: "HTML", body: "<html>no</html>"}, {name: "unknown", code: "unknown_method"},
	}
	kinds := map[string][]string{
		"newer kinds": {"task_card", "plan", "context_actions", "table"}, "rich text": {"rich_text"}, "all but sections": {"task_card", "plan", "context_actions", "table", "rich_text", "header", "context", "divider"},
		"buttons": {"actions", "context_actions"}, "every block": {"any"},
	}
	codes := []string{"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "invalid_attachments"}
	for _, what := range slices.Sorted(maps.Keys(kinds)) {
		for _, reason := range []bool{true, false} {
			if !long && (!reason || what != "newer kinds" && what != "buttons") {
				continue
			}
			add(refusalRule{name: what, methods: sending, kinds: kinds[what], code: codes[0], reason: reason})
		}
		if long {
			for _, code := range codes[1:] {
				add(refusalRule{name: what, methods: sending, kinds: kinds[what], code: code})
			}
			add(refusalRule{name: what + " 400", methods: sending, kinds: kinds[what], status: http.StatusBadRequest})
		}
	}
	updates := []string{"cant_update_message", "message_not_found", "is_inactive", "edit_window_closed", "invalid_blocks", "block_mismatch", "channel_not_found", "msg_too_long", "as_user_not_supported", "not_allowed_token_type"}
	for i, code := range updates {
		if long || i < 1 {
			add(refusalRule{name: "changes", methods: []string{"chat.update", "response_url"}, code: code})
		}
		if long || i < 1 {
			add(refusalRule{name: "changes and deletions", methods: []string{"chat.update", "chat.delete", "response_url"}, code: code})
		}
	}
	optional := map[string][]string{
		"changes": {"chat.update", "response_url"}, "files": {"files.getUploadURLExternal"}, "shared files": {"files.completeUploadExternal"}, "statuses": {"assistant.threads.setStatus"},
		"ephemerals": {"chat.postEphemeral"}, "Home tabs": {"views.publish"}, "links": {"chat.getPermalink"}, "streams": {"chat.startStream", "chat.appendStream", "chat.stopStream"},
	}
	for _, what := range slices.Sorted(maps.Keys(optional)) {
		for i, a := range answers {
			if long || i == 0 && what == "files" {
				a.name, a.methods = what+", "+a.name, optional[what]
				add(a)
			}
		}
		for _, code := range []string{"missing_scope", "not_allowed_token_type", "team_access_not_granted", "restricted_action", "fatal_error"} {
			if long && what != "changes" && (what != "statuses" || code != "restricted_action") { // this refuses a status in one thread only
				add(refusalRule{name: what, methods: optional[what], code: code})
			}
		}
	}
	posts := []string{"msg_too_long", "restricted_action", "not_in_channel", "is_archived", "no_text", "fatal_error", "team_access_not_granted", "channel_not_found", "missing_scope", "ratelimited", "ekm_access_denied"}
	for i, code := range posts {
		if long || i < 1 {
			add(refusalRule{name: "posts for a while", methods: []string{"chat.postMessage"}, code: code, lasts: 15 * time.Minute})
		}
	}
	for _, a := range append(answers, refusalRule{name: "HTTP 429", status: http.StatusTooManyRequests}) {
		if long {
			a.name, a.methods, a.lasts = "posts for a while, "+a.name, []string{"chat.postMessage"}, 15*time.Minute
			add(a)
		}
	}
	for _, code := range []string{"metadata_too_large", "invalid_metadata_format"} {
		if !long {
			break
		}
		add(refusalRule{name: "metadata", methods: []string{"chat.postMessage", "chat.update"}, code: code, named: true})
	}
	add(refusalRule{name: "lost answers and dropped metadata", methods: []string{"chat.postMessage"}, unheard: true, bare: true})
	return list
}

// TestRefusals makes Slack refuse one feature after the other: kinds of blocks, changes, deletions, streams, files,
// statuses and, for a while, every post. For each refusal, the bot has to show every kind of message. At the end, Slack
// must show every answer, no button may decide a settled request, and the log must name the refused feature.
//
// COUNTERSIGN_REFUSALS=2 tries every refusal, instead of a few refusals of each sort. The test prints the number of ways
// in which Slack refused (ways), of kinds of outbox messages (kinds), and of combinations of a way with a kind of
// message or with a method (pairs).
func TestRefusals(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	long := testkit.Size(t, "COUNTERSIGN_REFUSALS", 1) > 1
	var sum refusalSum
	all, refused, pairs, tried := outboxKinds(t), map[string]bool{}, 0, 0
	for i, r := range refusalsOf(long) {
		t.Run(r.name, func(t *testing.T) {
			testkit.EveryOther(t, "COUNTERSIGN_REFUSALS", i)
			var one refusalSum
			defer func() { // also runs if the test has failed
				sum.refusals += one.refusals
				sum.lost += one.lost
				sum.live += one.live
				sum.silent += one.silent
				maps.Copy(refused, one.kinds)
				pairs += len(one.kinds)
				tried++
			}()
			inRefusal(t, r, all, &one)
			if one.lost+one.live+one.silent > 0 {
				t.Errorf("lost=%d live=%d silent=%d", one.lost, one.live, one.silent)
			}
		})
	}
	for _, kind := range all {
		if long && tried == len(refusalsOf(true)) && !refused[string(kind)] {
			t.Errorf("Slack refused no message of the kind %q", kind)
		}
	}
	t.Logf("ways=%d kinds=%d refusals=%d pairs=%d lost=%d live=%d silent=%d refused=%v", tried, len(all), sum.refusals, pairs, sum.lost, sum.live, sum.silent, slices.Sorted(maps.Keys(refused)))
}

// outboxKinds returns the kinds of outbox messages that the code declares.
func outboxKinds(t *testing.T) (kinds []store.OutboxKind) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../store/outbox.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "OutboxKind" {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, store.OutboxKind(value))
		}
		return false
	})
	if len(kinds) < 24 {
		t.Fatalf("store/outbox.go declares %d kinds: %v", len(kinds), kinds)
	}
	return kinds
}

type refusalSum struct {
	refusals, lost, live, silent int
	kinds                        map[string]bool // kinds of outbox messages, and methods, that were refused
}

// wantedKinds is a store that records the kinds of all outbox messages written to it.
type wantedKinds struct {
	store.Store
	mu  sync.Mutex
	all map[store.OutboxKind]bool
	now map[string]store.OutboxKind // the current kind of each outbox message; a draft becomes another kind
}

func (k *wantedKinds) Update(ctx context.Context, fn func(store.Tx) error) error {
	return k.Store.Update(ctx, func(tx store.Tx) error { return fn(wantedKindsTx{tx, k}) })
}

type wantedKindsTx struct {
	store.Tx
	of *wantedKinds
}

func (t wantedKindsTx) PutOutboxMessage(s store.OutboxMessage) error {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.all[s.Kind], t.of.now[s.ID] = true, s.Kind
	return t.Tx.PutOutboxMessage(s)
}

// kindOf returns the kind of an outbox message, or "" if there is no such message.
func (k *wantedKinds) kindOf(message string) store.OutboxKind {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now[message]
}

// refusedWorld is a synctestHarness in which Slack refuses calls.
type refusedWorld struct {
	*synctestHarness
	rule    refusalRule
	proxy   *refusingSlack
	kinds   *wantedKinds
	threads []string
	keys    []approvers.SealKey
	unasked []string // questions that nobody could read while they could be answered
}

// refusedTools replaces the line "tools:" of synctestPolicy. refusedTools adds settings, and the tools that only this
// test uses.
const refusedTools = `paused_by: [director]
audit: {channel: "#support-approvals", every: 10m}
report: {channel: "#support-approvals"}
operators: {channel: "#support-approvals"}
clients:
  ci: {token: "sha256:0000000000000000000000000000000000000000000000000000000000000000", agent: support, owner: U0100, tools: ["*"], webhook: {url: "https://ci.example.com/hook", secret: "${CI_WEBHOOK}"}}
caps: {approver: 4}
tools:
  fragile: {risk: high, confirm: true}
  draw: {risk: low}
  book: {risk: low}
`

// writesSlowly is a proxy in front of a model. writesSlowly sends the answer to "at length" in parts, so that Slack
// shows a draft of the answer.
func writesSlowly(next http.Handler) http.Handler {
	slow := (&slowly{paragraphs: []string{"Once upon a time.", "There was a draft.", "It grew."}}).handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte("at length")) {
			slow.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// inRefusal runs the test for one refusal.
func inRefusal(t *testing.T, rule refusalRule, kinds []store.OutboxKind, sum *refusalSum) {
	w := &refusedWorld{rule: rule, proxy: &refusingSlack{}}
	keyFile := filepath.Join(t.TempDir(), "key")
	inFakedTime(t, func(b *synctestHarness) {
		w.synctestHarness = b
		time.Sleep(time.Until(time.Date(2000, 1, 3, 9, 0, 0, 0, time.UTC))) // on Monday at nine, the weekly report is due
		b.instead = func(http.Handler) http.Handler {
			return writesSlowly(scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(w.think)}))
		}
		b.front = func(h http.Handler) http.Handler { w.proxy.next = h; return w.proxy }
		var err error
		w.keys, err = audit.OpenKeyFile(b.ctx, keyFile, b.db, b.setup.log)
		b.ok(err)
		w.kinds = &wantedKinds{Store: b.db, all: map[store.OutboxKind]bool{}, now: map[string]store.OutboxKind{}}
		b.setup.store, w.proxy.kindOf = w.kinds, w.kinds.kindOf
		b.ok(b.setup.tools.Register(agent.Tool{
			Name: "fragile", Description: "Breaks off.", Effect: approvers.Unprotected, Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}}}`),
			Run: func(context.Context, agent.Invocation) (string, error) {
				return "", fmt.Errorf("no answer came: %w", agent.ErrOutcomeUnknown)
			},
		}))
		b.ok(b.setup.tools.Register(agent.Tool{
			Name: "draw", Description: "Draws.", Effect: approvers.ReadOnly, Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}}}`),
			Run: func(_ context.Context, in agent.Invocation) (string, error) {
				return `{"drawn":true}`, in.Attach(agent.File{Name: "chart.txt", Type: "text/plain", Data: []byte("the chart")})
			},
		}))
		book := booking(agent.Form{From: "the server travel", Text: "Where do you want to go?", Schema: json.RawMessage(tripForm)})
		book.Description, book.Schema = "Books.", json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}}}`)
		b.ok(b.setup.tools.Register(book))
		for _, tool := range agent.BuiltIns() {
			b.ok(b.setup.tools.Register(tool))
		}
		policy := strings.Replace(synctestPolicy, "tools:\n", refusedTools, 1)
		policy = strings.Replace(policy, "plain: {risk: high, confirm: true", "plain: {risk: high, confirm: true, grants: {uses: 3, within: 30m}", 1)
		b.usePolicy(policy)
	}, func(*synctestHarness) {
		w.proxy.refuses(rule)
		w.play()
		*sum = w.account()
		for _, kind := range kinds {
			if !w.kinds.all[kind] {
				t.Errorf("no message of the kind %q was wanted: have the campaign play it", kind)
			}
		}
	})
}

// TestRefusedKindsAreRemembered: if Slack refuses a kind of block, the bot leaves out such blocks, even after a
// restart. After a day, the bot tries such a block again. The log reports each refusal once, with Slack's reason.
func TestRefusedKindsAreRemembered(t *testing.T) {
	proxy := &refusingSlack{kindOf: func(string) store.OutboxKind { return "" }}
	w := &refusedWorld{proxy: proxy}
	inFakedTime(t, func(b *synctestHarness) {
		w.synctestHarness = b
		b.instead = func(http.Handler) http.Handler {
			return scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(w.think)})
		}
		b.front = func(h http.Handler) http.Handler { proxy.next = h; return proxy }
	}, func(b *synctestHarness) {
		proxy.refuses(refusalRule{name: "tables", methods: sending, kinds: []string{"table"}, code: "invalid_blocks", reason: true})
		table := func(when string, refusals int) {
			t.Helper()
			w.says("table now")
			b.pass(30 * time.Second)
			if n := len(proxy.counted()); n != refusals {
				t.Errorf("%s: Slack refused %d calls, want %d", when, n, refusals)
			}
			if n := len(b.log.with("Slack refuses blocks")); n != refusals {
				t.Errorf("%s: the log says it %d times", when, n)
			}
		}
		table("at first", 1)
		table("then", 1)
		b.restart()
		table("after a restart", 1)
		if lines := b.log.with("Slack refuses blocks"); !strings.Contains(lines[0], "kinds=[table]") || !strings.Contains(lines[0], "unsupported type: table [json-pointer:/blocks/") {
			t.Errorf("the log says %s", lines[0])
		}
		aDay := func() { // time passes fast while nothing runs
			b.ok(b.bot.end())
			b.pass(25 * time.Hour)
			b.start()
			b.pass(10 * time.Second)
		}
		aDay()
		table("a day later", 2)
		proxy.refuses(refusalRule{})
		aDay()
		table("when Slack takes it", 2)
		table("and afterwards", 2)
		for _, m := range w.everything() {
			if strings.Contains(m.Text, "A table") && !strings.Contains(m.Text+workspaceclient.Text(m.Blocks), "cell2") {
				t.Errorf("the table is lost: %s", m.Text)
			}
		}
	})
}

// think is the model. It accepts all commands of synctestHarness's model, and further commands.
func (w *refusedWorld) think(ctx context.Context, r scriptedmodel.Request) (scriptedmodel.Reply, error) {
	last := r.Last()
	if last.Role != "user" { // makes all answers in a thread different
		return scriptedmodel.Reply{Content: fmt.Sprintf("That is settled after %d messages: %s", len(r.Messages), last.Content)}, nil
	}
	words := strings.Fields(last.Content)
	for i, word := range words {
		switch word {
		case "pair":
			var calls []scriptedmodel.Call
			for _, n := range words[i+1 : i+3] {
				calls = append(calls, scriptedmodel.NewCall("plain", map[string]string{"n": n}))
			}
			return scriptedmodel.Reply{Calls: calls}, nil
		case "inquire":
			return scriptedmodel.Reply{Calls: []scriptedmodel.Call{scriptedmodel.NewCall(approvers.ToolAskPeople, map[string]any{"question": "Which colour for " + words[i+1] + "?", "options": []string{"Red", "Blue"}})}}, nil
		case "fragile", "draw", "book":
			return scriptedmodel.Reply{Calls: []scriptedmodel.Call{scriptedmodel.NewCall(word, map[string]string{"n": words[i+1]})}}, nil
		case "table":
			return scriptedmodel.Reply{Content: "A table:\n\n| a | b |\n|---|---|\n| cell1 | cell2 |\n\nThe last line."}, nil
		case "broken":
			return scriptedmodel.Reply{}, errors.New("the model is broken")
		}
	}
	return w.synctestHarness.think(ctx, r)
}

// The method "says" posts a message of sam in a new thread.
func (w *refusedWorld) says(text string) string {
	thread := w.synctestHarness.says(text)
	w.threads = append(w.threads, thread)
	return thread
}

func identityOf(user, name string) approvers.Identity {
	return approvers.Identity{ID: approvers.Who("T0001", user), Name: name}
}

var (
	sam, teo, ingrid, kenji = identityOf("U0100", "Sam"), identityOf("U0002", "Teo"), identityOf("U0003", "Ingrid"), identityOf("U0004", "Kenji")
)

// The method "decides" makes somebody decide a call without the card, because the card may have no buttons. People can
// also decide on their Home tab, and operators at the command line.
func (w *refusedWorld) decides(who approvers.Identity, n string, kind approvers.DecisionKind) {
	w.Helper()
	r := w.asked(n)
	if _, err := w.bot.workflow.Requests.Decide(w.ctx, workflow.Click{At: time.Now(), Who: who, Request: r.ID, Kind: kind, Digest: r.Digest, Whole: true, Typed: true, Reason: "so it is"}); err != nil {
		w.Errorf("%s can't decide about %s: %v", who.Name, n, err)
	}
}

// play makes the bot show every kind of message, within two hours.
func (w *refusedWorld) play() {
	began := time.Now()
	wf := w.bot.workflow
	if _, err := wf.People.SetAway(w.ctx, workflow.Departure{Who: kenji, Until: began.Add(24 * time.Hour), Delegate: &ingrid}); err != nil {
		w.Errorf("kenji can't be away: %v", err)
	}
	w.switchesWebhookOff()
	grants := w.says("plain m1")
	w.asked("m1") // first, while no other request waits in a queue
	w.says("say hello")
	w.says("tell long")
	w.says("table now")
	w.says("write at length")
	w.says("draw d1")
	w.says("broken b1")
	w.says("pair p1 p2")
	waits := w.says("plain a1")
	w.says("plain r1")
	w.says("plain late")
	w.says("grave g1")
	w.says("fragile f1")
	w.says("inquire walls")
	w.says("inquire doors")
	booked := w.says("book b1")
	w.ok(wf.Homes.Open(w.ctx, "", "U0002", "", 0))
	w.pass(30 * time.Second)
	for _, n := range []string{"p1", "a1", "f1"} {
		w.asked(n)
	}
	w.seals()
	w.choosesRed("walls")
	_, err := w.as("sam").Say(w.ctx, "#support", waits, "and hurry")
	w.ok(err)
	w.ok(w.as("sam").Edit(w.ctx, "#support", waits, "@Countersign plain a1 please"))
	w.pass(5 * time.Second)
	r := w.asked("a1")
	if _, err := wf.Requests.Say(w.ctx, workflow.Click{At: time.Now(), Who: teo, Request: r.ID, Reason: "Why?", Digest: r.Digest}, approvers.Question); err != nil {
		w.Errorf("teo can't ask: %v", err)
	}
	w.tries("a1")
	w.pass(30 * time.Second)
	_, err = w.as("sam").Say(w.ctx, "#support", waits, "It arrived broken")
	w.ok(err)
	w.pass(30 * time.Second)
	w.allows("m1")
	w.decides(teo, "f1", approvers.Approve)
	w.decides(teo, "p1", approvers.Approve)
	w.decides(teo, "p2", approvers.Reject)
	w.decides(ingrid, "g1", approvers.Approve)
	w.pass(time.Minute)
	_, err = w.as("sam").Say(w.ctx, "#support", grants, "plain m1")
	w.ok(err)
	w.pass(30 * time.Second)
	w.declines(booked)
	w.ok(wf.Pauses.Pause(w.ctx, ingrid.ID, "a rest"))
	w.says("say afterwards")
	w.pass(30 * time.Second)
	w.ok(wf.Pauses.Resume(w.ctx, ingrid.ID, "on"))
	w.says("book b2") // nobody answers
	w.decides(teo, "a1", approvers.Approve)
	w.decides(teo, "r1", approvers.Reject)
	w.pass(10 * time.Second)
	w.restart()
	w.pass(10 * time.Minute)
	w.restart() // after a restart, refused features are tried again
	w.seals()
	w.pass(time.Until(began.Add(25 * time.Minute)))
	w.mustBeAsked("Which colour for doors?", "write your answer here")
	w.pass(35 * time.Minute)
	w.ok(wf.Callers.ResumeWebhook(w.ctx, "ci"))
	w.ok(w.bot.end())
	w.says("say away")
	w.pass(20 * time.Minute)
	w.start()
	w.pass(5 * time.Minute)
}

// The method "seals" signs a head. The bot posts this head in the policy's channel.
func (w *refusedWorld) seals() {
	w.Helper()
	_, err := w.bot.workflow.History.Seal(w.ctx, w.keys...)
	w.ok(err)
}

// switchesWebhookOff makes the bot record that the receiver of a client's webhook wants no more deliveries. The bot
// tells the operators.
func (w *refusedWorld) switchesWebhookOff() {
	w.Helper()
	client, ok := w.bot.workflow.Policy().Client("ci")
	if !ok {
		w.Fatal("the policy has no client")
	}
	gone := workflow.WebhookFailure{Why: "the receiver answered 410", Gone: true}
	w.ok(w.bot.workflow.Callers.NotTold(w.ctx, store.Timer{Kind: store.TimerWebhook, Ref: "call_0", Lane: "ci"}, client.Webhook.Target(), gone))
}

// The method "allows" makes teo approve a call and give a grant for similar calls.
func (w *refusedWorld) allows(n string) {
	w.Helper()
	r := w.request(n)
	c := workflow.Click{At: time.Now(), Who: teo, Request: r.ID, Digest: r.Digest, Whole: true, Typed: true}
	if _, err := w.bot.workflow.Grants.Give(w.ctx, c, approvers.Allowance{Uses: 2, Within: 20 * time.Minute}); err != nil {
		w.Errorf("teo can't allow more calls like %s: %v", n, err)
	}
}

// choosesRed makes sam answer a question of the model.
func (w *refusedWorld) choosesRed(about string) {
	w.Helper()
	var call string
	w.view(func(r store.Reader) error {
		for _, turn := range w.allTurns(r) {
			calls, err := r.Calls(turn)
			if err != nil {
				return err
			}
			for _, c := range calls {
				if c.ModelQuestion != nil && strings.Contains(c.ModelQuestion.Question, about) {
					call = c.ID
				}
			}
		}
		return nil
	})
	if err := w.bot.workflow.Questions.Answer(w.ctx, workflow.Click{At: time.Now(), Who: sam, Call: call}, 0); err != nil {
		w.Errorf("sam can't answer about %s: %v", about, err)
	}
}

// The method "declines" makes sam decline a tool's question.
func (w *refusedWorld) declines(thread string) {
	w.Helper()
	q, _ := w.elicitation(thread)
	if err := w.bot.workflow.Questions.Decline(w.ctx, workflow.Click{At: time.Now(), Who: sam, Elicitation: q.ID}); err != nil {
		w.Errorf("sam can't decline: %v", err)
	}
}

// mustBeAsked records an open question if nobody can read it.
func (w *refusedWorld) mustBeAsked(question, how string) {
	w.Helper()
	if !slices.ContainsFunc(w.everything(), func(m workspaceclient.Message) bool {
		text := m.Text + workspaceclient.Text(m.Blocks)
		return strings.Contains(text, question) && strings.Contains(text, how)
	}) {
		w.unasked = append(w.unasked, question)
	}
}

// The method "tries" makes sam press the "Approve" button of a call on each card, although sam may not approve. Then
// sam asks which requests wait.
func (w *refusedWorld) tries(n string) {
	w.Helper()
	messages, err := w.as("sam").Messages(w.ctx, "#support-approvals", "")
	w.ok(err)
	for _, m := range messages {
		if e, ok := buttonFor(m, "Approve", w.request(n).ID); ok {
			w.as("sam").Press(w.ctx, m, e) // the bot says why sam may not approve, if Slack accepts that message
		}
	}
	w.as("sam").Command(w.ctx, "#support", "/countersign", "pending")
}

// account counts lost messages, buttons that can be pressed after the decision, and refusals that the bot's log does
// not name.
func (w *refusedWorld) account() (sum refusalSum) {
	w.Helper()
	all := w.everything()
	var texts strings.Builder
	for _, m := range all {
		texts.WriteString(m.Text + "\n" + workspaceclient.Text(m.Blocks) + "\n")
		for _, f := range m.Files {
			texts.WriteString(f.Name + "\n")
		}
	}
	wanted := []string{"You said hello", "A long story about long", "The end.", "cell2", "chart.txt", "You said afterwards", "You said away", "model"}
	if !slices.Contains(w.rule.methods, "chat.update") { // a notice that can't be changed is deleted when its problem is over
		wanted = append(wanted, "the webhook of the client ci was switched off")
	}
	if w.rule.lasts == 0 { // during a temporary refusal, the bot drops messages that only inform
		wanted = append(wanted, "stand in", "Audit head", "allowed", "It arrived broken", "I was offline", "Which colour for walls?", "Where do you want to go?")
	}
	for _, want := range wanted {
		if !strings.Contains(texts.String(), want) {
			sum.lost++
			w.Errorf("nobody can read %q", want)
		}
	}
	settled := 0
	for _, m := range all {
		if strings.Contains(m.Text, "That is settled") {
			settled++
		}
	}
	if settled != 13 {
		sum.lost++
		w.Errorf("%d of the 13 answers to calls can be read", settled)
	}
	for _, question := range w.unasked {
		sum.lost++
		w.Errorf("nobody could read %q while it could be answered", question)
	}
	if w.rule.unheard {
		w.eachOnce(all)
	}
	sum.live = w.live(all)
	sum.kinds = map[string]bool{}
	hits := w.proxy.counted()
	sum.refusals = len(hits)
	for _, h := range hits {
		sum.kinds[cmp.Or(string(h.kind), h.method)] = true
	}
	if len(hits) == 0 {
		w.Logf("nothing was refused")
	} else if said := w.rule.said(); !w.rule.unheard && len(w.log.with(said)) == 0 {
		sum.silent++
		w.Errorf("the log does not say %q, which Slack answered %d times", said, len(hits))
	} else if w.rule.reason && len(w.log.with("unsupported type")) == 0 {
		sum.silent++
		w.Errorf("the log does not have Slack's reason")
	}
	w.books()
	return sum
}

// eachOnce finds messages that the bot posted twice.
func (w *refusedWorld) eachOnce(all []workspaceclient.Message) {
	w.Helper()
	seen := map[string]int{}
	for _, m := range all {
		seen[m.Channel+" "+m.ThreadTS+" "+m.Text+" "+m.TS] = 1
	}
	times := map[string]int{}
	for what := range seen {
		at := strings.LastIndexByte(what, ' ')
		times[what[:at]]++
	}
	for what, n := range times {
		if n > 1 && !strings.Contains(what, "See the card") { // a person may be told of a card several times
			w.Errorf("this is there %d times: %s", n, what)
		}
	}
}

// The method "everything" returns all messages of the bot that people can read.
func (w *refusedWorld) everything() (all []workspaceclient.Message) {
	w.Helper()
	read := func(who, channel, thread string) {
		messages, err := w.as(who).Messages(w.ctx, channel, thread)
		if workspaceclient.Code(err) == "channel_not_found" {
			return // this person has no direct messages with the bot
		}
		w.ok(err)
		for _, m := range messages {
			if m.Channel = channel; channel == "countersign" {
				m.Channel += " " + who
			}
			if m.BotID != "" {
				all = append(all, m)
			}
		}
	}
	for _, thread := range w.threads {
		read("sam", "#support", thread)
	}
	for _, channel := range []string{"#support", "#support-approvals"} {
		read("sam", channel, "")
	}
	for _, who := range []string{"sam", "teo", "ingrid", "kenji"} {
		read(who, "countersign", "")
	}
	return all
}

// harmless lists the buttons that may stay after their subject is settled.
var harmless = []string{control.ActArguments, control.ActPage, control.ActFeedback, control.ActAskAgain, control.ActTakeBack, control.ActTryAgain}

// isOver reports whether the subject of a button is decided, answered or ended.
func isOver(r store.Reader, ref string) bool {
	if q, err := r.Request(ref); err == nil {
		return !q.State.Open()
	}
	if c, err := r.Call(ref); err == nil {
		return c.Outcome != ""
	}
	if q, err := r.Elicitation(ref); err == nil {
		return q.State != approvers.ElicitationOpen
	}
	if g, err := r.Grant(ref); err == nil {
		return !g.State.Open()
	}
	if e, err := r.Execution(ref); err == nil {
		return e.State != approvers.ExecutionUnknown
	}
	return false
}

// live counts buttons on settled cards and closed questions. If a card can't be changed or deleted, it keeps its
// buttons. The buttons have no effect. The decided card is then posted below the old card.
func (w *refusedWorld) live(all []workspaceclient.Message) (n int) {
	fixed := slices.Contains(w.rule.methods, "chat.delete")
	for _, m := range all {
		for _, e := range workspaceclient.Elements(m.Blocks) {
			ref, _, _ := strings.Cut(e.Value, " ")
			over := false
			w.view(func(r store.Reader) error { over = isOver(r, ref); return nil })
			if !over || slices.ContainsFunc(harmless, func(act string) bool { return strings.HasPrefix(e.ActionID, act) }) {
				continue
			}
			if fixed {
				m.Channel = strings.TrimSuffix(m.Channel, " teo")
				w.pressed(m, e)
				continue
			}
			n++
			w.Errorf("%q can be pressed for what is over: %s", e.Text.Text, m.Text)
		}
	}
	return n
}

// pressed presses a button that could not be removed, and checks that nothing runs.
func (w *refusedWorld) pressed(m workspaceclient.Message, e workspaceclient.Element) {
	w.Helper()
	runs := maps.Clone(w.runs)
	w.as("teo").Press(w.ctx, m, e)
	w.pass(5 * time.Second)
	if !maps.Equal(runs, w.runs) {
		w.Errorf("the button %q of an old card ran something", e.Text.Text)
	}
}
