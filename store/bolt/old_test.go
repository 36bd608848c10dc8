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

// old is a store's file in the making, as version 1 of the layout wrote it. It says everything itself: names, numbers of buckets
// and JSON.
type old struct {
	*testing.T
	path string
	tx   *bbolt.Tx
}

var oldBuckets = []string{
	"conversations", "conversation_place", "messages", "turns", "calls", "call_turn", "requests", "request_open", "executions", "runs", "timers", "timer_ref",
	"inbox", "inbox_unhandled", "inbox_handled", "surfaces", "surface_ref", "surface_message", "renderings", "audit", "audit_payloads", "settings",
}

func oldStore(t *testing.T, fill func(o old)) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "old.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		o := old{t, path, tx}
		for _, name := range append(oldBuckets, "countersign") {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		o.put("countersign", "schema", "1")
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

// record puts a guarded record at version 1 with one row in an index bucket, given by its number.
func (o old) record(in, id string, js string, index byte, name, key string) {
	o.put(in, id, fmt.Sprintf("\x01\x01\x01%c%c%s%s", index, len(key), key, js))
	o.put(name, key, id)
}

func (o old) run(tool, conversation string, at time.Time, execution string) {
	o.put("runs", tool+"\x00\x01"+conversation+"\x00\x01"+string(moment(nil, at))+execution+"\x00\x01", "")
}

func (o old) surface(id, request string) {
	js := fmt.Sprintf(`{"id":%q,"version":1,"kind":"approval","ref":%q,"request":%q,"to":"role:leads","state":"shown","want":1,"shown":1,"posts":1,"created_at":"2026-05-04T12:00:00Z"}`,
		id, id, request)
	key := id + "\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01"
	o.record("surfaces", id, js, 17, "surface_ref", key)
}

// rendering puts a rendering; said is what it says between its hash and its body.
func (o old) rendering(surface string, post byte, said, body string) {
	o.put("renderings", surface+"\x00\x01\x00\x00\x00\x00\x00\x00\x00"+string(post), fmt.Sprintf(
		`{"surface":%q,"post":%d,"hash":"h",%s"body":%q,"at":"2026-05-04T12:00:00.000001Z"}`, surface, post, said, base64.StdEncoding.EncodeToString([]byte(body))))
}

// aged fills an old store with what an upgrade changes and, around it, what it leaves alone.
func aged(o old) {
	for n := range 40 {
		o.run("search", "conv\x00\xff1", benchTime.Add(time.Duration(n)*time.Minute), fmt.Sprint("exec", n))
	}
	o.run("search", "2", benchTime, "a")
	o.run("search", "2", benchTime, "b")
	o.run("", "", time.UnixMicro(-1), "before 1970")
	o.surface("card", "req_1")
	o.surface("answer", "")
	for post := range byte(30) {
		o.rendering("card", post+1, `"digest":"d`+fmt.Sprint(post+1)+`","whole":true,`, strings.Repeat("body", int(post)*100))
	}
	o.rendering("card", 31, `"digest":"d31",`, "partly")
	o.rendering("card", 32, ``, "it was over")
	o.rendering("answer", 1, `"digest":"x","whole":true,`, "of no request")
	o.rendering("gone", 1, `"digest":"x","whole":true,`, "of no surface")
	o.record("requests", "req_1", `{"id":"req_1","version":1,"state":"pending","tool":"issue_refund","args":"e30=","digest":"d30","facts":{"requesters":null},`+
		`"plan":{"verdict":"ask","risk":"high","stages":[{"approver":"leads","quorum":1}],"known":true,"why":null,"requesters":null,"policy_hash":""},"stage":0,`+
		`"created_at":"2026-05-04T12:00:00Z","expires_at":"2026-05-04T13:00:00Z"}`,
		8, "request_open", string(moment(nil, benchTime))+"req_1\x00\x01")
	o.record("inbox", "Ev1", `{"id":"Ev1","version":1,"kind":"event","received_at":"2026-05-04T12:00:00Z","payload":"e30="}`,
		14, "inbox_unhandled", string(moment(nil, benchTime))+"Ev1\x00\x01")
	o.put("timers", "expire\x00\x01"+string(moment(nil, benchTime))+"req_1\x00\x01", `{"kind":"expire","ref":"req_1","due":"2026-05-04T12:00:00Z"}`)
	o.put("timer_ref", "expire\x00\x01req_1\x00\x01", string(moment(nil, benchTime)))
}
