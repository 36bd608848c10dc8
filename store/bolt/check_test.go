package bolt

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/store"
)

// wellFilled returns a store with two of everything.
func wellFilled(t *testing.T) *Store {
	t.Helper()
	s := opened(t)
	err := s.Update(t.Context(), func(tx store.Tx) error {
		var errs []error
		for n := range 2 {
			id := fmt.Sprint(n)
			var head approvers.AuditRecord
			for _, kind := range []approvers.AuditKind{approvers.AuditProposed, approvers.AuditShown, approvers.AuditDecided} {
				p := approvers.AuditPayload{Chain: id, Seq: head.Seq + 1, Salt: []byte(id), Body: []byte(kind)}
				head = approvers.AuditRecord{Chain: id, At: benchTime, Kind: kind, PayloadHash: p.Hash()}.Link(head)
				errs = append(errs, tx.AppendAudit(head, &p))
			}
			errs = append(errs,
				tx.PutConversation(store.Conversation{ID: id, Place: "p" + id}),
				tx.PutMessage(store.Message{Conversation: id, Seq: 1}),
				tx.PutTurn(approvers.Turn{ID: id}),
				tx.PutCall(store.Call{ID: id, Turn: id}),
				tx.PutRequest(approvers.Request{ID: id, State: approvers.Pending, CreatedAt: benchTime, ClosedBy: approvers.PersonID("T/" + id)}),
				tx.PutExecution(approvers.Execution{ID: id}),
				tx.PutElicitation(approvers.Elicitation{ID: id, Execution: id}),
				tx.PutFile(store.File{Execution: id, Name: "f"}.Of([]byte("data"+id)), []byte("data"+id)),
				tx.AddCounter(store.Counter{Key: id, At: benchTime, ID: id, N: 1}),
				tx.PutGrant(approvers.Grant{ID: id, State: approvers.GrantLive, Tool: "t" + id}),
				tx.PutAbsence(approvers.Absence{Who: approvers.PersonID(id)}),
				tx.SetTimer(store.Timer{Kind: store.TimerRun, Ref: id, Due: benchTime}),
				tx.PutInbox(store.Inbox{ID: id, ReceivedAt: benchTime}),
				tx.PutInbox(store.Inbox{ID: "h" + id, ReceivedAt: benchTime, HandledAt: benchTime}),
				tx.PutOutboxMessage(store.OutboxMessage{ID: id, Ref: id, Channel: "C", TS: id}),
				tx.PutRendering(store.Rendering{OutboxMessage: id, Post: 1}),
				tx.PutSetting(store.Setting{Key: id, Value: []byte("1")}),
				tx.PutHead(store.Head{Number: uint64(n) + 1, Size: uint64(n) + 1, Note: "signed"}),
			)
		}
		return errors.Join(errs...)
	})
	if err := errors.Join(err, s.Check(t.Context())); err != nil {
		t.Fatal(err)
	}
	return s
}

// tampered makes a new store, and passes the first row of a bucket to fn, which changes the bucket. tampered returns
// the error of the store's check.
func tampered(t *testing.T, in bucket, fn func(b *bbolt.Bucket, k, v []byte) error) error {
	t.Helper()
	s := wellFilled(t)
	err := s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketNames[in]))
		k, v := b.Cursor().First()
		return fn(b, append([]byte(nil), k...), append([]byte(nil), v...))
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.Check(t.Context())
}

// holdsNothingElse lists the buckets whose rows no other row names. The check can't detect that a row of one of these
// buckets is missing.
var holdsNothingElse = map[bucket]bool{messages: true, renderings: true, settings: true, auditPayloads: true, absences: true}

// In every bucket, the check finds a superfluous row and a changed row. The check finds a missing row in every bucket
// except the buckets in holdsNothingElse.
func TestCheckFindsTampering(t *testing.T) {
	for in := range allBuckets {
		if in == setAside {
			continue // the bucket is empty
		}
		t.Run(in.String(), func(t *testing.T) {
			t.Parallel()
			gone := tampered(t, in, func(b *bbolt.Bucket, k, _ []byte) error { return b.Delete(k) })
			if (gone == nil) != holdsNothingElse[in] {
				t.Errorf("a row is gone: the check says %v", gone)
			}
			moved := tampered(t, in, func(b *bbolt.Bucket, k, v []byte) error { return b.Put(append(k, 'x'), v) })
			if moved == nil {
				t.Error("a row too many: the check finds nothing")
			}
			changed := tampered(t, in, func(b *bbolt.Bucket, k, v []byte) error { v[len(v)-1] ^= 0x15; return b.Put(k, v) })
			if changed == nil {
				t.Error("a changed row: the check finds nothing")
			}
		})
	}
}

// The test changes rows, but the changed rows can be decoded and have valid checksums. The check finds each change,
// because the row does not agree with a hash, its key or another row.
func TestCheckFindsQuietChanges(t *testing.T) {
	for name, row := range map[string]struct {
		in       bucket
		old, new string
		says     string
	}{
		"an audit record's kind":            {audit, "proposed", "approved", "record 1 was changed"},
		"an audit record's chain":           {audit, "\x010\x00", "\x011\x00", "record 1 was changed"},
		"an audit payload":                  {auditPayloads, "\x010\x00", "\x011\x00", "the payload of record 1 was changed"},
		"an audit record's leaf":            {audit, "\x00\x00\x00\x00", "\x00\x00\x00\x01", "audit_journal"},
		"the chain of a leaf":               {auditJournal, "0\x00", "1\x00", "audit_journal"},
		"the hash of a leaf":                {auditJournal, "\x00\x01\x00\x00", "\x00\x02\x00\x00", "which does not exist"},
		"the size of a head":                {auditHeads, "\x01signed", "\x07signed", "audit_heads"},
		"a request's state":                 {requests, `"state":"pending"`, `"state":"expired"`, "indexes"},
		"a timer's time":                    {timers, `12:00:00Z`, `12:00:01Z`, "timer_ref"},
		"a record's version":                {turns, `"version":1`, `"version":2`, "at version 2"},
		"a conversation's place":            {conversations, `"place":"p0"`, `"place":"p1"`, "conversation_place"},
		"when an inbox row came":            {inbox, `12:00:00Z`, `12:00:02Z`, "inbox_unhandled"},
		"the place of an outbox message":    {outboxMessages, `"channel":"C"`, `"channel":"D"`, "surface_message"},
		"the seq of a message":              {messages, `"seq":1`, `"seq":2`, "holds the record of"},
		"the outbox message of a rendering": {renderings, `"surface":"0"`, `"surface":"1"`, "holds the record of"},
		"what a file says it is":            {files, `"size":5`, `"size":6`, "has the wrong size or hash"},
		"a byte of a file":                  {fileData, "data", "dat4", "has the wrong size or hash"},
		"the execution that asked":          {elicitations, `"execution":"0"`, `"execution":"1"`, "elicitation_execution"},
		"the turn of a call":                {calls, `"turn":"0"`, `"turn":"1"`, "call_turn"},
		"a request's time of arrival":       {requests, `"created_at":"2026`, `"created_at":"2025`, "request_open"},
	} {
		err := tampered(t, row.in, func(b *bbolt.Bucket, k, v []byte) error {
			v = valueOf(row.in, v)
			after := strings.Replace(string(v), row.old, row.new, 1)
			if after == string(v) {
				t.Errorf("%s: %q is not in %q", name, row.old, v)
			}
			return b.Put(k, withChecksum(row.in, k, []byte(after)))
		})
		if err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: the check says %v, want %q", name, err, row.says)
		}
	}
}

// The check reports a policy in force whose version differs from the version of its setting. The check also reports a
// policy in force without content.
func TestCheckOfPolicy(t *testing.T) {
	for says, settings := range map[string][]store.Setting{
		"at version 7, its setting at 1": {{Key: policyKey, Value: []byte(`{"load":"x","version":7}`)}, {Key: contentKey}},
		"has no content":                 {{Key: policyKey, Value: []byte(`{"load":"x","version":1}`)}},
		"":                               {{Key: policyKey, Value: []byte(`{"load":"x","version":1}`)}, {Key: contentKey}},
	} {
		s, err := Open(filepath.Join(t.TempDir(), "store.db"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		err = s.Update(t.Context(), func(tx store.Tx) error {
			for _, one := range settings {
				if err := tx.PutSetting(one); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(t.Context()); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("the check says %v, want %q", err, says)
		}
	}
}

// The check finds that the last record of an audit chain is missing, because the record's journal entry and payload
// still exist.
func TestCheckFindsTruncatedChain(t *testing.T) {
	err := tampered(t, audit, func(b *bbolt.Bucket, _, _ []byte) error {
		return b.Delete(number(text(nil, "0"), 3))
	})
	if err == nil || !strings.Contains(err.Error(), "record 3 is missing, but its payload is there") {
		t.Errorf("the last record is gone and its payload is not: the check says %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "names record 3 of chain 0, which does not exist") {
		t.Errorf("the last record is gone, and is in the journal: the check says %v", err)
	}
}

// A copy that was made while the store was open is a valid store.
func TestCheckOfCopy(t *testing.T) {
	s := wellFilled(t)
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := s.db.View(func(tx *bbolt.Tx) error { return tx.CopyFile(path, 0o600) }); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
