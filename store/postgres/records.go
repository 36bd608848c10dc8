package postgres

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/store"
)

var conversationTable = define(table[store.Conversation]{
	in: "conversations", name: "conversation",
	id:      func(c *store.Conversation) (string, *uint64) { return c.ID, &c.Version },
	columns: []string{"place", "last_at"},
	values:  func(c *store.Conversation) []any { return []any{text(c.Place), moment(c.LastAt)} },
})

var turnTable = define(table[approvers.Turn]{
	in: "turns", name: "turn",
	id:      func(t *approvers.Turn) (string, *uint64) { return t.ID, &t.Version },
	columns: []string{"conversation", "state"},
	values:  func(t *approvers.Turn) []any { return []any{text(t.Conversation), text(t.State)} },
	waits:   turnWaits,
})

var callTable = define(table[store.Call]{
	in: "calls", name: "call",
	id:      func(c *store.Call) (string, *uint64) { return c.ID, &c.Version },
	columns: []string{"turn", "step", "index"},
	values:  func(c *store.Call) []any { return []any{text(c.Turn), int64(c.Step), int64(c.Index)} },
	waits:   callWaits,
})

var requestTable = define(table[approvers.Request]{
	in: "requests", name: "request",
	id:      func(q *approvers.Request) (string, *uint64) { return q.ID, &q.Version },
	columns: []string{"state", "open", "conversation", "turn", "call", "agent", "tool", "asked_by", "waits_for", "created_at", "expires_at"},
	values: func(q *approvers.Request) []any {
		return []any{text(q.State), q.State.Open(), text(q.Conversation), text(q.Turn), text(q.Call), text(q.Agent), text(q.Tool), text(q.Facts.Asker), text(waitsFor(q)),
			moment(q.CreatedAt), moment(q.ExpiresAt)}
	},
	also:   putPeople,
	joined: "request_people",
	waits:  requestWaits,
})

// waitsFor names the roles of a request's current stage.
func waitsFor(q *approvers.Request) string {
	if q.State != approvers.Pending || q.Stage < 0 || q.Stage >= len(q.Plan.Stages) {
		return ""
	}
	return strings.Join(append(q.Plan.Stages[q.Stage].Roles(), q.Joined...), ", ")
}

// putPeople compares the people of a request before and after a change, and writes the differences.
func putPeople(r *run, old, now *approvers.Request) {
	people := now.People()
	var before []approvers.PersonID
	if old != nil {
		before = old.People()
		moved := !moment(old.CreatedAt).Equal(moment(now.CreatedAt))
		for _, p := range before {
			if moved || !slices.Contains(people, p) {
				r.always(key{table: "request_people", id: string(p) + "\x00" + now.ID, n: old.CreatedAt.UnixMicro()},
					"DELETE FROM request_people WHERE person = $1 AND created_at = $2 AND request = $3", text(p), moment(old.CreatedAt), text(now.ID))
			}
		}
		if moved {
			before = nil
		}
	}
	for _, p := range people {
		if !slices.Contains(before, p) {
			r.always(key{table: "request_people", id: string(p) + "\x00" + now.ID, n: now.CreatedAt.UnixMicro()},
				"INSERT INTO request_people (person, created_at, request) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", text(p), moment(now.CreatedAt), text(now.ID))
		}
	}
}

var executionTable = define(table[approvers.Execution]{
	in: "executions", name: "execution",
	id:      func(e *approvers.Execution) (string, *uint64) { return e.ID, &e.Version },
	columns: []string{"state", "conversation", "tool"},
	values:  func(e *approvers.Execution) []any { return []any{text(e.State), text(e.Conversation), text(e.Tool)} },
})

var elicitationTable = define(table[approvers.Elicitation]{
	in: "elicitations", name: "elicitation",
	id:      func(q *approvers.Elicitation) (string, *uint64) { return q.ID, &q.Version },
	columns: []string{"execution"},
	values:  func(q *approvers.Elicitation) []any { return []any{text(q.Execution)} },
})

var inboxTable = define(table[store.Inbox]{
	in: "inbox", name: "inbox row",
	id:      func(i *store.Inbox) (string, *uint64) { return i.ID, &i.Version },
	columns: []string{"kind", "received_at", "handled_at"},
	values:  func(i *store.Inbox) []any { return []any{text(i.Kind), moment(i.ReceivedAt), orNull(i.HandledAt)} },
	waits:   inboxWaits,
})

var outboxTable = define(table[store.OutboxMessage]{
	in: "outbox_messages", name: "outbox message",
	id:      func(s *store.OutboxMessage) (string, *uint64) { return s.ID, &s.Version },
	columns: []string{"kind", "ref", "state", "to", "created_at", "channel", "ts"},
	values: func(s *store.OutboxMessage) []any {
		var channel, ts any
		if s.Channel != "" && s.TS != "" {
			channel, ts = text(s.Channel), text(s.TS)
		}
		return []any{text(s.Kind), text(s.Ref), text(s.State), text(s.To), moment(s.CreatedAt), channel, ts}
	},
	also:  noteOutbox,
	waits: outboxWaits,
})

var settingTable = define(table[store.Setting]{
	in: "settings", name: "setting",
	id: func(s *store.Setting) (string, *uint64) { return s.Key, &s.Version },
})

// policyID is the id of the only row in the table policies.
const policyID = "policy"

var policyTable = define(table[store.Policy]{
	in: "policies", name: "policy",
	id:      func(p *store.Policy) (string, *uint64) { return policyID, &p.Version },
	columns: []string{"load"},
	values:  func(p *store.Policy) []any { return []any{text(p.Load)} },
})

var grantTable = define(table[approvers.Grant]{
	in: "grants", name: "grant",
	id:      func(g *approvers.Grant) (string, *uint64) { return g.ID, &g.Version },
	columns: []string{"tool", "state", "open"},
	values:  func(g *approvers.Grant) []any { return []any{text(g.Tool), text(g.State), g.State.Open()} },
	waits:   grantWaits,
})

var absenceTable = define(table[approvers.Absence]{
	in: "absences", name: "absence",
	id: func(a *approvers.Absence) (string, *uint64) { return string(a.Who), &a.Version },
})

func (t reader) Conversation(id string) (store.Conversation, error) {
	return conversationTable.read(t.run, id)
}

func (t reader) ConversationAt(place string) (store.Conversation, error) {
	return conversationTable.one(t.run, fmt.Sprintf("conversation at %q", place), "WHERE place = $1 ORDER BY born DESC LIMIT 1", text(place))
}

func (t reader) ConversationsBefore(lastAt time.Time, limit int) ([]store.Conversation, error) {
	if limit <= 0 {
		return nil, nil
	}
	return conversationTable.first(t.run, limit, "WHERE last_at < $1 ORDER BY last_at, id", moment(lastAt))
}

func (t reader) ConversationsSince(lastAt time.Time, limit int) ([]store.Conversation, error) {
	if limit <= 0 {
		return nil, nil
	}
	return conversationTable.first(t.run, limit, "WHERE last_at >= $1 ORDER BY last_at, id", moment(lastAt))
}

func (t reader) Turn(id string) (approvers.Turn, error) { return turnTable.read(t.run, id) }

func (t reader) Call(id string) (store.Call, error) { return callTable.read(t.run, id) }

func (t reader) Calls(turn string) ([]store.Call, error) {
	return callTable.all(t.run, "WHERE turn = $1 ORDER BY step, index, born", text(turn))
}

func (t reader) Request(id string) (approvers.Request, error) {
	if _, ok := t.run.known[requestTable.key(id)]; !ok && t.run.begin == beginUpdate {
		if err := t.run.lookUpRequest(id); err != nil {
			return approvers.Request{}, err
		}
	}
	return requestTable.read(t.run, id)
}

func (t reader) OpenRequests(after store.RequestCursor, limit int) ([]approvers.Request, error) {
	if limit <= 0 {
		return nil, nil
	}
	return requestTable.first(t.run, limit, "WHERE open AND (created_at, id) > ($1, $2) ORDER BY created_at, id", moment(after.CreatedAt), text(after.ID))
}

func (t reader) RequestsOf(who approvers.PersonID, before store.RequestCursor, limit int) ([]approvers.Request, error) {
	if limit <= 0 {
		return nil, nil
	}
	const of = "q JOIN request_people p ON p.request = q.id AND p.created_at = q.created_at WHERE p.person = $1 "
	if before.ID == "" && before.CreatedAt.IsZero() {
		return requestTable.first(t.run, limit, of+"ORDER BY p.created_at DESC, p.request DESC", text(who))
	}
	return requestTable.first(t.run, limit, of+"AND (p.created_at, p.request) < ($2, $3) ORDER BY p.created_at DESC, p.request DESC",
		text(who), moment(before.CreatedAt), text(before.ID))
}

func (t reader) Requests(conversation string) ([]approvers.Request, error) {
	return requestTable.all(t.run, "WHERE conversation = $1 ORDER BY id", text(conversation))
}

func (t reader) Execution(id string) (approvers.Execution, error) {
	if _, ok := t.run.known[executionTable.key(id)]; !ok && t.run.begin == beginUpdate {
		if err := t.run.lookUpExecution(id); err != nil {
			return approvers.Execution{}, err
		}
	}
	return executionTable.read(t.run, id)
}

func (t reader) Executions(conversation string) ([]approvers.Execution, error) {
	return executionTable.all(t.run, "WHERE conversation = $1 ORDER BY id", text(conversation))
}

func (t reader) Elicitation(id string) (approvers.Elicitation, error) {
	return elicitationTable.read(t.run, id)
}

func (t reader) Elicitations(execution string) ([]approvers.Elicitation, error) {
	return elicitationTable.all(t.run, "WHERE execution = $1 ORDER BY born", text(execution))
}

func (t reader) Grant(id string) (approvers.Grant, error) { return grantTable.read(t.run, id) }

func (t reader) OpenGrants(tool string) ([]approvers.Grant, error) {
	if tool == "" {
		return grantTable.readable(t.run, "WHERE open ORDER BY born")
	}
	return grantTable.readable(t.run, "WHERE open AND tool = $1 ORDER BY born", text(tool))
}

func (t reader) ClosedGrants(after string, limit int) ([]approvers.Grant, error) {
	if limit <= 0 {
		return nil, nil
	}
	return grantTable.first(t.run, limit, "WHERE NOT open AND id > $1 ORDER BY id", text(after))
}

func (t reader) Absence(who approvers.PersonID) (approvers.Absence, error) {
	return absenceTable.read(t.run, string(who))
}

func (t reader) Absences() ([]approvers.Absence, error) {
	return absenceTable.readable(t.run, "ORDER BY id")
}

func (t reader) Inbox(id string) (store.Inbox, error) { return inboxTable.read(t.run, id) }

func (t reader) OutboxMessage(id string) (store.OutboxMessage, error) {
	if t.run.begin == beginView && !t.run.begun {
		if err := t.run.lookUpMessage(id); err != nil {
			return store.OutboxMessage{}, err
		}
	}
	return outboxTable.read(t.run, id)
}

func (t reader) OutboxMessagesOf(ref string) ([]store.OutboxMessage, error) {
	ids, ok := t.run.lists.outbox[ref]
	if !ok {
		var found []store.OutboxMessage
		err := t.run.query(t.run.onRefs, t.run.lookUpOutbox("ARRAY[$1]", ref, &found))
		if err == nil {
			err = t.run.listOutbox(found, ref, ref)
		}
		if err != nil {
			return nil, err
		}
		ids = t.run.lists.outbox[ref]
	}
	var out []store.OutboxMessage
	for _, id := range ids {
		s, err := t.OutboxMessage(id)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (t reader) OutboxRefs(after string, limit int) (refs []string, err error) {
	if limit <= 0 {
		return nil, nil
	}
	err = t.run.query(on(outboxTable.in), rows(limited("SELECT DISTINCT ref FROM outbox_messages WHERE ref > $1 ORDER BY ref", limit), []any{text(after)}, func(found pgx.Rows) error {
		var ref string
		err := found.Scan(&ref)
		refs = append(refs, readText(ref))
		return err
	}))
	return refs[:min(limit, len(refs))], err
}

func (t reader) OutboxMessageAt(channel, ts string) (store.OutboxMessage, error) {
	return outboxTable.one(t.run, fmt.Sprintf("outbox message at %s %s", channel, ts), "WHERE channel = $1 AND ts = $2 ORDER BY born DESC LIMIT 1", text(channel), text(ts))
}

func (t reader) Setting(key string) (store.Setting, error) { return settingTable.read(t.run, key) }

func (t reader) Policy() (store.Policy, error) { return policyTable.read(t.run, policyID) }

func (t reader) PolicyContent() (content []byte, err error) {
	err = t.run.query(on("policies", "policy content"), row("SELECT content FROM policies WHERE id = $1", []any{policyID}, func(found pgx.Row) error { return found.Scan(&content) }))
	if err == nil && content == nil {
		err = fmt.Errorf("policy: %w", store.ErrNotFound)
	}
	return content, err
}

func (t *tx) PutConversation(c store.Conversation) error { return conversationTable.write(t.run, c) }

func (t *tx) PutTurn(turn approvers.Turn) error { return turnTable.write(t.run, turn) }

func (t *tx) PutCall(c store.Call) error { return callTable.write(t.run, c) }

func (t *tx) PutRequest(q approvers.Request) error { return requestTable.write(t.run, q) }

func (t *tx) PutExecution(e approvers.Execution) error { return executionTable.write(t.run, e) }

func (t *tx) PutElicitation(q approvers.Elicitation) error { return elicitationTable.write(t.run, q) }

func (t *tx) PutGrant(g approvers.Grant) error { return grantTable.write(t.run, g) }

func (t *tx) PutAbsence(a approvers.Absence) error { return absenceTable.write(t.run, a) }

func (t *tx) EraseGrant(id string) error {
	_, err := t.run.exec("DELETE FROM grants WHERE id = $1", text(id))
	return err
}

func (t *tx) EraseAbsence(who approvers.PersonID) error {
	_, err := t.run.exec("DELETE FROM absences WHERE id = $1", text(who))
	return err
}

func (t *tx) EraseOutboxMessage(id string) error {
	_, err := t.run.exec("WITH shown AS (DELETE FROM renderings WHERE message = $1), timed AS (DELETE FROM timers WHERE ref = $1) DELETE FROM outbox_messages WHERE id = $1", text(id))
	return err
}

func (t *tx) PutInbox(i store.Inbox) error { return inboxTable.write(t.run, i) }

func (t *tx) PutOutboxMessage(s store.OutboxMessage) error { return outboxTable.write(t.run, s) }

func (t *tx) PutSetting(s store.Setting) error { return settingTable.write(t.run, s) }

func (t *tx) PutPolicy(p store.Policy, content []byte) error {
	if err := keyable("policy's load", p.Load); err != nil {
		return err
	}
	if err := policyTable.write(t.run, p); err != nil {
		return err
	}
	if content == nil {
		content = []byte{}
	}
	t.run.aside = append(t.run.aside, store.Damage{Bucket: policyTable.in, Key: policyID}) // if the old content was damaged, its damage is resolved
	t.run.always(key{table: "policy content"}, "UPDATE policies SET content = $1 WHERE id = '"+policyID+"'", content)
	return nil
}

// ExpectPolicy prepares the check of the policy. The transaction sends the check with its next read or its COMMIT.
func (t *tx) ExpectPolicy(load string) error {
	t.run.expects = append(t.run.expects, text(load))
	return nil
}
