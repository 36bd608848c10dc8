package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/store"
)

// sending are the methods with which a message is shown.
var sending = []string{"chat.postMessage", "chat.update", "chat.startStream", "chat.appendStream", "chat.postEphemeral", "views.publish", "response_url"}

// refusalsOf are all ways in which Slack refuses that are tried; a few of each sort in the short version.
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
			if !long && (!reason || what == "all but sections" || what == "rich text") {
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
		if long || i < 2 {
			add(refusalRule{name: "changes", methods: []string{"chat.update", "response_url"}, code: code})
		}
		if long || i < 1 {
			add(refusalRule{name: "changes and deletions", methods: []string{"chat.update", "chat.delete", "response_url"}, code: code})
		}
	}
	optional := map[string][]string{
		"changes": {"chat.update", "response_url"}, "files": {"files.getUploadURLExternal"}, "shared files": {"files.completeUploadExternal"}, "statuses": {"assistant.threads.setStatus"},
		"ephemerals": {"chat.postEphemeral"}, "Home tabs": {"views.publish"}, "links": {"chat.getPermalink"},
	}
	for _, what := range slices.Sorted(maps.Keys(optional)) {
		for i, a := range answers {
			if long || i == 0 && (what == "files" || what == "statuses" || what == "changes") {
				a.name, a.methods = what+", "+a.name, optional[what]
				add(a)
			}
		}
		for _, code := range []string{"missing_scope", "not_allowed_token_type", "team_access_not_granted", "restricted_action", "fatal_error"} {
			if long && what != "changes" && (what != "statuses" || code != "restricted_action") { // a status is for one thread
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

// TestRefusals has Slack refuse one thing after another, while every kind of message is to be shown: kinds of blocks,
// changes, deletions, streams, files, statuses, and for a while every post. Each answer is there in the end, no button
// is left on what is over, and the log says what was refused.
//
// COUNTERSIGN_REFUSALS=2 tries every refusal, instead of a few of each sort.
func TestRefusals(t *testing.T) {
	long := testkit.Size(t, "COUNTERSIGN_REFUSALS", 1) > 1
	var sum refusalSum
	kinds := map[string]bool{}
	for _, r := range refusalsOf(long) {
		t.Run(r.name, func(t *testing.T) {
			var one refusalSum
			defer func() { // also where the test has failed
				sum.refusals += one.refusals
				sum.lost += one.lost
				sum.live += one.live
				sum.silent += one.silent
				maps.Copy(kinds, one.kinds)
			}()
			inRefusal(t, r, &one)
			if one.lost+one.live+one.silent > 0 {
				t.Errorf("lost=%d live=%d silent=%d", one.lost, one.live, one.silent)
			}
		})
	}
	t.Logf("ways=%d refusals=%d kinds=%d lost=%d live=%d silent=%d %v", len(refusalsOf(long)), sum.refusals, len(kinds), sum.lost, sum.live, sum.silent, slices.Sorted(maps.Keys(kinds)))
}

// refusalSum counts what came of refusals.
type refusalSum struct {
	refusals, lost, live, silent int
	kinds                        map[string]bool // kinds of outbox messages, and methods, that were refused
}

// refusedWorld is a synctestHarness whose Slack refuses.
type refusedWorld struct {
	*synctestHarness
	rule    refusalRule
	proxy   *refusingSlack
	threads []string
}

// inRefusal plays one refusal.
func inRefusal(t *testing.T, rule refusalRule, sum *refusalSum) {
	w := &refusedWorld{rule: rule, proxy: &refusingSlack{}}
	inBubble(t, func(b *synctestHarness) {
		w.synctestHarness = b
		b.instead = func(http.Handler) http.Handler {
			return scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.ResponderFunc(w.think)})
		}
		b.front = func(h http.Handler) http.Handler { w.proxy.next = h; return w.proxy }
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
		policy := strings.Replace(synctestPolicy, "tools:\n", "paused_by: [director]\ntools:\n  fragile: {risk: high, confirm: true}\n  draw: {risk: low}\n", 1)
		policies, err := newPolicies("policy.yaml", []byte(policy), b.setup.tools, b.setup.log)
		b.ok(err)
		b.setup.policies = policies
	}, func(*synctestHarness) {
		w.proxy.refuses(rule)
		w.play()
		*sum = w.account()
	})
}

// think is the model: that of synctestHarness, and more.
func (w *refusedWorld) think(ctx context.Context, r scriptedmodel.Request) (scriptedmodel.Reply, error) {
	last := r.Last()
	words := strings.Fields(last.Content)
	for i, word := range words {
		if last.Role != "user" {
			break
		}
		switch word {
		case "pair":
			var calls []scriptedmodel.Call
			for _, n := range words[i+1 : i+3] {
				calls = append(calls, scriptedmodel.NewCall("plain", map[string]string{"n": n}))
			}
			return scriptedmodel.Reply{Calls: calls}, nil
		case "fragile", "draw":
			return scriptedmodel.Reply{Calls: []scriptedmodel.Call{scriptedmodel.NewCall(word, map[string]string{"n": words[i+1]})}}, nil
		case "table":
			return scriptedmodel.Reply{Content: "A table:\n\n| a | b |\n|---|---|\n| cell1 | cell2 |\n\nThe last line."}, nil
		case "broken":
			return scriptedmodel.Reply{}, errors.New("the model is broken")
		}
	}
	return w.synctestHarness.think(ctx, r)
}

// says is what sam says in a thread of its own.
func (w *refusedWorld) says(text string) string {
	thread := w.synctestHarness.says(text)
	w.threads = append(w.threads, thread)
	return thread
}

func identityOf(user, name string) approvers.Identity {
	return approvers.Identity{ID: approvers.Who("T0001", user), Name: name}
}

var (
	teo, ingrid = identityOf("U0002", "Teo"), identityOf("U0003", "Ingrid")
)

// decides has somebody decide about a call, as on their Home tab or at the command line: the card may have no buttons.
func (w *refusedWorld) decides(who approvers.Identity, n string, kind approvers.DecisionKind) {
	w.Helper()
	r := w.asked(n)
	if _, err := w.bot.workflow.Requests.Decide(w.ctx, workflow.Click{At: time.Now(), Who: who, Request: r.ID, Kind: kind, Digest: r.Digest, Whole: true, Typed: true, Reason: "so it is"}); err != nil {
		w.Errorf("%s can't decide about %s: %v", who.Name, n, err)
	}
}

// play has every kind of message shown that can be had in an hour.
func (w *refusedWorld) play() {
	w.says("say hello")
	w.says("tell long")
	w.says("table now")
	w.says("draw d1")
	w.says("broken b1")
	w.says("pair p1 p2")
	waits := w.says("plain a1")
	w.says("plain r1")
	w.says("plain late")
	w.says("grave g1")
	w.says("fragile f1")
	w.ok(w.bot.workflow.Homes.Open(w.ctx, "", "U0002", "", 0))
	w.pass(30 * time.Second)
	for _, n := range []string{"p1", "a1", "f1"} {
		w.asked(n)
	}
	_, err := w.as("sam").Say(w.ctx, "#support", waits, "and hurry")
	w.ok(err)
	w.ok(w.as("sam").Edit(w.ctx, "#support", waits, "@Countersign plain a1 please"))
	r := w.asked("a1")
	if _, err := w.bot.workflow.Requests.Say(w.ctx, workflow.Click{At: time.Now(), Who: teo, Request: r.ID, Reason: "Why?", Digest: r.Digest}, approvers.Question); err != nil {
		w.Errorf("teo can't ask: %v", err)
	}
	w.tries("a1")
	w.pass(time.Minute)
	w.decides(teo, "f1", approvers.Approve)
	w.decides(teo, "p1", approvers.Approve)
	w.decides(teo, "p2", approvers.Reject)
	w.decides(ingrid, "g1", approvers.Approve)
	w.pass(time.Minute)
	w.ok(w.bot.workflow.Pauses.Pause(w.ctx, ingrid.ID, "a rest"))
	w.says("say afterwards")
	w.pass(30 * time.Second)
	w.ok(w.bot.workflow.Pauses.Resume(w.ctx, ingrid.ID, "on"))
	w.decides(teo, "a1", approvers.Approve)
	w.decides(teo, "r1", approvers.Reject)
	w.pass(10 * time.Second)
	w.restart()
	w.pass(10 * time.Minute)
	w.restart() // what was refused is tried again
	w.pass(45 * time.Minute)
}

// tries has sam, who may not, press Approve where there is such a button, and then ask what waits.
func (w *refusedWorld) tries(n string) {
	w.Helper()
	messages, err := w.as("sam").Messages(w.ctx, "#support-approvals", "")
	w.ok(err)
	for _, m := range messages {
		if e, ok := buttonFor(m, "Approve", w.request(n).ID); ok {
			w.as("sam").Press(w.ctx, m, e) // it says why not, if Slack lets it
		}
	}
	w.as("sam").Command(w.ctx, "#support", "/countersign", "pending")
}

// account counts what is lost, what can still be pressed, and what nobody was told.
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
	for _, want := range []string{"You said hello", "A long story about long", "cell2", "chart.txt", "You said afterwards", "model"} {
		if !strings.Contains(texts.String(), want) {
			sum.lost++
			w.Errorf("nobody can read %q", want)
		}
	}
	if n := strings.Count(texts.String(), "That is settled"); n < 5 {
		sum.lost++
		w.Errorf("%d of the answers to decided calls can be read", n)
	}
	if w.rule.unheard {
		w.eachOnce(all)
	}
	sum.live = w.live(all)
	sum.kinds = map[string]bool{}
	hits := w.proxy.counted()
	sum.refusals = len(hits)
	for _, h := range hits {
		kind := h.method
		if h.surface != "" {
			w.view(func(r store.Reader) error {
				if s, err := r.OutboxMessage(h.surface); err == nil {
					kind = string(s.Kind)
				}
				return nil
			})
		}
		sum.kinds[kind] = true
	}
	if len(hits) == 0 {
		w.Logf("nothing was refused")
	} else if said := w.rule.said(); !w.rule.unheard && len(w.log.with(said)) == 0 {
		sum.silent++
		w.Errorf("the log does not say %q, which Slack answered %d times", said, len(hits))
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

// everything is what people can read.
func (w *refusedWorld) everything() (all []workspaceclient.Message) {
	w.Helper()
	read := func(who, channel, thread string) {
		messages, err := w.as(who).Messages(w.ctx, channel, thread)
		if workspaceclient.Code(err) == "channel_not_found" {
			return // no direct messages
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

// onlyWaiting are the buttons that only a waiting request may have.
var onlyWaiting = map[string]bool{
	render.ActApprove: true, render.ActTyped: true, render.ActReject: true, render.ActModify: true, render.ActAsk: true, render.ActAnswer: true,
	render.ActHandOn: true, render.ActWithdraw: true, render.ActApart: true,
}

// live counts buttons for requests that are over. A card that can neither be changed nor deleted keeps its buttons; the
// decided card is below it then, and its buttons do nothing.
func (w *refusedWorld) live(all []workspaceclient.Message) (n int) {
	open := map[string]bool{}
	w.view(func(r store.Reader) error {
		for _, id := range w.allRequests(r) {
			if id == "" {
				continue
			}
			req, err := r.Request(id)
			if err != nil {
				return err
			}
			open[id] = req.State.Open()
		}
		return nil
	})
	fixed := slices.Contains(w.rule.methods, "chat.delete")
	for _, m := range all {
		for _, e := range workspaceclient.Elements(m.Blocks) {
			ref, _, _ := strings.Cut(e.Value, " ")
			if isOpen, known := open[ref]; !known || isOpen || !onlyWaiting[e.ActionID] {
				continue
			}
			if fixed {
				m.Channel = strings.TrimSuffix(m.Channel, " teo")
				w.pressed(m, e)
				continue
			}
			n++
			w.Errorf("%q can be pressed for a request that is over: %s", e.Text.Text, m.Text)
		}
	}
	return n
}

// pressed presses a button that could not be taken away.
func (w *refusedWorld) pressed(m workspaceclient.Message, e workspaceclient.Element) {
	w.Helper()
	runs := maps.Clone(w.runs)
	w.as("teo").Press(w.ctx, m, e)
	w.pass(5 * time.Second)
	if !maps.Equal(runs, w.runs) {
		w.Errorf("the button %q of an old card ran something", e.Text.Text)
	}
}
