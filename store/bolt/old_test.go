package bolt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// old builds a store's file in an older version of the layout. This test file contains names, bucket numbers and JSON
// as literals, and uses no constants of the code under test.
type old struct {
	*testing.T
	path    string
	version int
	tx      *bbolt.Tx
}

// oldBuckets lists the buckets of each version.
var oldBuckets = [...][]string{
	1: {
		"conversations", "conversation_place", "messages", "turns", "calls", "call_turn", "requests", "request_open", "executions", "runs", "timers", "timer_ref",
		"inbox", "inbox_unhandled", "inbox_handled", "surfaces", "surface_ref", "surface_message", "renderings", "audit", "audit_payloads", "settings",
	},
	2: {
		"conversations", "conversation_place", "messages", "turns", "calls", "call_turn", "requests", "request_open", "executions", "timers", "timer_ref",
		"inbox", "inbox_unhandled", "inbox_handled", "surfaces", "surface_ref", "surface_message", "renderings", "audit", "audit_payloads", "settings",
		"tallies", "tally_time", "grants", "grant_open", "absences",
	},
	3: {
		"conversations", "conversation_place", "messages", "turns", "calls", "call_turn", "requests", "request_open", "executions", "timers", "timer_ref",
		"inbox", "inbox_unhandled", "inbox_handled", "surfaces", "surface_ref", "surface_message", "renderings", "audit", "audit_payloads", "settings",
		"tallies", "tally_time", "grants", "grant_open", "absences", "conversation_last", "turn_conversation", "request_conversation", "execution_conversation",
		"audit_journal", "audit_heads",
	},
	4: {
		"conversations", "conversation_place", "messages", "turns", "calls", "call_turn", "requests", "request_open", "executions", "timers", "timer_ref",
		"inbox", "inbox_unhandled", "inbox_handled", "surfaces", "surface_ref", "surface_message", "renderings", "audit", "audit_payloads", "settings",
		"tallies", "tally_time", "grants", "grant_open", "absences", "conversation_last", "turn_conversation", "request_conversation", "execution_conversation",
		"audit_journal", "audit_heads", "request_person",
	},
	5: {
		"conversations", "conversation_place", "messages", "turns", "calls", "call_turn", "requests", "request_open", "executions", "timers", "timer_ref",
		"inbox", "inbox_unhandled", "inbox_handled", "surfaces", "surface_ref", "surface_message", "renderings", "audit", "audit_payloads", "settings",
		"tallies", "tally_time", "grants", "grant_open", "absences", "conversation_last", "turn_conversation", "request_conversation", "execution_conversation",
		"audit_journal", "audit_heads", "request_person", "elicitations", "elicitation_execution", "files", "file_data",
	},
}

func oldStore(t *testing.T, version int, fill func(o old)) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "old.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		o := old{t, path, version, tx}
		for _, name := range append([]string{"countersign"}, oldBuckets[version]...) {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		o.put("countersign", "schema", fmt.Sprint(version))
		fill(o)
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func (o old) put(in, key, value string) {
	if err := o.tx.Bucket([]byte(in)).Put([]byte(key), []byte(value)); err != nil {
		o.Fatal(err)
	}
}

// bare puts a record whose Version is 1, and no index row for the record.
func (o old) bare(in, id string, js string) { o.put(in, id, "\x01\x00\x00"+js) }

// record puts a record whose Version is 1, and one row in an index bucket. The parameter index is the number of the
// index bucket.
func (o old) record(in, id string, js string, index byte, name, key string) {
	if err := o.tx.Bucket([]byte(in)).SetSequence(1); err != nil {
		o.Fatal(err)
	}
	o.put(in, id, fmt.Sprintf("\x01\x01\x01%c%c%s%s", index, len(key), key, js))
	o.put(name, key, id)
}

// replace replaces a text in the first row that contains the text.
func (o old) replace(in, text, by string) {
	c := o.tx.Bucket([]byte(in)).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if strings.Contains(string(v), text) {
			o.put(in, string(k), strings.Replace(string(v), text, by, 1))
			return
		}
	}
	o.Fatalf("%s has no row with %s", in, text)
}

func (o old) run(tool, conversation string, at time.Time, execution string) {
	o.put("runs", tool+"\x00\x01"+conversation+"\x00\x01"+string(moment(nil, at))+execution+"\x00\x01", "")
}

func (o old) outboxMessage(id, request string) {
	js := fmt.Sprintf(`{"id":%q,"version":1,"kind":"approval","ref":%q,"request":%q,"to":"role:leads","state":"shown","want":1,"shown":1,"posts":1,"created_at":"2026-05-04T12:00:00Z"}`,
		id, id, request)
	key := id + "\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01"
	o.record("surfaces", id, js, 17, "surface_ref", key)
}

// rendering puts a rendering. The parameter said is the part of the rendering's JSON between the hash and the body.
func (o old) rendering(message string, post byte, said, body string) {
	o.put("renderings", message+"\x00\x01\x00\x00\x00\x00\x00\x00\x00"+string(post), fmt.Sprintf(
		`{"surface":%q,"post":%d,"hash":"h",%s"body":%q,"at":"2026-05-04T12:00:00.000001Z"}`, message, post, said, base64.StdEncoding.EncodeToString([]byte(body))))
}

// aged fills an old store with two kinds of rows: rows that an upgrade changes, and neighboring rows that the upgrade
// keeps.
func aged(o old) {
	if o.version == 1 {
		agedRuns(o)
	} else {
		at := string(moment(nil, benchTime))
		o.put("tallies", "t\x00\x01"+at+"id\x00\x01", "\x00\x00\x00\x00\x00\x00\x00\x07")
		o.put("tally_time", at+"t\x00\x01id\x00\x01", "")
		o.put("renderings", "card\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01",
			`{"surface":"card","post":1,"hash":"h","shows":[{"request":"req_1","digest":"d1"}],"body":"Ym9keQ==","at":"2026-05-04T12:00:00.000001Z"}`)
	}
	o.outboxMessage("card", "req_1")
	o.outboxMessage("answer", "")
	agedRecords(o)
	agedAudit(o)
}

// agedRecords puts records that get additional index rows in version 3, and records that get none.
func agedRecords(o old) {
	o.record("requests", "req_1", `{"id":"req_1","version":1,"state":"pending","conversation":"c1","tool":"issue_refund","args":"e30=","digest":"d30","facts":{"requesters":["T1/U1"]},`+
		`"plan":{"verdict":"ask","risk":"high","stages":[{"approver":"leads","quorum":1}],"known":true,"why":null,"requesters":null,"policy_hash":""},"stage":0,`+
		`"created_at":"2026-05-04T12:00:00Z","expires_at":"2026-05-04T13:00:00Z"}`,
		8, "request_open", string(moment(nil, benchTime))+"req_1\x00\x01")
	o.bare("requests", "req_2", `{"id":"req_2","version":1,"state":"rejected","conversation":"c1","created_at":"2026-05-04T12:00:00Z"}`)
	for n, id := range []string{"c1", "c2"} {
		js := fmt.Sprintf(`{"id":%q,"version":1,"place":%q,"created_at":"2026-05-04T12:00:00Z","last_at":"2026-05-04T12:0%d:00Z"}`, id, id, n)
		o.record("conversations", id, js, 2, "conversation_place", id+"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01")
	}
	o.bare("turns", "turn_1", `{"id":"turn_1","version":1,"conversation":"c1","state":"answered","created_at":"2026-05-04T12:00:00Z"}`)
	for n := range 30 {
		o.bare("executions", fmt.Sprint("exec_", n), fmt.Sprintf(`{"id":"exec_%d","version":1,"conversation":"c1","state":"none","args":"e30=","created_at":"2026-05-04T12:00:00Z"}`, n))
	}
	o.record("inbox", "Ev1", `{"id":"Ev1","version":1,"kind":"event","received_at":"2026-05-04T12:00:00Z","payload":"e30="}`,
		14, "inbox_unhandled", string(moment(nil, benchTime))+"Ev1\x00\x01")
	o.put("timers", "expire\x00\x01"+string(moment(nil, benchTime))+"req_1\x00\x01", `{"kind":"expire","ref":"req_1","due":"2026-05-04T12:00:00Z"}`)
	o.put("timer_ref", "expire\x00\x01req_1\x00\x01", string(moment(nil, benchTime)))
}

// oldHead and oldAway are the hashes of the last records of the chains that agedAudit puts. oldPayload is the body of
// the only payload.
const (
	oldHead    = "7687437e0695caa9c7ede23091ce71f24b8d8dfd2cb487c71150656cb1e3e82c"
	oldAway    = "bf39f9e89ddd847c6a4782e1bb7f87edf73f7ad3e4eed3db67f15f9b8b7aedb2"
	oldPayload = `{"amount":"<49.99>"}`
)

// agedAudit puts two chains in the form that the program wrote when the layout had version 2.
func agedAudit(o old) {
	o.put("audit", "req_1\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01", `{"chain":"req_1","seq":1,"at":"2026-05-04T12:00:00.000001Z","kind":"proposed",`+
		`"facts":{"tool":"issue_refund","":"","note":"<é>&\u2028\"\\"},`+
		`"payload_hash":"00399b1f2ce08bb128809bd70316a5dfbc2b5ffa5e1f956508d839cdc0bc415a","hash":"af9fa14d9d97e3a9a97594643f7c422cf54410cad7a3956438c4775fbf326d97"}`)
	o.put("audit", "req_1\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02", `{"chain":"req_1","seq":2,"at":"2026-05-04T12:00:01.000001Z","kind":"decided","actor":"T1/U1",`+
		`"prev":"af9fa14d9d97e3a9a97594643f7c422cf54410cad7a3956438c4775fbf326d97","hash":"`+oldHead+`"}`)
	o.put("audit", "absence:T1/U1\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01", `{"chain":"absence:T1/U1","seq":1,"at":"2026-05-04T12:00:00.000001Z","kind":"away","actor":"T1/U1",`+
		`"facts":{"from":"now"},"hash":"`+oldAway+`"}`)
	o.put("audit_payloads", "req_1\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01", `{"chain":"req_1","seq":1,"salt":"MDEyMzQ1Njc4OWFiY2RlZg==","body":"eyJhbW91bnQiOiI8NDkuOTk+In0="}`)
}

// agedRuns puts rows that only version 1 had.
func agedRuns(o old) {
	for n := range 40 {
		o.run("search", "conv\x00\xff1", benchTime.Add(time.Duration(n)*time.Minute), fmt.Sprint("exec", n))
	}
	o.run("search", "2", benchTime, "a")
	o.run("search", "2", benchTime, "b")
	o.run("", "", time.UnixMicro(-1), "before 1970")
	for post := range byte(30) {
		o.rendering("card", post+1, `"digest":"d`+fmt.Sprint(post+1)+`","whole":true,`, strings.Repeat("body", int(post)*100))
	}
	o.rendering("card", 31, `"digest":"d31",`, "partly")
	o.rendering("card", 32, ``, "it was over")
	o.rendering("answer", 1, `"digest":"x","whole":true,`, "of no request")
	o.rendering("gone", 1, `"digest":"x","whole":true,`, "of no outbox message")
}
