package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// keep writes a record, reads it back and compares it with want. Within the method together, the record is read after
// all transactions.
func keep[T any](h *harness, rec, want T, put func(store.Tx, T) error, get func(store.Reader) (T, error)) {
	h.Helper()
	h.update(func(tx store.Tx) error { return put(tx, rec) })
	h.afterwards(func() {
		h.view(func(r store.Reader) error {
			got, err := get(r)
			h.same(fmt.Sprintf("%T", rec), got, want)
			return err
		})
	})
}

// keepAll writes one record of each kind with every field set.
func keepAll(h *harness, rough bool) {
	conversation, conversation2 := fill[store.Conversation](rough), fill[store.Conversation](false)
	conversation2.Version = 1
	keep(h, conversation, conversation2, store.Tx.PutConversation, func(r store.Reader) (store.Conversation, error) {
		return r.Conversation(conversation.ID)
	})
	message := fill[store.Message](rough)
	keep(h, message, fill[store.Message](false), store.Tx.PutMessage, func(r store.Reader) (m store.Message, err error) {
		list, err := r.Messages(message.Conversation, 0)
		if len(list) == 1 {
			m = list[0]
		}
		return m, err
	})
	turn, turn2 := fill[approvers.Turn](rough), fill[approvers.Turn](false)
	turn2.Version = 1
	keep(h, turn, turn2, store.Tx.PutTurn, func(r store.Reader) (approvers.Turn, error) { return r.Turn(turn.ID) })
	call, call2 := fill[store.Call](rough), fill[store.Call](false)
	call2.Version = 1
	keep(h, call, call2, store.Tx.PutCall, func(r store.Reader) (store.Call, error) { return r.Call(call.ID) })
	request, request2 := fill[approvers.Request](rough), fill[approvers.Request](false)
	request2.Version = 1
	keep(h, request, request2, store.Tx.PutRequest, func(r store.Reader) (approvers.Request, error) { return r.Request(request.ID) })
	execution, execution2 := fill[approvers.Execution](rough), fill[approvers.Execution](false)
	execution2.Version = 1
	keep(h, execution, execution2, store.Tx.PutExecution, func(r store.Reader) (approvers.Execution, error) { return r.Execution(execution.ID) })
	asked, asked2 := fill[approvers.Elicitation](rough), fill[approvers.Elicitation](false)
	asked2.Version = 1
	keep(h, asked, asked2, store.Tx.PutElicitation, func(r store.Reader) (approvers.Elicitation, error) { return r.Elicitation(asked.ID) })
	file, put := fill[store.File](rough).Of([]byte("data")), func(tx store.Tx, f store.File) error { return tx.PutFile(f, []byte("data")) }
	keep(h, file, fill[store.File](false).Of([]byte("data")), put, func(r store.Reader) (f store.File, err error) {
		list, err := r.Files(file.Execution)
		if len(list) == 1 {
			f = list[0]
		}
		return f, err
	})
	timer := fill[store.Timer](rough)
	keep(h, timer, fill[store.Timer](false), store.Tx.SetTimer, func(r store.Reader) (store.Timer, error) { return r.Timer(timer.Kind, timer.Ref) })
	row, row2 := fill[store.Inbox](rough), fill[store.Inbox](false)
	row2.Version = 1
	keep(h, row, row2, store.Tx.PutInbox, func(r store.Reader) (store.Inbox, error) { return r.Inbox(row.ID) })
	outbox, outbox2 := fill[store.OutboxMessage](rough), fill[store.OutboxMessage](false)
	outbox2.Version = 1
	keep(h, outbox, outbox2, store.Tx.PutOutboxMessage, func(r store.Reader) (store.OutboxMessage, error) { return r.OutboxMessage(outbox.ID) })
	grant, grant2 := fill[approvers.Grant](rough), fill[approvers.Grant](false)
	grant2.Version = 1
	keep(h, grant, grant2, store.Tx.PutGrant, func(r store.Reader) (approvers.Grant, error) { return r.Grant(grant.ID) })
	absence, absence2 := fill[approvers.Absence](rough), fill[approvers.Absence](false)
	absence2.Version = 1
	keep(h, absence, absence2, store.Tx.PutAbsence, func(r store.Reader) (approvers.Absence, error) { return r.Absence(absence.Who) })
	rendering := fill[store.Rendering](rough)
	keep(h, rendering, fill[store.Rendering](false), store.Tx.PutRendering, func(r store.Reader) (store.Rendering, error) {
		return r.Rendering(rendering.OutboxMessage, rendering.Post)
	})
	setting, setting2 := fill[store.Setting](rough), fill[store.Setting](false)
	setting2.Version = 1
	keep(h, setting, setting2, store.Tx.PutSetting, func(r store.Reader) (store.Setting, error) { return r.Setting(setting.Key) })

	policy, policy2 := fill[store.Policy](rough), fill[store.Policy](false)
	policy.Content, policy2.Content = approvers.SumOf([]byte(policy.Load)).String(), approvers.SumOf([]byte(policy2.Load)).String()
	policy2.Version = 1
	keep(h, policy, policy2, func(tx store.Tx, p store.Policy) error { return tx.PutPolicy(p, []byte(p.Load)) }, store.Reader.Policy)

	payload := fill[approvers.AuditPayload](rough)
	payload.Seq = 1
	record := fill[approvers.AuditRecord](rough)
	record.Chain, record.PayloadHash = payload.Chain, payload.Hash()
	record = record.Link(approvers.AuditRecord{})
	keep(h, record, record, func(tx store.Tx, a approvers.AuditRecord) error { return tx.AppendAudit(a, &payload) },
		func(r store.Reader) (approvers.AuditRecord, error) { return r.AuditHead(record.Chain) })
	h.afterwards(func() {
		h.view(func(r store.Reader) error {
			got, err := r.AuditPayload(record.Chain, 1)
			h.same("the audit payload", got, payload)
			return err
		})
	})
}

func keptWhole(h *harness) { h.together(func() { keepAll(h, false) }) }

func times(h *harness) { h.together(func() { keepAll(h, true) }) }

// nilAndEmpty checks that a nil list stays nil and an empty list stays empty, because hashes cover the data that is
// read back.
func nilAndEmpty(h *harness) {
	bare := approvers.Request{ID: "bare", State: approvers.Pending}
	full := approvers.Request{ID: "full", State: approvers.Pending, Args: json.RawMessage{}}
	full.Plan.Why, full.Facts.Requesters = []string{}, []approvers.PersonID{}
	for _, r := range []approvers.Request{bare, full} {
		want := r
		want.Version = 1
		keep(h, r, want, store.Tx.PutRequest, func(tx store.Reader) (approvers.Request, error) { return tx.Request(r.ID) })
	}
	for i, inquiry := range []*approvers.ModelQuestion{nil, {}, {Options: []string{}}} {
		c := store.Call{ID: fmt.Sprint("call", i), ModelQuestion: inquiry}
		want := c
		want.Version = 1
		keep(h, c, want, store.Tx.PutCall, func(tx store.Reader) (store.Call, error) { return tx.Call(c.ID) })
	}
}

// exactBytes checks that raw JSON keeps its exact bytes, including white space and escapes, because signatures cover
// these bytes.
func exactBytes(h *harness) {
	h.together(func() {
		for i, args := range []string{
			" {\n\t\"a\" : 1 }\r\n", `{"a":"\u003c\u0000\/"}`, `{"b":1,"a":1.50,"c":1E2}`, `{"a":"<>&  "}`, `{"a":1,"a":2}`, `null`,
			`{"long":"` + strings.Repeat("x", 60_000) + `"}`,
		} {
			id := fmt.Sprint("e", i)
			e := approvers.Execution{ID: id, State: approvers.ExecutionNone, Tool: "t", Args: json.RawMessage(args)}
			e.Digest = approvers.Digest(e.ID, e.Tool, e.ToolHash, e.Args)
			h.write(func(tx store.Tx) error { return tx.PutExecution(e) })
			h.afterwards(func() {
				h.view(func(r store.Reader) error {
					got, err := r.Execution(id)
					if err != nil {
						return err
					}
					h.same("the arguments", string(got.Args), args)
					_, err = got.Start("here", start)
					return err
				})
			})
		}
	})
}

func notThere(h *harness) {
	h.view(func(r store.Reader) error {
		for name, read := range map[string]func() error{
			"Conversation":    func() error { _, err := r.Conversation("x"); return err },
			"ConversationAt":  func() error { _, err := r.ConversationAt("x"); return err },
			"Turn":            func() error { _, err := r.Turn("x"); return err },
			"Call":            func() error { _, err := r.Call("x"); return err },
			"Request":         func() error { _, err := r.Request("x"); return err },
			"Execution":       func() error { _, err := r.Execution("x"); return err },
			"Elicitation":     func() error { _, err := r.Elicitation("x"); return err },
			"FileData":        func() error { _, err := r.FileData("x", 0); return err },
			"Grant":           func() error { _, err := r.Grant("x"); return err },
			"Absence":         func() error { _, err := r.Absence("x"); return err },
			"Timer":           func() error { _, err := r.Timer(store.TimerRun, "x"); return err },
			"Inbox":           func() error { _, err := r.Inbox("x"); return err },
			"OutboxMessage":   func() error { _, err := r.OutboxMessage("x"); return err },
			"OutboxMessageAt": func() error { _, err := r.OutboxMessageAt("x", "y"); return err },
			"Rendering":       func() error { _, err := r.Rendering("x", 1); return err },
			"AuditHead":       func() error { _, err := r.AuditHead("x"); return err },
			"AuditPayload":    func() error { _, err := r.AuditPayload("x", 1); return err },
			"AuditRow":        func() error { _, err := r.AuditRow("x", 1); return err },
			"LastHead":        func() error { _, err := r.LastHead(); return err },
			"Setting":         func() error { _, err := r.Setting("x"); return err },
			"Policy":          func() error { _, err := r.Policy(); return err },
			"PolicyContent":   func() error { _, err := r.PolicyContent(); return err },
			"empty id":        func() error { _, err := r.Request(""); return err },
		} {
			if err := read(); !errors.Is(err, store.ErrNotFound) {
				h.Errorf("%s of nothing: got error %v, want ErrNotFound", name, err)
			}
		}
		n, err := lengths(r)
		h.same("lists of nothing", n, [16]int{})
		return err
	})
}

// lengths returns the lengths of lists, and the sum of a counter.
func lengths(r store.Reader) (n [16]int, err error) {
	var errs [16]error
	count := func(i, length int, err error) { n[i], errs[i] = length, err }
	messages, err := r.Messages("x", 0)
	count(0, len(messages), err)
	calls, err := r.Calls("x")
	count(1, len(calls), err)
	open, err := r.OpenRequests(store.RequestCursor{}, 10)
	count(2, len(open), err)
	due, err := r.TimersIn(store.AllShares, store.TimerRun, at(0), 10)
	count(3, len(due), err)
	all, err := r.Timers(store.TimerRun, 10)
	count(4, len(all), err)
	outbox, err := r.OutboxMessagesOf("x")
	count(5, len(outbox), err)
	renderings, err := r.Renderings("x")
	count(6, len(renderings), err)
	audit, err := r.Audit("x")
	count(7, len(audit), err)
	chains, err := r.AuditChains("", 10)
	count(8, len(chains), err)
	grants, err := r.OpenGrants("x")
	count(9, len(grants), err)
	absences, err := r.Absences()
	count(10, len(absences), err)
	counter, err := r.CounterSum("x", at(0))
	count(11, counter, err)
	silent, err := r.ConversationsBefore(at(0), 10)
	count(12, len(silent), err)
	journal, err := r.Journal(0, 10)
	count(13, len(journal), err)
	heads, err := r.Heads(0, 10)
	count(14, len(heads), err)
	rows := 0
	err = r.EachAuditRow(func(approvers.AuditRow) error { rows++; return nil })
	count(15, rows, err)
	return n, errors.Join(errs[:]...)
}

// withoutID checks that a record without an id is refused, because no read could find it.
func withoutID(h *harness) {
	h.together(func() {
		for name, put := range map[string]func(store.Tx) error{
			"conversation":   func(tx store.Tx) error { return tx.PutConversation(store.Conversation{}) },
			"message":        func(tx store.Tx) error { return tx.PutMessage(store.Message{Seq: 1}) },
			"message's seq":  func(tx store.Tx) error { return tx.PutMessage(store.Message{Conversation: "c"}) },
			"turn":           func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{}) },
			"call":           func(tx store.Tx) error { return tx.PutCall(store.Call{}) },
			"request":        func(tx store.Tx) error { return tx.PutRequest(approvers.Request{}) },
			"execution":      func(tx store.Tx) error { return tx.PutExecution(approvers.Execution{}) },
			"counter":        func(tx store.Tx) error { return tx.AddCounter(store.Counter{Key: "k", N: 1}) },
			"counter's key":  func(tx store.Tx) error { return tx.AddCounter(store.Counter{ID: "i", N: 1}) },
			"grant":          func(tx store.Tx) error { return tx.PutGrant(approvers.Grant{}) },
			"absence":        func(tx store.Tx) error { return tx.PutAbsence(approvers.Absence{}) },
			"timer":          func(tx store.Tx) error { return tx.SetTimer(store.Timer{Kind: store.TimerRun}) },
			"timer's kind":   func(tx store.Tx) error { return tx.SetTimer(store.Timer{Ref: "x"}) },
			"inbox":          func(tx store.Tx) error { return tx.PutInbox(store.Inbox{}) },
			"outbox message": func(tx store.Tx) error { return tx.PutOutboxMessage(store.OutboxMessage{}) },
			"rendering":      func(tx store.Tx) error { return tx.PutRendering(store.Rendering{Post: 1}) },
			"audit": func(tx store.Tx) error {
				return tx.AppendAudit(approvers.AuditRecord{}.Link(approvers.AuditRecord{}), nil)
			},
			"setting": func(tx store.Tx) error { return tx.PutSetting(store.Setting{}) },
			"policy":  func(tx store.Tx) error { return tx.PutPolicy(store.Policy{}, nil) },
		} {
			if err := h.try(put); err == nil {
				h.Errorf("a %s with nothing to find it by was stored", name)
			}
		}
	})
}

// texts holds ids with unusual characters. Some of their keys would collide if the parts of keys were joined without
// escaping.
var texts = []string{
	"a", "a/", "a/b", "/", "a:b", "a|b", "a b", "a\x01", "a\x01b", "a\n", "%", "_", "'", "é", "e\u0301", "A", "\U0010ffff", "a\u00ff", strings.Repeat("long", 200),
}

// anyText checks that the lists of one id have no records of another id. Ids may contain any characters.
func anyText(h *harness) {
	h.update(func(tx store.Tx) error {
		for _, id := range texts {
			a := approvers.AuditRecord{Chain: id, At: at(1), Kind: approvers.AuditProposed}
			err := errors.Join(
				tx.PutConversation(store.Conversation{ID: id, Place: id}),
				tx.PutTurn(approvers.Turn{ID: id, Conversation: id}),
				tx.PutExecution(approvers.Execution{ID: id, Conversation: id}),
				tx.PutMessage(store.Message{Conversation: id, Seq: 1, Text: id}),
				tx.PutCall(store.Call{ID: id, Turn: id}),
				tx.PutRequest(approvers.Request{ID: id, State: approvers.Pending, Conversation: id, CreatedAt: at(0)}),
				tx.AddCounter(store.Counter{Key: id, At: at(1), ID: id, N: 1}),
				tx.PutGrant(approvers.Grant{ID: id, State: approvers.GrantLive, Tool: id}),
				tx.PutAbsence(approvers.Absence{Who: approvers.PersonID(id), Name: id}),
				tx.SetTimer(store.Timer{Kind: store.TimerRun, Ref: id, Due: at(0)}),
				tx.SetTimer(store.Timer{Kind: store.TimerKind(id), Ref: id, Due: at(0)}),
				tx.PutInbox(store.Inbox{ID: id, ReceivedAt: at(0), HandledAt: at(1)}),
				tx.PutOutboxMessage(store.OutboxMessage{ID: id, Ref: id, Channel: id, TS: id}),
				tx.PutRendering(store.Rendering{OutboxMessage: id, Post: 1, Hash: id}),
				tx.AppendAudit(a.Link(approvers.AuditRecord{}), nil),
				tx.PutSetting(store.Setting{Key: id, Value: json.RawMessage("1")}),
			)
			if err != nil {
				return err
			}
		}
		return nil
	})
	h.view(func(r store.Reader) error {
		for _, id := range texts {
			c, err1 := r.ConversationAt(id)
			m, err2 := r.Messages(id, 0)
			calls, err3 := r.Calls(id)
			n, err4 := r.CounterSum(id, at(0))
			timer, err5 := r.Timer(store.TimerKind(id), id)
			timers, err6 := r.Timers(store.TimerKind(id), 10)
			s, err7 := r.OutboxMessageAt(id, id)
			of, err8 := r.OutboxMessagesOf(id)
			posts, err9 := r.Renderings(id)
			chain, err10 := r.Audit(id)
			grants, err11 := r.OpenGrants(id)
			away, err12 := r.Absence(approvers.PersonID(id))
			if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11, err12); err != nil {
				return err
			}
			if len(m) != 1 || len(calls) != 1 || n != 1 || len(timers) != 1 || len(of) != 1 || len(posts) != 1 || len(chain) != 1 || len(grants) != 1 {
				h.Errorf("%q: %d messages, %d calls, %d counted, %d timers, %d outbox messages, %d renderings, %d records, %d grants; want one of each",
					id, len(m), len(calls), n, len(timers), len(of), len(posts), len(chain), len(grants))
				continue
			}
			h.same("what belongs to "+id, []string{c.ID, m[0].Text, calls[0].ID, timer.Ref, s.ID, of[0].ID, posts[0].Hash, chain[0].Chain, grants[0].ID, away.Name},
				[]string{id, id, id, id, id, id, id, id, id, id})
		}
		open, err := r.OpenRequests(store.RequestCursor{}, 100)
		h.same("how many open requests", len(open), len(texts))
		granted, err2 := r.OpenGrants("")
		h.same("the open grants", ids(granted, func(g approvers.Grant) string { return g.ID }), texts)
		away, err3 := r.Absences()
		h.same("who is away", ids(away, func(a approvers.Absence) string { return string(a.Who) }), slices.Sorted(slices.Values(texts)))
		return errors.Join(err, err2, err3)
	})
	h.update(func(tx store.Tx) error {
		n, err := tx.ForgetInbox(at(2), 100)
		h.same("how many inbox rows are forgotten", n, len(texts))
		counted, err2 := tx.PruneCounters(at(2), 100)
		h.same("how many counters are forgotten", counted, len(texts))
		return errors.Join(err, err2)
	})
	for i, id := range texts {
		h.update(func(tx store.Tx) error {
			done, err := tx.EraseConversation(id, noLimit)
			h.same("it is erased", done, true)
			n, err2 := tx.PruneChain(id)
			h.same("how many records are pruned", n, 1)
			return errors.Join(err, err2)
		})
		h.view(func(r store.Reader) error {
			open, err := r.OpenRequests(store.RequestCursor{}, 100)
			h.same("how many requests are left", len(open), len(texts)-i-1)
			chains, err2 := r.AuditChains("", 100)
			h.same("how many chains are left", len(chains), len(texts)-i-1)
			return errors.Join(err, err2)
		})
	}
}
