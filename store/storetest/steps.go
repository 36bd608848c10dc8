package storetest

import (
	"encoding/json"
	"errors"
	"fmt"

	"pgregory.net/rapid"

	"countersign/approvers"
	"countersign/store"
)

// drawStep returns one random operation. A write of a guarded record reads the version first, and sometimes uses a
// wrong version.
func drawStep(t *rapid.T) step { //nolint:cyclop // one case for each operation of the contract
	name := func(label string) string { return rapid.SampledFrom(names).Draw(t, label) }
	id, other, third := name("id"), name("other"), name("third")
	when := at(rapid.SampledFrom(moments).Draw(t, "when"))
	later := at(rapid.SampledFrom(moments).Draw(t, "later"))
	kind := rapid.SampledFrom(kinds).Draw(t, "kind")
	n := rapid.IntRange(0, 2).Draw(t, "n")
	stale := uint64(rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(t, "stale"))
	flag := rapid.Bool().Draw(t, "flag")
	put := func(what string, run func(store.Tx) error) step {
		return step{fmt.Sprintf("%s %q %q %q %v %v %s %d %d %v", what, id, other, third, when, later, kind, n, stale, flag),
			func(tx store.Tx) (any, error) { return nil, run(tx) }}
	}
	switch rapid.SampledFrom([]string{
		"conversation", "message", "turn", "call", "request", "request", "execution", "elicitation",
		"file", "file", "unfile", "counter", "counter", "uncount", "grant", "grant", "absence", "timer", "timer", "timer", "unset", "inbox", "inbox", "forget",
		"outbox message", "outbox message", "rendering", "audit", "audit", "setting", "policy", "due", "open", "of", "at",
		"erase", "unsay", "unshow", "prune", "ungrant", "unpost", "head", "read", "read", "read", "read", "read", "read", "read", "read",
	}).Draw(t, "what") {
	case "conversation":
		return put("put conversation", func(tx store.Tx) error {
			c, _ := tx.Conversation(id)
			c = store.Conversation{ID: id, Version: c.Version + stale, Place: other, CreatedAt: when, LastAt: later}
			if flag && n == 0 {
				c.Turn = third
			}
			return tx.PutConversation(c)
		})
	case "message":
		return put("put message", func(tx store.Tx) error {
			return tx.PutMessage(store.Message{Conversation: id, Seq: uint64(n + 1), Text: other, At: when})
		})
	case "turn":
		return put("put turn", func(tx store.Tx) error {
			old, _ := tx.Turn(id)
			return tx.PutTurn(approvers.Turn{ID: id, Version: old.Version + stale, Conversation: other, Step: n})
		})
	case "call":
		return put("put call", func(tx store.Tx) error {
			old, _ := tx.Call(id)
			return tx.PutCall(store.Call{ID: id, Version: old.Version + stale, Turn: other, Step: n, Index: len(third)})
		})
	case "request":
		state := states[n]
		return put("put request", func(tx store.Tx) error {
			old, _ := tx.Request(id)
			return tx.PutRequest(approvers.Request{ID: id, Version: old.Version + stale, State: state, Conversation: other, Turn: third, Call: other, CreatedAt: when})
		})
	case "execution":
		return put("put execution", func(tx store.Tx) error {
			old, _ := tx.Execution(id)
			return tx.PutExecution(approvers.Execution{ID: id, Version: old.Version + stale, Conversation: other, Owner: third})
		})
	case "elicitation":
		return put("put elicitation", func(tx store.Tx) error {
			old, _ := tx.Elicitation(id)
			return tx.PutElicitation(approvers.Elicitation{ID: id, Version: old.Version + stale, Execution: other, Text: third})
		})
	case "file":
		return put("put file", func(tx store.Tx) error {
			f := store.File{Execution: id, Index: n, Name: other}.Of([]byte(third))
			f.Size += int(stale)
			return tx.PutFile(f, []byte(third))
		})
	case "unfile":
		return step{"erase files of " + id, func(tx store.Tx) (any, error) { return tx.EraseFiles(id) }}
	case "counter":
		return put("add counter", func(tx store.Tx) error {
			return tx.AddCounter(store.Counter{Key: id, At: when, ID: third, N: n + 1})
		})
	case "uncount":
		return step{fmt.Sprint("forget counters ", when, n), func(tx store.Tx) (any, error) { return tx.PruneCounters(when, n) }}
	case "grant":
		tool := rapid.SampledFrom(append(names, "")).Draw(t, "tool")
		return put("put grant of "+tool, func(tx store.Tx) error {
			old, _ := tx.Grant(id)
			return tx.PutGrant(approvers.Grant{ID: id, Version: old.Version + stale, State: grants[n], Tool: tool, At: when})
		})
	case "absence":
		return put("put absence", func(tx store.Tx) error {
			old, _ := tx.Absence(approvers.PersonID(id))
			return tx.PutAbsence(approvers.Absence{Who: approvers.PersonID(id), Version: old.Version + stale, Name: other, From: when})
		})
	case "timer":
		return put("set timer", func(tx store.Tx) error {
			return tx.SetTimer(store.Timer{Kind: kind, Ref: id, Due: when, Lane: other, Tries: n})
		})
	case "unset":
		return put("clear timer", func(tx store.Tx) error { return tx.ClearTimer(kind, id) })
	case "inbox":
		return put("put inbox", func(tx store.Tx) error {
			old, _ := tx.Inbox(id)
			row := store.Inbox{ID: id, Version: old.Version + stale, Kind: inboxKinds[n%len(inboxKinds)], ReceivedAt: when}
			if flag {
				row.HandledAt = later
			}
			return tx.PutInbox(row)
		})
	case "forget":
		return step{fmt.Sprint("forget ", when, n), func(tx store.Tx) (any, error) { return tx.ForgetInbox(when, n) }}
	case "outbox message":
		return put("put outbox message", func(tx store.Tx) error {
			old, _ := tx.OutboxMessage(id)
			s := store.OutboxMessage{ID: id, Version: old.Version + stale, Ref: other}
			if flag {
				s.Channel, s.TS = third, other
			}
			return tx.PutOutboxMessage(s)
		})
	case "rendering":
		return put("put rendering", func(tx store.Tx) error {
			return tx.PutRendering(store.Rendering{OutboxMessage: id, Post: uint64(n + 1), Hash: other})
		})
	case "audit":
		return put("append audit", func(tx store.Tx) error {
			head, _ := tx.AuditHead(id)
			head.Seq += stale
			p := approvers.AuditPayload{Chain: id, Seq: head.Seq + 1, Salt: []byte(third), Body: []byte(other)}
			a := approvers.AuditRecord{Chain: id, At: when, Actor: approvers.PersonID(other), PayloadHash: p.Hash()}.Link(head)
			if flag {
				return tx.AppendAudit(a, &p)
			}
			return tx.AppendAudit(a, nil)
		})
	case "policy":
		return put("put policy", func(tx store.Tx) error {
			old, _ := tx.Policy()
			return tx.PutPolicy(store.Policy{Load: id, Version: old.Version + stale, Record: uint64(n)}, []byte(other))
		})
	case "setting":
		return put("put setting", func(tx store.Tx) error {
			old, _ := tx.Setting(id)
			return tx.PutSetting(store.Setting{Key: id, Version: old.Version + stale, Value: json.RawMessage(fmt.Sprint(n))})
		})
	case "due":
		return step{fmt.Sprint("due ", kind, when, n), func(tx store.Tx) (any, error) { return tx.TimersIn(store.AllShares, kind, when, n) }}
	case "open":
		return step{fmt.Sprint("open after ", when, id), func(tx store.Tx) (any, error) {
			return tx.OpenRequests(store.RequestCursor{CreatedAt: when, ID: id}, n)
		}}
	case "erase":
		if flag {
			turn := store.TurnRecords{ID: id, Messages: []uint64{uint64(n + 1)}, Requests: []string{other}, Executions: []string{third}}
			return step{fmt.Sprint("erase turn ", turn), func(tx store.Tx) (any, error) { return tx.EraseTurn(turn, noLimit) }}
		}
		return step{"erase conversation " + id, func(tx store.Tx) (any, error) { return tx.EraseConversation(id, noLimit) }}
	case "unsay":
		if flag {
			return step{fmt.Sprint("erase payloads of ", id, n), func(tx store.Tx) (any, error) { return tx.ErasePayloads(id, uint64(n)) }}
		}
		return step{"erase payloads of " + id, func(tx store.Tx) (any, error) { return tx.ErasePayloads(id) }}
	case "unshow":
		return step{fmt.Sprint("erase renderings of ", id, " below ", n), func(tx store.Tx) (any, error) { return tx.EraseRenderings(id, uint64(n)) }}
	case "prune":
		return step{"prune " + id, func(tx store.Tx) (any, error) { return tx.PruneChain(id) }}
	case "ungrant":
		return put("erase grant and absence", func(tx store.Tx) error {
			return errors.Join(tx.EraseGrant(id), tx.EraseAbsence(approvers.PersonID(other)))
		})
	case "unpost":
		return put("erase outbox message", func(tx store.Tx) error { return tx.EraseOutboxMessage(id) })
	case "head":
		return put("put head", func(tx store.Tx) error {
			last, _ := tx.LastHead()
			return tx.PutHead(store.Head{Number: last.Number + 1 + stale, Size: last.Size + uint64(n), Note: id})
		})
	case "read":
		x := rapid.SampledFrom(readings()).Draw(t, "reading")
		return step{x.name, func(tx store.Tx) (any, error) { return x.read(tx) }}
	case "of":
		return step{"outbox messages of " + id, func(tx store.Tx) (any, error) { return tx.OutboxMessagesOf(id) }}
	}
	return step{"outbox message at " + id + " " + other, func(tx store.Tx) (any, error) { return tx.OutboxMessageAt(id, other) }}
}
