package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/task"
	"countersign/store"
	"countersign/store/bolt"
)

// threeChains creates a store with three chains of three records each, and returns its path.
func threeChains(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	db, err := openstore.File(path)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(t.Context(), func(tx store.Tx) error {
		for i, chain := range []string{"req_A", "req_B", "req_C"} {
			var prev approvers.AuditRecord
			for n, kind := range []approvers.AuditKind{approvers.AuditProposed, approvers.AuditApproved, approvers.AuditDamaged} {
				a := approvers.AuditRecord{
					Chain: chain, At: time.Unix(int64(3*i+n+1), 0).UTC(), Kind: kind, Facts: map[string]string{"tool": "pay", "state": "approved", "n": fmt.Sprint(n + 1)},
				}.Link(prev)
				if err := tx.AppendAudit(a, nil); err != nil {
					return err
				}
				prev = a
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// flip changes one byte in each of the given records of the history. A record is given as CHAIN/SEQ. The rows'
// checksums are not changed, so they are wrong afterwards. bbolt itself finds no fault.
func flip(t *testing.T, path string, records ...string) {
	t.Helper()
	raw, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	flipped := 0
	err = raw.Update(func(tx *bbolt.Tx) error {
		type row struct{ k, v []byte }
		var rows []row
		bucket := tx.Bucket([]byte("audit"))
		err := bucket.ForEach(func(k, v []byte) error {
			for _, name := range records {
				chain, seq, _ := strings.Cut(name, "/")
				if bytes.HasPrefix(k, []byte(chain)) && fmt.Sprint(k[len(k)-1]) == seq {
					v = bytes.Clone(v)
					v[len(v)/2] ^= 1
					rows = append(rows, row{bytes.Clone(k), v})
				}
			}
			return nil
		})
		flipped = len(rows)
		for _, r := range rows {
			err = errors.Join(err, bucket.Put(r.k, r.v))
		}
		return err
	})
	if err := errors.Join(err, raw.Close()); err != nil || flipped != len(records) {
		t.Fatalf("%d of %d records were flipped (%v)", flipped, len(records), err)
	}
}

// Verification reports a damaged record of the history as one fault, which names the record. The record can be at any
// position of its chain. All other records are verified, listed and exported.
func TestDamagedRecordOfTheHistory(t *testing.T) {
	t.Parallel()
	for _, damaged := range [][]string{{"req_B/1"}, {"req_B/2"}, {"req_B/3"}, {"req_A/1"}, {"req_C/3"}, {"req_B/1", "req_B/2"}, {"req_A/2", "req_C/1"}, {"req_B/1", "req_B/2", "req_B/3"}} {
		t.Run(strings.Join(damaged, ","), func(t *testing.T) {
			path := threeChains(t)
			flip(t, path, damaged...)
			var faults, left []string
			for _, name := range damaged {
				chain, seq, _ := strings.Cut(name, "/")
				faults = append(faults, fmt.Sprintf("chain %s: record %s is damaged", chain, seq))
			}
			db, err := openstore.File(path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var out bytes.Buffer
			err = auditcmd.Verify(t.Context(), &out, db, audit.VerifyOptions{})
			found, looked, _ := strings.Cut(out.String(), "\n\n")
			if cli.Code(err) != cli.ExitNo || strings.Count(found, "\n")+1 != len(faults) || !containsAll(found, faults) || !strings.Contains(looked, "looked at 9 records in 3 chains") {
				t.Errorf("audit verify: %v\n%s", err, out.String())
			}

			out.Reset()
			err = runTask(t.Context(), "store check", task.Env{Store: db, Out: &out}, task.None{})
			if cli.Code(err) != cli.ExitNo || strings.Count(out.String(), "audit, row ") != len(damaged) || !strings.Contains(out.String(), "repaired: file") {
				t.Errorf("store check: %v\n%s", err, out.String())
			}

			var want []string
			for _, chain := range []string{"req_A", "req_B", "req_C"} {
				for n := 1; n <= 3; n++ {
					if name := fmt.Sprintf("%s/%d", chain, n); !slices.Contains(damaged, name) {
						want = append(want, name)
					}
				}
			}
			all, unread, err := audit.Filter{}.Records(t.Context(), db)
			for _, a := range all {
				left = append(left, fmt.Sprintf("%s/%d", a.Chain, a.Seq))
			}
			if err != nil || !slices.Equal(left, want) || len(unread.Rows) != len(damaged) {
				t.Errorf("the records are %v, without %v (%v)", left, unread.Rows, err)
			}
			for _, f := range []audit.Filter{{}, {Kinds: []string{"damaged"}}, {Since: time.Unix(5, 0)}} {
				out.Reset()
				for _, long := range []bool{false, true} {
					err := auditcmd.HistoryError(audit.List(t.Context(), &out, db, audit.ListOptions{Filter: f, Long: long}))
					if cli.Code(err) != cli.ExitNo || strings.Count(err.Error(), "\n") != len(damaged) || !containsAll(err.Error(), faults) {
						t.Errorf("audit list: %v", err)
					}
				}
			}
			for _, format := range audit.ExportFormats() {
				out.Reset()
				err := auditcmd.HistoryError(audit.Export(t.Context(), &out, db, audit.ExportOptions{Format: format, Payloads: true}))
				lines := strings.Count(out.String(), "\n")
				if format == "csv" {
					lines--
				}
				if cli.Code(err) != cli.ExitNo || !containsAll(err.Error(), faults) || lines != len(want) {
					t.Errorf("audit export, %s: %v\n%s", format, err, out.String())
				}
			}
			for _, chain := range []string{"req_A", "req_B", "req_C"} {
				hit := slices.ContainsFunc(damaged, func(name string) bool { return strings.HasPrefix(name, chain) })
				out.Reset()
				faults, err := audit.WriteEvidence(t.Context(), &out, db, "", audit.EvidenceOptions{Requests: []string{chain}})
				if code := cli.Code(auditcmd.HistoryError(err)); hit && faults == 0 && code != cli.ExitNo || !hit && (faults > 0 || err != nil) {
					t.Errorf("audit evidence %s: %v", chain, err)
				}
				if hit && !strings.Contains(out.String()+fmt.Sprint(err), "damaged") {
					t.Errorf("audit evidence %s does not say what is damaged: %v", chain, err)
				}
				out.Reset()
				if err := auditcmd.HistoryError(audit.List(t.Context(), &out, db, audit.ListOptions{Filter: audit.Filter{Chain: chain}})); hit != (cli.Code(err) == cli.ExitNo) || !hit && err != nil {
					t.Errorf("audit list --request %s: %v", chain, err)
				}
			}
		})
	}
}

// Verification compares the link of the record after a damaged record with the hash in the journal. Therefore
// verification finds a forged record in that position.
func TestFollowerOfADamagedRecord(t *testing.T) {
	path := threeChains(t)
	raw, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Update(func(tx *bbolt.Tx) error { // replaces the third record of the chain and its journal entry, with valid checksums
		third := approvers.AuditRecord{Chain: "req_B", Seq: 3, At: time.Unix(6, 0).UTC(), Kind: approvers.AuditDamaged, Prev: strings.Repeat("ab", 32)}
		sum := approvers.SumOf(third.Bytes())
		edit := map[string]func(tx *bbolt.Tx) error{}
		for _, name := range []string{"audit", "audit_journal"} {
			err := tx.Bucket([]byte(name)).ForEach(func(k, v []byte) error {
				v, err := bolt.Unpack(name, unsummed(v))
				switch {
				case name == "audit" && bytes.HasPrefix(k, []byte("req_B")) && k[len(k)-1] == 3:
					edit[name] = put(name, string(k), string(v[:8])+string(sum[:])+string(third.Bytes()))
				case name == "audit_journal" && bytes.HasPrefix(v, []byte("req_B")) && v[len(v)-len(sum)-1] == 3:
					edit[name] = put(name, string(k), string(v[:len(v)-len(sum)])+string(sum[:]))
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		if len(edit) != 2 {
			t.Fatalf("the record has %d rows", len(edit))
		}
		return all(edit["audit"], edit["audit_journal"])(tx)
	})
	if err := errors.Join(err, raw.Close()); err != nil {
		t.Fatal(err)
	}
	flip(t, path, "req_B/2")
	code, said, _ := toldOf(t, path)
	if want := "chain req_B: record 3 does not link to the hash that the journal has for record 2, which is damaged\n"; code != cli.ExitNo || !strings.Contains(said, want) {
		t.Errorf("code %d\n%s", code, said)
	}
}

func containsAll(text string, all []string) bool {
	return !slices.ContainsFunc(all, func(part string) bool { return !strings.Contains(text, part) })
}

// Reports on the history skip a damaged record, and list the skipped records at the end.
func TestReportsGoPastADamagedRecord(t *testing.T) {
	path := threeChains(t)
	flip(t, path, "req_B/2")
	db, err := openstore.File(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out, page bytes.Buffer
	noPolicy := task.Env{Store: db, Out: &page, Bare: func() (*workflow.Workflow, error) { return nil, errors.New("the policy is invalid") }}
	for name, err := range map[string]error{
		"audit pace":         runTask(t.Context(), "audit pace", task.Env{Store: db, Out: &out}, 0),
		"audit report":       runTask(t.Context(), "audit report", noPolicy, map[string]any{"Until": time.Now(), "Format": "html"}),
		"explain --observed": observedTask.Run(t.Context(), task.Env{Store: db, Out: &out}, 0),
	} {
		if cli.Code(err) != cli.ExitNo || !strings.Contains(err.Error(), "chain req_B: record 2 is damaged") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !strings.Contains(page.String(), "The history is damaged: 1 row can&#39;t be read") {
		t.Errorf("the report is %s", page.String())
	}
	if want := "Nobody has decided anything in this time.\n"; !strings.Contains(out.String(), want) {
		t.Errorf("it prints %q", out.String())
	}
}

// The last record of a request's chain is damaged. It may have ended the request, so the report does not count the
// request as waiting. A damaged record after the end of the period does not matter.
func TestReportWithoutLastRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	db, err := openstore.File(path)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(t.Context(), func(tx store.Tx) error {
		var prev approvers.AuditRecord
		for i, kind := range []approvers.AuditKind{approvers.AuditProposed, approvers.AuditReminded, approvers.AuditClosed} {
			prev = approvers.AuditRecord{
				Chain: "req_A", At: time.Unix(int64(100*i), 0).UTC(), Kind: kind,
				Facts: map[string]string{"tool": "pay", "verdict": "ask", "stages": "team", "state": "withdrawn"},
			}.Link(prev)
			if err := tx.AppendAudit(prev, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	flip(t, path, "req_A/3")
	if db, err = openstore.File(path); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for until, open := range map[int64]int{50: 1, 150: 0} {
		got, err := audit.ReadActivity(t.Context(), db, nil, audit.ActivityOptions{Until: time.Unix(until, 0)})
		if !errors.Is(err, store.ErrDamaged) || len(got.Tools) != 1 || got.Tools[0].Open != open {
			t.Errorf("until %d: %+v (%v); want %d open", until, got.Tools, err, open)
		}
	}
}
