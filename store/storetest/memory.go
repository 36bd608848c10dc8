package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// memory is the simplest implementation of the contract. memory uses maps, and sorts a list at each read. The model
// test compares backends with memory.
type memory struct {
	conversations  map[string]store.Conversation
	places         []string // ids of conversations, in order of creation
	messages       map[string]map[uint64]store.Message
	turns          map[string]approvers.Turn
	calls          map[string]store.Call
	requests       map[string]approvers.Request
	executions     map[string]approvers.Execution
	elicitations   map[string]approvers.Elicitation
	asked          []string // ids of elicitations, in order of creation
	files          map[fileKey]store.File
	fileData       map[fileKey][]byte
	counters       map[counterKey]int
	grants         map[string]approvers.Grant
	granted        []string // ids of grants, in order of creation
	absences       map[string]approvers.Absence
	timers         map[timerKey]store.Timer
	inbox          map[string]store.Inbox
	outboxMessages map[string]store.OutboxMessage
	born           []string // ids of outbox messages, in order of creation
	renderings     map[string]map[uint64]store.Rendering
	audit          map[string][]approvers.AuditRecord
	payloads       map[payloadKey]approvers.AuditPayload
	journal        []approvers.JournalEntry
	heads          []store.Head
	settings       map[string]store.Setting
	policy         store.Policy
	policyContent  []byte
}

type timerKey struct {
	kind store.TimerKind
	ref  string
}

type fileKey struct {
	execution string
	index     int
}

type counterKey struct {
	key string
	at  time.Time
	id  string
}

type payloadKey struct {
	chain string
	seq   uint64
}

var _ store.Tx = (*memory)(nil)

func newMemory() *memory {
	return &memory{
		conversations: map[string]store.Conversation{}, messages: map[string]map[uint64]store.Message{}, turns: map[string]approvers.Turn{},
		calls: map[string]store.Call{}, requests: map[string]approvers.Request{}, executions: map[string]approvers.Execution{},
		elicitations: map[string]approvers.Elicitation{}, files: map[fileKey]store.File{}, fileData: map[fileKey][]byte{},
		counters: map[counterKey]int{}, grants: map[string]approvers.Grant{}, absences: map[string]approvers.Absence{},
		timers: map[timerKey]store.Timer{}, inbox: map[string]store.Inbox{}, outboxMessages: map[string]store.OutboxMessage{},
		renderings: map[string]map[uint64]store.Rendering{}, audit: map[string][]approvers.AuditRecord{},
		payloads: map[payloadKey]approvers.AuditPayload{}, settings: map[string]store.Setting{},
	}
}

// clone returns an independent copy of m.
func (m *memory) clone() *memory {
	c := *m
	c.conversations, c.places = maps.Clone(m.conversations), slices.Clone(m.places)
	c.turns, c.calls, c.requests, c.executions = maps.Clone(m.turns), maps.Clone(m.calls), maps.Clone(m.requests), maps.Clone(m.executions)
	c.counters, c.timers, c.inbox = maps.Clone(m.counters), maps.Clone(m.timers), maps.Clone(m.inbox)
	c.elicitations, c.asked, c.files, c.fileData = maps.Clone(m.elicitations), slices.Clone(m.asked), maps.Clone(m.files), maps.Clone(m.fileData)
	c.grants, c.granted, c.absences = maps.Clone(m.grants), slices.Clone(m.granted), maps.Clone(m.absences)
	c.outboxMessages, c.born = maps.Clone(m.outboxMessages), slices.Clone(m.born)
	c.journal, c.heads = slices.Clone(m.journal), slices.Clone(m.heads)
	c.payloads, c.settings = maps.Clone(m.payloads), maps.Clone(m.settings)
	c.messages, c.renderings, c.audit = maps.Clone(m.messages), maps.Clone(m.renderings), maps.Clone(m.audit)
	for k, v := range c.messages {
		c.messages[k] = maps.Clone(v)
	}
	for k, v := range c.renderings {
		c.renderings[k] = maps.Clone(v)
	}
	for k, v := range c.audit {
		c.audit[k] = slices.Clone(v)
	}
	return &c
}

func find[K comparable, T any](in map[K]T, key K) (T, error) {
	v, ok := in[key]
	if !ok {
		return v, fmt.Errorf("%v: %w", key, store.ErrNotFound)
	}
	return v, nil
}

// sorted returns the values for which pass returns true. The function order sorts the list. The list has at most limit
// values.
func sorted[K comparable, T any](in map[K]T, pass func(T) bool, order func(a, b T) int, limit int) []T {
	var out []T
	for _, v := range in {
		if pass(v) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, order)
	return out[:min(len(out), max(limit, 0))]
}

const noLimit = 1 << 30

// guard checks a version and increments it.
func guard[T any](in map[string]T, id string, version *uint64, stored func(T) uint64) error {
	if id == "" {
		return fmt.Errorf("a record without an id")
	}
	now := uint64(0)
	if v, ok := in[id]; ok {
		now = stored(v)
	}
	if *version != now {
		return store.ErrConflict
	}
	*version++
	return nil
}

func (m *memory) Conversation(id string) (store.Conversation, error) {
	return find(m.conversations, id)
}

func (m *memory) ConversationAt(place string) (store.Conversation, error) {
	for _, id := range slices.Backward(m.places) {
		if c := m.conversations[id]; c.Place == place {
			return c, nil
		}
	}
	return store.Conversation{}, store.ErrNotFound
}

func (m *memory) PutConversation(c store.Conversation) error {
	created := c.Version == 0
	err := guard(m.conversations, c.ID, &c.Version, func(c store.Conversation) uint64 { return c.Version })
	if err != nil {
		return err
	}
	if created {
		m.places = append(m.places, c.ID)
	}
	m.conversations[c.ID] = c
	return nil
}

func (m *memory) Messages(conversation string, after uint64) ([]store.Message, error) {
	return sorted(m.messages[conversation], func(x store.Message) bool { return x.Seq > after },
		func(a, b store.Message) int { return cmp.Compare(a.Seq, b.Seq) }, noLimit), nil
}

func (m *memory) PutMessage(x store.Message) error {
	if m.messages[x.Conversation] == nil {
		m.messages[x.Conversation] = map[uint64]store.Message{}
	}
	m.messages[x.Conversation][x.Seq] = x
	return nil
}

func (m *memory) Turn(id string) (approvers.Turn, error) { return find(m.turns, id) }

func (m *memory) PutTurn(t approvers.Turn) error {
	err := guard(m.turns, t.ID, &t.Version, func(t approvers.Turn) uint64 { return t.Version })
	if err == nil {
		m.turns[t.ID] = t
	}
	return err
}

func (m *memory) Call(id string) (store.Call, error) { return find(m.calls, id) }

func (m *memory) Calls(turn string) ([]store.Call, error) {
	return sorted(m.calls, func(c store.Call) bool { return c.Turn == turn }, func(a, b store.Call) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Index, b.Index))
	}, noLimit), nil
}

func (m *memory) PutCall(c store.Call) error {
	err := guard(m.calls, c.ID, &c.Version, func(c store.Call) uint64 { return c.Version })
	if err == nil {
		m.calls[c.ID] = c
	}
	return err
}

func (m *memory) Request(id string) (approvers.Request, error) { return find(m.requests, id) }

func (m *memory) OpenRequests(after store.RequestCursor, limit int) ([]approvers.Request, error) {
	order := func(at time.Time, id string, b approvers.Request) int {
		return cmp.Or(at.Compare(b.CreatedAt), cmp.Compare(id, b.ID))
	}
	return sorted(m.requests, func(r approvers.Request) bool {
		return r.State.Open() && order(after.CreatedAt, after.ID, r) < 0
	}, func(a, b approvers.Request) int { return order(a.CreatedAt, a.ID, b) }, limit), nil
}

func (m *memory) RequestsOf(who approvers.PersonID, before store.RequestCursor, limit int) ([]approvers.Request, error) {
	order := func(at time.Time, id string, b approvers.Request) int {
		return cmp.Or(at.Compare(b.CreatedAt), cmp.Compare(id, b.ID))
	}
	return sorted(m.requests, func(r approvers.Request) bool {
		return slices.Contains(r.People(), who) && (before == store.RequestCursor{} || order(before.CreatedAt, before.ID, r) > 0)
	}, func(a, b approvers.Request) int { return -order(a.CreatedAt, a.ID, b) }, limit), nil
}

func (m *memory) Requests(conversation string) ([]approvers.Request, error) {
	return sorted(m.requests, func(r approvers.Request) bool { return r.Conversation == conversation },
		func(a, b approvers.Request) int { return cmp.Compare(a.ID, b.ID) }, noLimit), nil
}

func (m *memory) PutRequest(r approvers.Request) error {
	err := guard(m.requests, r.ID, &r.Version, func(r approvers.Request) uint64 { return r.Version })
	if err == nil {
		m.requests[r.ID] = r
	}
	return err
}

func (m *memory) Execution(id string) (approvers.Execution, error) { return find(m.executions, id) }

func (m *memory) Executions(conversation string) ([]approvers.Execution, error) {
	return sorted(m.executions, func(e approvers.Execution) bool { return e.Conversation == conversation },
		func(a, b approvers.Execution) int { return cmp.Compare(a.ID, b.ID) }, noLimit), nil
}

func (m *memory) PutExecution(e approvers.Execution) error {
	err := guard(m.executions, e.ID, &e.Version, func(e approvers.Execution) uint64 { return e.Version })
	if err == nil {
		m.executions[e.ID] = e
	}
	return err
}

func (m *memory) Timer(kind store.TimerKind, ref string) (store.Timer, error) {
	return find(m.timers, timerKey{kind, ref})
}

func (m *memory) Timers(kind store.TimerKind, limit int) ([]store.Timer, error) {
	return sorted(m.timers, func(t store.Timer) bool { return t.Kind == kind }, func(a, b store.Timer) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Ref, b.Ref))
	}, limit), nil
}

func (m *memory) TimersIn(shares store.Shares, kind store.TimerKind, until time.Time, limit int) ([]store.Timer, error) {
	list, err := m.Timers(kind, noLimit)
	list = slices.DeleteFunc(list, func(t store.Timer) bool { return !shares.Has(t.Share()) || !until.IsZero() && t.Due.After(until) })
	return list[:min(len(list), max(limit, 0))], err
}

func (m *memory) DueKinds(shares store.Shares, kinds []store.TimerKind, until time.Time) (due []store.TimerKind, err error) {
	for _, kind := range kinds {
		if first, _ := m.TimersIn(shares, kind, until, 1); len(first) > 0 {
			due = append(due, kind)
		}
	}
	return due, nil
}

func (m *memory) SetTimer(t store.Timer) error {
	m.timers[timerKey{t.Kind, t.Ref}] = t
	return nil
}

func (m *memory) ClearTimer(kind store.TimerKind, ref string) error {
	delete(m.timers, timerKey{kind, ref})
	return nil
}

func (m *memory) Inbox(id string) (store.Inbox, error) { return find(m.inbox, id) }

func (m *memory) Unhandled(kind store.InboxKind, received time.Time) (bool, error) {
	for _, i := range m.inbox {
		if i.Kind == kind && i.HandledAt.IsZero() && !i.ReceivedAt.After(received) {
			return true, nil
		}
	}
	return false, nil
}

func (m *memory) PutInbox(i store.Inbox) error {
	err := guard(m.inbox, i.ID, &i.Version, func(i store.Inbox) uint64 { return i.Version })
	if err == nil {
		m.inbox[i.ID] = i
	}
	return err
}

func (m *memory) ForgetInbox(before time.Time, limit int) (int, error) {
	gone := sorted(m.inbox, func(i store.Inbox) bool { return !i.HandledAt.IsZero() && i.HandledAt.Before(before) }, func(a, b store.Inbox) int {
		return cmp.Or(a.HandledAt.Compare(b.HandledAt), cmp.Compare(a.ID, b.ID))
	}, limit)
	for _, i := range gone {
		delete(m.inbox, i.ID)
	}
	return len(gone), nil
}

func (m *memory) OutboxMessage(id string) (store.OutboxMessage, error) {
	return find(m.outboxMessages, id)
}

func (m *memory) OutboxMessagesOf(ref string) ([]store.OutboxMessage, error) {
	var out []store.OutboxMessage
	for _, id := range m.born {
		if s := m.outboxMessages[id]; s.Ref == ref {
			out = append(out, s)
		}
	}
	return out, nil
}

func (m *memory) OutboxMessageAt(channel, ts string) (store.OutboxMessage, error) {
	for _, id := range slices.Backward(m.born) {
		if s := m.outboxMessages[id]; s.Channel == channel && s.TS == ts && channel != "" && ts != "" {
			return s, nil
		}
	}
	return store.OutboxMessage{}, store.ErrNotFound
}

func (m *memory) OutboxRefs(after string, limit int) ([]string, error) {
	refs := map[string]string{}
	for _, s := range m.outboxMessages {
		refs[s.Ref] = s.Ref
	}
	return sorted(refs, func(ref string) bool { return ref > after }, strings.Compare, limit), nil
}

func (m *memory) PutOutboxMessage(s store.OutboxMessage) error {
	created := s.Version == 0
	err := guard(m.outboxMessages, s.ID, &s.Version, func(s store.OutboxMessage) uint64 { return s.Version })
	if err != nil {
		return err
	}
	if created {
		m.born = append(m.born, s.ID)
	}
	m.outboxMessages[s.ID] = s
	return nil
}

func (m *memory) Rendering(message string, post uint64) (store.Rendering, error) {
	return find(m.renderings[message], post)
}

func (m *memory) Renderings(message string) ([]store.Rendering, error) {
	return sorted(m.renderings[message], func(store.Rendering) bool { return true },
		func(a, b store.Rendering) int { return cmp.Compare(a.Post, b.Post) }, noLimit), nil
}

func (m *memory) PutRendering(r store.Rendering) error {
	if m.renderings[r.OutboxMessage] == nil {
		m.renderings[r.OutboxMessage] = map[uint64]store.Rendering{}
	}
	if _, there := m.renderings[r.OutboxMessage][r.Post]; there {
		return store.ErrConflict
	}
	m.renderings[r.OutboxMessage][r.Post] = r
	return nil
}

func (m *memory) EraseRenderings(message string, below uint64) (int, error) {
	n := 0
	for post := range m.renderings[message] {
		if below == 0 || post < below {
			delete(m.renderings[message], post)
			n++
		}
	}
	return n, nil
}

func (m *memory) Policy() (store.Policy, error) {
	if m.policy.Version == 0 {
		return store.Policy{}, store.ErrNotFound
	}
	return m.policy, nil
}

func (m *memory) PolicyContent() ([]byte, error) {
	if m.policy.Version == 0 {
		return nil, store.ErrNotFound
	}
	return m.policyContent, nil
}

func (m *memory) PutPolicy(p store.Policy, content []byte) error {
	switch {
	case p.Load == "":
		return errors.New("a policy without an id")
	case p.Version != m.policy.Version:
		return store.ErrConflict
	}
	p.Version++
	m.policy, m.policyContent = p, content
	return nil
}

func (m *memory) ExpectPolicy(load string) error {
	if m.policy.Version == 0 || m.policy.Load != load {
		return store.ErrPolicyChanged
	}
	return nil
}

func (m *memory) Setting(key string) (store.Setting, error) { return find(m.settings, key) }

func (m *memory) PutSetting(s store.Setting) error {
	err := guard(m.settings, s.Key, &s.Version, func(s store.Setting) uint64 { return s.Version })
	if err == nil {
		m.settings[s.Key] = s
	}
	return err
}
