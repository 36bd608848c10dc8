package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
)

// spoilt returns a copy of a file with one destroyed page. way selects how the page is destroyed.
func spoilt(whole []byte, random *rand.Rand, page, way int) (broken []byte, what string) {
	broken = bytes.Clone(whole)
	p := broken[page*4096 : (page+1)*4096]
	switch way {
	case 0:
		clear(p)
		what = "zero"
	case 1:
		for i := range p {
			p[i] = byte(random.Uint32())
		}
		what = "random"
	case 2:
		clear(p[2048:])
		what = "torn"
	case 3:
		copy(p, whole[random.IntN(len(whole)/4096)*4096:][:4096])
		what = "another page"
	case 4:
		broken, what = broken[:page*4096+100], "cut off"
	}
	return broken, fmt.Sprintf("page %d: %s", page, what)
}

// rebuilt reports whether all rows of a bucket can be rebuilt from other buckets.
func rebuilt(in bucket) bool {
	return isIndex[in] || in == timers || in == timerRef || in == counterTime || in == setAside
}

// pagesOf returns the pages of each row of an undamaged file.
func pagesOf(t *testing.T, path string) map[string][]int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := metas(f, 4096)
	if err != nil {
		t.Fatal(err)
	}
	x := &examination{ctx: t.Context(), file: f, size: 4096, meta: m}
	if err := x.all(); err != nil || len(x.faults) > 0 {
		t.Fatal(err, x.faults)
	}
	on := map[string][]int{}
	for id, use := range x.use {
		head, err := x.read(uint64(id), 1, &x.leaf)
		if use != pageReached || err != nil || binary.LittleEndian.Uint64(head) != uint64(id) || binary.LittleEndian.Uint16(head[8:]) != pageLeaf {
			continue
		}
		var pages []int
		for i := range binary.LittleEndian.Uint32(head[12:]) + 1 {
			pages = append(pages, id+int(i))
		}
		page, err := x.read(uint64(id), uint64(len(pages)), &x.leaf)
		if err != nil {
			t.Fatal(err)
		}
		of := tree{x: &examination{ctx: t.Context(), size: 4096}}
		of.element = func(k, v []byte, flags uint32) error {
			if flags == leafBucket && len(v) > 2*pageHeader { // a small bucket
				small := tree{x: of.x, element: of.element}
				return small.elements("a small page", v[pageHeader:], uint64(len(v)-pageHeader), nil, nil, 1)
			}
			for b := range allBuckets {
				if stateOf(b, k, v) == rowSound {
					on[b.String()+" "+string(k)] = pages
				}
			}
			return nil
		}
		if err := of.elements("a page", bytes.Clone(page), 0, nil, nil, 1); err != nil {
			t.Fatal(err)
		}
	}
	return on
}

// The test destroys pages of a file in different ways. Every row on an intact page must be in the salvaged store. Every
// missing row must be in the list that Salvage returns. Salvage must not change the damaged file. COUNTERSIGN_DAMAGE="1
// 1" makes the test destroy every page in every way.
func TestSalvagedFile(t *testing.T) {
	testkit.SkipIfShort(t)
	whole := wreckable(t)
	pages := len(whole) / 4096
	dir := t.TempDir()
	path := filepath.Join(dir, "whole.db")
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path)
	want := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	on := pagesOf(t, path)
	step := 4
	if os.Getenv(testkit.DamageVariable) != "" {
		step = 1
	}
	random := rand.New(rand.NewPCG(3, 9))
	destroyed, refused, missing, listed := 0, 0, 0, 0
	for n := 0; n < pages*5; n += step {
		page, way := n/5, n%5
		broken, what := spoilt(whole, random, page, way)
		gone := map[int]bool{page: true}
		for p := page; way == 4 && p < pages; p++ {
			gone[p] = true
		}
		second := way != 4 && n%11 == 0
		if other := (page + pages/2) % pages; second {
			clear(broken[other*4096 : (other+1)*4096])
			gone[other] = true
			what += fmt.Sprintf(" and page %d: zero", other)
		}
		destroyed++
		path, to := filepath.Join(dir, "broken.db"), filepath.Join(dir, "salvaged.db")
		if err := os.WriteFile(path, broken, 0o400); err != nil {
			t.Fatal(err)
		}
		lost, err := Salvage(t.Context(), path, to, nil)
		if now, _ := os.ReadFile(path); !bytes.Equal(now, broken) {
			t.Errorf("%s: the damaged file was changed", what)
		}
		if err != nil {
			if refused++; page > 12 || way != 4 {
				t.Errorf("%s: %v", what, err)
			}
			if err := errors.Join(os.Remove(path)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		s, err := Open(to, Options{AsIs: true})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got := dump(t, s)
		for k, v := range want {
			name, key, _ := strings.Cut(k, " ")
			in := slices.IndexFunc(bucketNames[:], func(n string) bool { return n == name })
			if rebuilt(bucket(in)) || got[k] == v && has(got, k) {
				continue
			}
			missing++
			told := slices.ContainsFunc(lost, func(d store.Damage) bool {
				return d.Bucket == name && (d.Key == "" || d.Key == shownKey([]byte(key)) || d.ID != "" && strings.Contains(key, d.ID)) || d.Bucket == "file" && d.Key == ""
			})
			if told {
				listed++
			} else {
				t.Errorf("%s: the row %q is missing, and the list says %.300v", what, k, lost)
			}
			pages := on[k]
			follows := in == int(files) || in == int(fileData) || in == int(auditHeads) || (second || way == 4) && (in == int(auditJournal) || in == int(audit))
			// If the list of buckets and the list of free pages are both lost, Salvage can find only an earlier commit.
			// The list that Salvage returns then says that the newest changes may be missing.
			before := slices.ContainsFunc(lost, func(d store.Damage) bool { return strings.Contains(d.Why, "the newest changes may be missing") })
			if !follows && !before && !slices.ContainsFunc(pages, func(p int) bool { return gone[p] }) {
				t.Errorf("%s: the row %q is missing, and its pages %v were not destroyed; the list says %.300v", what, k, pages, lost)
			}
		}
		if err := errors.Join(s.Close(), os.Remove(to), os.Remove(path)); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("of %d pages, %d destroyed: %d rows missing, %d listed, %d files refused", pages, destroyed, missing, listed, refused)
}

// The test destroys all pages that name the records of a chain: the pages with the audit records, their payloads and
// their journal entries. The second case also destroys the pages of the chain's request and execution. The third case
// also destroys the pages of the indexes that name the request and the execution, so that only the call is left.
// Salvage must list the chain's first record as lost, because every call has this record.
func TestSalvagedChain(t *testing.T) {
	testkit.SkipIfShort(t)
	const chain, leaf = "id5", 5 * 3 // each chain of the store has three records
	records, both := []string{"requests " + chain, "executions " + chain}, string(text(text(nil, chain), chain))
	indexes := []string{
		"request_conversation " + both, "execution_conversation " + both, "request_open " + string(openKey(benchTime, chain)),
		"request_person " + string(personKey("T/"+chain, benchTime, chain)),
	}
	for _, also := range [][]string{nil, records, slices.Concat(records, indexes)} {
		rows := slices.Clone(also)
		for n := range uint64(3) {
			record := string(number(text(nil, chain), n+1))
			rows = append(rows, "audit "+record, "audit_payloads "+record, "audit_journal "+string(number(nil, leaf+n)))
		}
		whole, dir := wreckable(t), t.TempDir()
		path, to := filepath.Join(dir, "broken.db"), filepath.Join(dir, "salvaged.db")
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		on := pagesOf(t, path)
		for _, row := range rows {
			if on[row] == nil {
				t.Fatalf("there is no row %q", row)
			}
			for _, page := range on[row] {
				clear(whole[page*4096 : (page+1)*4096])
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		lost, err := Salvage(t.Context(), path, to, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(lost, func(d store.Damage) bool { return d.Bucket == "audit" && d.ID == chain && d.Seq == 1 }) {
			t.Errorf("with %q: the lost chain is not listed: %v", also, lost)
		}
	}
}

// If the timer of an unfinished run is lost, Salvage sets a timer of the right kind. A caller's run gets TimerOutcome
// instead of TimerRun, because Countersign must not execute a caller's run.
func TestSalvagedTimers(t *testing.T) {
	testkit.SkipIfShort(t)
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	s := mustOpen(t, from)
	err := s.Update(t.Context(), func(tx store.Tx) error {
		var errs []error
		for id, caller := range map[string]string{"own": "", "callers": "ci"} {
			for _, state := range []approvers.ExecutionState{approvers.ExecutionNone, approvers.ExecutionExecuting, approvers.ExecutionSucceeded} {
				id := id + "-" + string(state)
				errs = append(errs,
					tx.PutCall(store.Call{ID: id, Turn: id, Execution: id}),
					tx.PutExecution(approvers.Execution{ID: id, Conversation: id, Call: id, State: state, Caller: caller}),
				)
			}
		}
		return errors.Join(errs...)
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Salvage(t.Context(), from, to, nil); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(to, Options{AsIs: true}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for kind, want := range map[store.TimerKind]string{store.TimerRun: "own-executing own-none", store.TimerOutcome: "callers-executing callers-none"} {
		var got []string
		err := s.View(t.Context(), func(r store.Reader) error {
			timers, err := r.Timers(kind, 10)
			for _, timer := range timers {
				got = append(got, timer.Ref)
			}
			return err
		})
		if slices.Sort(got); err != nil || strings.Join(got, " ") != want {
			t.Errorf("the timers %s are for %v (%v), want %s", kind, got, err, want)
		}
	}
}

// TestTimerOf checks that Salvage finds the record of each timer. Timers about a channel or the whole installation have
// no record.
func TestTimerOf(t *testing.T) {
	without := []store.TimerKind{store.TimerPause, store.TimerChannel, store.TimerHomes, store.TimerCatchUp}
	for _, kind := range store.TimerKinds {
		if _, has := timerOf[kind]; has == slices.Contains(without, kind) {
			t.Errorf("timers of kind %q: Salvage has a bucket for them: %t", kind, has)
		}
	}
}
