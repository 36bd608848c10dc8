package workflow_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/retention"
	"countersign/store"
)

// h.written returns the text of all stored records about a turn's calls and about their Slack messages. The texts of
// the conversation's messages are left out.
func (h *harness) written(turn string) string {
	h.t.Helper()
	var b strings.Builder
	add := func(v any) {
		js, err := json.Marshal(v)
		h.ok(err)
		b.Write(js)
	}
	h.ok(h.store.View(h.ctx(), func(r store.Reader) error {
		calls, err := r.Calls(turn)
		if err != nil {
			return err
		}
		refs := []string{turn}
		for _, c := range calls {
			runs, err := r.Executions(c.Conversation)
			if err != nil {
				return err
			}
			c.Args = strings.ReplaceAll(c.Args, `"`, "'")
			add(c)
			refs = append(refs, c.ID)
			for _, x := range runs {
				fmt.Fprintf(&b, "%s %s", x.Args, x.Result)
				refs = append(refs, x.ID)
				files, err := r.Files(x.ID)
				if err != nil {
					return err
				}
				for _, f := range files {
					data, err := r.FileData(x.ID, f.Index)
					if err != nil {
						return err
					}
					fmt.Fprintf(&b, "%s %s", f.Name, data)
				}
				asked, err := r.Elicitations(x.ID)
				if err != nil {
					return err
				}
				for _, q := range asked {
					fmt.Fprintf(&b, "%s %s %s %s", q.Text, q.URL, q.Schema, q.Values)
					refs = append(refs, q.ID)
				}
			}
			if c.Request == "" {
				continue
			}
			q, err := r.Request(c.Request)
			if err != nil {
				return err
			}
			add(q)
			refs = append(refs, q.ID)
		}
		for _, ref := range refs {
			messages, err := r.OutboxMessagesOf(ref)
			if err != nil {
				return err
			}
			for _, s := range messages {
				posts, err := r.Renderings(s.ID)
				if err != nil {
					return err
				}
				for _, p := range posts {
					b.Write(p.Body)
				}
			}
		}
		return r.EachAuditRow(func(x approvers.AuditRow) error { b.Write(x.Record); b.Write(x.Payload); return nil })
	}))
	return b.String()
}

// An erasure removes every text of a call from the store, even from renderings that also show other calls. The records
// of who decided remain.
func TestErase(t *testing.T) {
	h := newHarness(t)
	rs := h.bundled(`issue_refund {"amount":1,"note":"Roswell"}`, `issue_refund {"amount":2,"note":"Avebury"}`)
	turn := rs[0].Turn
	post := func() { // as Slack would show it: with the texts of both requests
		for _, s := range h.messagesOf(turn) {
			p := h.posted(s)
			p.Body = []byte(h.request(rs[0].ID).Args)
			p.Body = append(p.Body, h.request(rs[1].ID).Args...)
			s.Channel, s.TS = "C", "ts-"+s.ID
			h.ok(h.Outbox.Delivered(h.ctx(), s, p))
		}
	}
	post()
	c := h.edit(lead, rs[0].ID, `{"amount":1,"note":"Roswell again"}`)
	c.Reason = "Roswell is right"
	_, err := h.Requests.Decide(h.ctx(), c)
	h.ok(err)
	post()
	if _, err := retention.Erase(h.ctx(), h.Workflow, rs[0].ID, approvers.Operator("root"), "asked to"); !errors.As(err, new(retention.NotOverError)) {
		t.Errorf("a request that waits, or is to run: %v", err)
	}
	h.run(h.request(rs[0].ID).Execution, "Roswell was refunded")
	if _, err := retention.Erase(h.ctx(), h.Workflow, rs[0].ID, approvers.Operator("root"), "asked to"); !errors.As(err, new(retention.NotOverError)) {
		t.Errorf("a turn under way: %v", err)
	}
	h.reject(lead, rs[1].ID)
	post()
	h.answer(turn)
	before := h.request(rs[0].ID)
	if n := strings.Count(h.written(turn), "Roswell"); n < 12 {
		t.Fatalf("the word is in the store %d times: this test looks at the wrong places", n)
	}
	head := readStore(h, func(r store.Reader) (approvers.AuditRecord, error) { return r.AuditHead(rs[0].ID) })

	done, err := retention.Erase(h.ctx(), h.Workflow, rs[0].ID, approvers.Operator("root"), "asked to")
	h.ok(err)
	if left := h.written(turn); strings.Contains(left, "Roswell") {
		t.Errorf("the store still has\n%s", left)
	} else if !strings.Contains(left, "Avebury") {
		t.Error("the other call was erased, too")
	}
	if done.Payloads < 5 || done.Renderings < 3 || done.Chains != 2 {
		t.Errorf("erased: %+v", done)
	}
	after := h.request(rs[0].ID)
	if after.State != before.State || after.Digest != before.Digest || len(after.Decisions) != len(before.Decisions) || after.Decisions[0].By != lead.ID || len(after.Edits) != 1 {
		t.Errorf("what is left of the request: %+v", after)
	}
	records := readStore(h, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(rs[0].ID) })
	last := records[len(records)-1]
	if last.Kind != approvers.AuditErased || last.Actor != approvers.Operator("root") || last.Prev != head.Hash {
		t.Errorf("the last record is %+v", last)
	}
	facts, reason := h.lastFacts(rs[1].ID, approvers.AuditErased)
	if facts["with"] != rs[0].ID || !strings.Contains(reason, "asked to") {
		t.Errorf("the other chain's record: %v, %s", facts, reason)
	}
	h.ok(h.store.Check(h.ctx()))

	again, err := retention.Erase(h.ctx(), h.Workflow, rs[0].ID, approvers.Operator("root"), "once more")
	if err != nil || again != (retention.Erased{}) {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	if _, err := retention.Erase(h.ctx(), h.Workflow, "req_none", approvers.Operator("root"), "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a chain that does not exist: %v", err)
	}
	h.begin(h.say(alice, "and continue").Turn) // the conversation continues with the remaining texts
}

// The reason of an erasure stays when the same chain is erased again: by a command, or because of the chain's age.
func TestErasureKeepsReasons(t *testing.T) {
	h := newHarness(t)
	keeping(h)
	r := h.ask(`issue_refund {"amount":1,"note":"Roswell"}`)
	h.reject(lead, r.ID)
	h.answer(r.Turn)
	card := h.only(r.ID, store.OutboxCard)
	for _, reason := range []string{"court order 4711", "the customer asked"} {
		h.shownAs(card, "Roswell refund") // a text to erase
		done, err := retention.Erase(h.ctx(), h.Workflow, r.ID, approvers.Operator("root"), reason)
		h.ok(err)
		if done.Payloads == 0 {
			t.Fatal("nothing was erased")
		}
		card = h.only(r.ID, store.OutboxCard)
	}
	h.shownAs(card, "Roswell refund")
	h.clock.pass(91 * aDay)
	h.retain(1, 0)
	h.turns = nil // the turn is erased, and the invariants are checked only for existing turns
	for _, reason := range []string{"court order 4711", "the customer asked"} {
		if found := h.rowsWith(reason); found[store.PartAudit] != 1 {
			t.Errorf("the reason %q is in %v", reason, found)
		}
	}
	if found := h.rowsWith("Roswell"); len(found) > 0 {
		t.Errorf("the words are still in %v", found)
	}
	h.ok(h.store.Check(h.ctx()))
}

// The texts of a grant's chain prove what the grant allowed. They can't be erased while the grant is in force.
func TestEraseGrant(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", granting))
	g := h.granted(1)
	chain := approvers.GrantChain(g.ID)
	erase := func() (retention.Erased, error) {
		return retention.Erase(h.ctx(), h.Workflow, chain, approvers.Operator("root"), "tidy")
	}
	var open retention.GrantOpenError
	if _, err := erase(); !errors.As(err, &open) || open.State != approvers.GrantLive || h.payloadsOf(chain) == 0 {
		t.Errorf("a grant in force: %v, and %d texts are left", err, h.payloadsOf(chain))
	}
	_, err := h.Grants.Revoke(h.ctx(), workflow.Click{At: h.clock.Now(), Who: lead, Grant: g.ID})
	h.ok(err)
	if done, err := erase(); err != nil || done.Payloads != 1 {
		t.Errorf("a grant that was revoked: %+v, %v", done, err)
	}
}

// Home tabs show the texts of calls. Erase deletes all versions of a Home tab from the store. The tab may have been
// opened lately, be idle, or be refused by Slack.
func TestEraseHomes(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1,"note":"Roswell"}`)
	home := func(user string) store.OutboxMessage {
		return readStore(h, func(r store.Reader) (store.OutboxMessage, error) {
			list, err := r.OutboxMessagesOf(store.SettingHomes + "/" + user)
			return list[0], err
		})
	}
	shows := func(user string) {
		s := home(user)
		p := h.posted(s)
		p.Body = []byte(h.request(r.ID).Args)
		h.ok(h.Homes.Shown(h.ctx(), s, p, "looks"))
	}
	for _, user := range []string{"WATCHED", "IDLE", "REFUSED"} {
		h.ok(h.Homes.Open(h.ctx(), "", user, "", 0))
		shows(user)
	}
	timer := readStore(h, func(r store.Reader) (store.Timer, error) { return r.Timer(store.TimerHome, home("IDLE").ID) })
	h.ok(h.Homes.Idle(h.ctx(), timer))
	shows("IDLE")
	h.ok(h.Homes.Refused(h.ctx(), home("REFUSED"), "not_enabled"))
	kept := func() (n int) {
		for _, user := range []string{"WATCHED", "IDLE", "REFUSED"} {
			n += len(readStore(h, func(r store.Reader) ([]store.Rendering, error) { return r.Renderings(home(user).ID) }))
		}
		return n
	}
	if n := kept(); n != 1 {
		t.Errorf("%d versions of Home tabs are kept; want one, of the tab that was opened lately", n)
	}
	h.reject(lead, r.ID)
	h.answer(r.Turn)
	_, err := retention.Erase(h.ctx(), h.Workflow, r.ID, approvers.Operator("root"), "asked to")
	h.ok(err)
	if n := kept(); n != 0 {
		t.Errorf("%d versions of Home tabs are left", n)
	}
	h.ok(h.store.Check(h.ctx()))
}

// rowsWith counts the rows of the store that contain a text, by part of the store.
func (h *harness) rowsWith(text string) map[store.Part]int {
	h.t.Helper()
	found := map[store.Part]int{}
	forms := [][]byte{[]byte(text)}
	for skip := range 3 { // the base64 of a text depends on the text's position
		forms = append(forms, []byte(base64.RawStdEncoding.EncodeToString([]byte(text[skip:skip+len(text)/3*3-3]))))
	}
	h.ok(h.store.(store.Contents).EachRow(h.ctx(), func(row store.Row) error {
		for _, b := range [][]byte{row.Record, row.Data, row.Audit.Record, row.Audit.Payload} {
			if slices.ContainsFunc(forms, func(form []byte) bool { return bytes.Contains(b, form) }) {
				found[row.Part]++
				break
			}
		}
		return nil
	}))
	return found
}

// shownAs makes Slack show a message with a text in it.
func (h *harness) shownAs(s store.OutboxMessage, text string) {
	h.t.Helper()
	p := h.posted(s)
	p.Body = fmt.Appendf(nil, `{"text":%q}`, text)
	s.Channel, s.TS = "C", "ts-"+s.ID
	h.ok(h.Outbox.Delivered(h.ctx(), s, p))
}

// A call that was asked for again has two requests and two executions. Erase erases the texts of both, even if the
// outcome of the earlier run stays unknown. Erase accepts the id of each of the two requests. Enforce erases the texts
// of both when somebody has reported this outcome.
func TestEraseCallAskedForAgain(t *testing.T) {
	for _, erase := range []func(h *harness, first, second string) error{
		func(h *harness, first, _ string) error {
			_, err := retention.Erase(h.ctx(), h.Workflow, first, approvers.Operator("root"), "asked to")
			return err
		},
		func(h *harness, _, second string) error {
			_, err := retention.Erase(h.ctx(), h.Workflow, second, approvers.Operator("root"), "asked to")
			return err
		},
		func(h *harness, first, _ string) error {
			h.ok(h.reports(lead, h.request(first).Execution, workflow.DidNot))
			h.clock.pass(91 * aDay)
			h.retain(1, 0)
			h.turns = nil // the turn is erased, and the invariants are checked only for existing turns
			return nil
		},
	} {
		h := newHarness(t)
		keeping(h)
		c := h.lost(`issue_refund {"amount":1,"note":"Roswell refund"}`, lead)
		first := h.request(c.Request)
		h.shownAs(h.only(first.ID, store.OutboxCard), "Roswell refund")
		h.ok(h.again(alice, c.Execution))
		second := h.request(h.call(c.ID).Request)
		h.shownAs(h.only(second.ID, store.OutboxCard), "Roswell refund")
		h.approve(lead, second.ID)
		if _, err := retention.Erase(h.ctx(), h.Workflow, first.ID, approvers.Operator("root"), "asked to"); !errors.As(err, new(retention.NotOverError)) {
			t.Errorf("a call whose second run is due: %v", err)
		}
		h.run(second.Execution, "Roswell refund")
		h.answer(c.Turn)
		if found := h.rowsWith("Roswell refund"); found[store.PartAudit] < 4 || found[store.PartRequests] != 2 || found[store.PartExecutions] != 2 {
			t.Fatalf("the words are in %v: this test looks at the wrong places", found)
		}
		h.ok(erase(h, first.ID, second.ID))
		if found := h.rowsWith("Roswell refund"); len(found) > 0 {
			t.Errorf("the words are still in %v", found)
		}
		h.ok(h.store.Check(h.ctx()))
	}
}

// While a call waits, later messages of the conversation wait, too. The notice about them names the call. Erase leaves
// no version of this notice that has the call's texts.
func TestEraseNoticeOfWaitingMessages(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1,"note":"Roswell refund"}`)
	h.say(alice, "one more thing")
	h.shownAs(h.only(r.Turn, store.OutboxQueued), "1 message waits until this is settled: Roswell refund")
	h.reject(lead, r.ID)
	h.answer(r.Turn)
	_, err := retention.Erase(h.ctx(), h.Workflow, r.ID, approvers.Operator("root"), "asked to")
	h.ok(err)
	if found := h.rowsWith("Roswell refund"); len(found) > 0 {
		t.Errorf("the words are still in %v", found)
	}
}

// The notice about a card queue names calls of several conversations. The store keeps no version of the notice.
func TestEraseNoticeOfCardQueue(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(capped("policy-1", 1))
	r := h.asked(2)[1]
	notice := h.only("role:team-lead 1", store.OutboxCardQueue)
	h.ok(h.Outbox.Expand(h.ctx(), notice.ID, persons("U0002")))
	h.shownAs(h.messagesOf("role:team-lead 1")[1], "1 more request waits behind these: Roswell refund")
	h.withdrawn(r.ID)
	h.answer(r.Turn)
	_, err := retention.Erase(h.ctx(), h.Workflow, r.ID, approvers.Operator("root"), "asked to")
	h.ok(err)
	if found := h.rowsWith("Roswell refund"); len(found) > 0 {
		t.Errorf("the words are still in %v", found)
	}
}

// If a message or a Home tab is on its way to Slack during an erasure, its texts are not stored afterwards. The bot
// sends the message again, without the texts. Erase also erases the reason for which Slack refused a message.
func TestEraseWhileMessagesAreSent(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1,"note":"Roswell refund"}`)
	h.ok(h.Homes.Open(h.ctx(), "", "U0002", "", 0))
	h.ok(h.Outbox.Unreachable(h.ctx(), h.only(r.Turn, store.OutboxStep).ID, "invalid_blocks: Roswell refund", ""))
	card, home := h.only(r.ID, store.OutboxCard), h.messagesOf(store.SettingHomes + "/U0002")[0]
	h.shownAs(card, "Roswell refund")
	h.reject(lead, r.ID)
	h.answer(r.Turn)
	card = h.message(card.ID)
	_, err := retention.Erase(h.ctx(), h.Workflow, r.ID, approvers.Operator("root"), "asked to")
	h.ok(err)
	h.shownAs(card, "Roswell refund, rejected")
	p := h.posted(home)
	p.Body = []byte(`{"text":"Roswell refund, rejected"}`)
	h.ok(h.Homes.Shown(h.ctx(), home, p, "looks"))
	if found := h.rowsWith("Roswell refund"); len(found) > 0 {
		t.Errorf("the words are still in %v", found)
	}
	for _, s := range []store.OutboxMessage{h.message(card.ID), h.message(home.ID)} {
		if s.State != store.OutboxWanted || s.Home != nil && s.Home.ViewHash != "" {
			t.Errorf("the %s is not sent again: %+v", s.Kind, s)
		}
	}
	h.shownAs(h.message(card.ID), "Rejected")
	if n := len(readStore(h, func(r store.Reader) ([]store.Rendering, error) { return r.Renderings(card.ID) })); n != 1 {
		t.Errorf("%d versions of the card are kept; want the last one", n)
	}
	h.ok(h.store.Check(h.ctx()))
}

// The media type of a file may contain the file's name. Erase leaves neither.
func TestEraseFileWithNameInItsType(t *testing.T) {
	h := newHarness(t)
	call := h.propose(h.say(alice, "please").Turn, `search_orders {}`)[0]
	_, _, err := h.Runs.Claim(h.ctx(), call.Execution)
	h.ok(err)
	file := workflow.File{Name: "Roswell refund.pdf", Type: `application/pdf; name="Roswell refund.pdf"`, Data: []byte("Roswell refund")}
	h.ok(h.Runs.Finish(h.ctx(), call.Execution, true, "found", file))
	h.answer(call.Turn)
	_, err = retention.Erase(h.ctx(), h.Workflow, call.Execution, approvers.Operator("root"), "asked to")
	h.ok(err)
	if found := h.rowsWith("Roswell refund"); len(found) > 0 {
		t.Errorf("the words are still in %v", found)
	}
	records := readStore(h, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(call.Execution) })
	i := slices.IndexFunc(records, func(a approvers.AuditRecord) bool { return a.Kind == approvers.AuditAttached })
	if records[i].Facts["type"] != "application/pdf" {
		t.Errorf("the record has the type %q", records[i].Facts["type"])
	}
}

// If a record of the call is damaged, Erase replaces the record, and erases the texts of the other records.
func TestEraseReplacesDamagedRecord(t *testing.T) {
	h := newHarness(t)
	r := h.ask(`issue_refund {"amount":1,"note":"Roswell"}`)
	h.reject(lead, r.ID)
	h.answer(r.Turn)
	h.spoil("requests", r.ID)
	done, err := retention.Erase(h.ctx(), h.Workflow, r.ID, approvers.Operator("root"), "asked to")
	h.ok(err)
	if left := h.written(r.Turn); strings.Contains(left, "Roswell") || done.Payloads == 0 {
		t.Errorf("erased %+v; the store still has\n%s", done, left)
	}
}

// For a call that ran without approval, Erase accepts the execution's id. For a question of the model, Erase accepts
// the call's id.
func TestEraseWhatNobodyWasAskedAbout(t *testing.T) {
	h := newHarness(t)
	call := h.propose(h.say(alice, "please").Turn, `search_orders {"q":"Roswell"}`)[0]
	if _, err := retention.Erase(h.ctx(), h.Workflow, call.Execution, approvers.Operator("root"), ""); !errors.As(err, new(retention.NotOverError)) {
		t.Errorf("before it ran: %v", err)
	}
	h.run(call.Execution, "Roswell")
	h.answer(call.Turn)
	done, err := retention.Erase(h.ctx(), h.Workflow, call.Execution, approvers.Operator("root"), "")
	h.ok(err)
	if left := h.written(call.Turn); strings.Contains(left, "Roswell") || done.Payloads == 0 {
		t.Errorf("erased %+v; the store still has\n%s", done, left)
	}
	turn, question := h.askPeople()
	h.ok(h.Questions.Answer(h.ctx(), workflow.Click{At: h.clock.Now(), Who: alice, Call: question.ID}, 1))
	h.answer(turn)
	if _, err := retention.Erase(h.ctx(), h.Workflow, question.ID, approvers.Operator("root"), ""); err != nil {
		t.Fatal(err)
	}
	if left := h.written(turn); strings.Contains(left, "Which order") || strings.Contains(left, "A-2") {
		t.Errorf("the store still has\n%s", left)
	}
}
