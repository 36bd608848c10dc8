package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/config"
	"countersign/store"
	"countersign/store/bolt"
)

// sealed is a store that is sealed by hand.
type sealedStore struct {
	*testing.T
	db     *bolt.Store
	desk   *desk.Desk
	keys   []approvers.SealKey
	log    *slog.Logger
	logged *bytes.Buffer
	n      int
}

func newSealedStore(t *testing.T) *sealedStore {
	t.Helper()
	logged := new(bytes.Buffer)
	s := &sealedStore{T: t, logged: logged, log: slog.New(slog.NewTextHandler(logged, nil))}
	s.open(filepath.Join(t.TempDir(), "store.db"))
	keys, err := openSealKeys(t.Context(), filepath.Join(t.TempDir(), "key"), s.db, s.log)
	if err != nil {
		t.Fatal(err)
	}
	s.keys = keys
	return s
}

func (s *sealedStore) open(path string) {
	s.Helper()
	db, err := openStore(path)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { db.Close() })
	s.db = db
	s.desk = desk.New(desk.Config{Store: db, Policy: func() *approvers.Policy { return &approvers.Policy{} }, Log: s.log})
}

// head records something and seals it, n times.
func (s *sealedStore) head(n int) {
	s.Helper()
	for range n {
		s.n++
		err := s.db.Update(s.Context(), func(tx store.Tx) error {
			a := approvers.AuditRecord{Chain: fmt.Sprintf("req_%06d", s.n), At: time.Unix(int64(s.n), 0), Kind: approvers.AuditProposed}
			return tx.AppendAudit(a.Link(approvers.AuditRecord{}), nil)
		})
		if err != nil {
			s.Fatal(err)
		}
		if sealed, err := s.desk.Seal(s.Context(), s.keys...); err != nil || sealed != 1 {
			s.Fatalf("%d records were sealed: %v", sealed, err)
		}
	}
}

// kept are the numbers of the heads that a text holds.
func kept(t *testing.T, text string) (numbers []uint64) {
	t.Helper()
	heads, faults := approvers.KeptHeads(text)
	if len(faults) > 0 {
		t.Errorf("%v in\n%s", faults, text)
	}
	for _, h := range heads {
		head, err := approvers.ReadHead(h.Note)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, head.Number)
	}
	return numbers
}

func readText(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Whatever the file was left with, the next process adds what is missing.
func TestHeadFile(t *testing.T) {
	s := newSealedStore(t)
	path := filepath.Join(t.TempDir(), "heads")
	s.head(3)
	whole := func() string { // the file as it would be if nobody had ever stopped
		path := filepath.Join(t.TempDir(), "whole")
		newCourier(headFile(path), s.db, s.log).bring(t.Context())
		return readText(t, path)
	}
	for _, left := range []struct {
		what string
		cut  func(whole string) string
	}{
		{"whole", func(w string) string { return w }},
		{"no end", func(w string) string { return strings.TrimSuffix(w, "\n") }},
		{"a cut line", func(w string) string { return w[:len(w)-2] }},
		{"a cut signature", func(w string) string { return w[:len(w)-20] }},
		{"no signature", func(w string) string { return w[:strings.LastIndex(w, "— ")] }},
		{"a cut text", func(w string) string { return w[:strings.LastIndex(w, "time ")+9] }},
		{"a cut first", func(w string) string { return w[:40] }},
		{"one byte", func(w string) string { return w[:1] }},
		{"a cut first, signed", func(w string) string { return w[:strings.Index(w, "— ")+30] }},
		{"an empty file", func(w string) string { return "" }},
	} {
		what := left.what
		if err := os.WriteFile(path, []byte(left.cut(whole())), 0o600); err != nil {
			t.Fatal(err)
		}
		s.head(2)
		c := newCourier(headFile(path), s.db, s.log)
		c.bring(t.Context())
		if err := c.state(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		text := readText(t, path)
		numbers := kept(t, text)
		seen := map[uint64]bool{}
		for _, n := range numbers {
			seen[n] = true
		}
		if len(seen) != s.n || numbers[len(numbers)-1] != uint64(s.n) {
			t.Errorf("%s: the file has the heads %v of %d:\n%s", what, numbers, s.n, text)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	// It goes on at the end of a large file, and where somebody has moved the file away.
	s.head(200)
	c := newCourier(headFile(path), s.db, s.log)
	c.bring(t.Context())
	s.head(1)
	c = newCourier(headFile(path), s.db, s.log)
	c.bring(t.Context())
	if n := kept(t, readText(t, path)); n[len(n)-1] != uint64(s.n) || n[len(n)-2] != uint64(s.n-1) {
		t.Errorf("the file ends with the heads %v of %d", n[len(n)-3:], s.n)
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	s.head(2)
	c.bring(t.Context())
	if n := kept(t, readText(t, path)); len(n) != 2 || n[1] != uint64(s.n) {
		t.Errorf("the new file has the heads %v, want the last two of %d", n, s.n)
	}
}

// A file that knows more than the store says so, and is not written to.
func TestHeadFileIsAheadOfTheStore(t *testing.T) {
	s := newSealedStore(t)
	path := filepath.Join(t.TempDir(), "heads")
	s.head(4)
	newCourier(headFile(path), s.db, s.log).bring(t.Context())
	early := *s
	early.open(filepath.Join(t.TempDir(), "other.db")) // a store that begins anew
	s.head(2)
	newCourier(headFile(path), s.db, s.log).bring(t.Context())
	before := readText(t, path)
	early.n = 100 // with other records
	early.head(6)
	c := newCourier(headFile(path), early.db, s.log)
	c.bring(t.Context())
	if err := c.state(); !errors.Is(err, errAhead) {
		t.Errorf("another store: %v", err)
	}
	if !strings.Contains(s.logged.String(), "move the file away and keep it") {
		t.Errorf("the log says\n%s", s.logged)
	}
	if readText(t, path) != before {
		t.Error("the file was written to")
	}
	if n, err := c.waiting(t.Context()); err != nil || n != 6 {
		t.Errorf("%d heads wait (%v), want 6", n, err)
	}
	if err := os.Rename(path, path+".kept"); err != nil {
		t.Fatal(err)
	}
	c.bring(t.Context())
	if err := c.state(); err != nil {
		t.Errorf("after the file was moved away: %v", err)
	}
	if n := kept(t, readText(t, path)); len(n) != 6 {
		t.Errorf("the new file has the heads %v, want 6", n)
	}
}

// flaky is a place that can't always be reached.
type flaky struct {
	down    bool
	numbers []uint64
}

func (f *flaky) String() string { return "somewhere" }

func (f *flaky) last(context.Context, store.Store) (uint64, error) { return 0, f.fault() }

func (f *flaky) fault() error {
	if f.down {
		return errors.New("unreachable")
	}
	return nil
}

func (f *flaky) bring(_ context.Context, heads []store.Head) error {
	for _, h := range heads {
		if !f.down {
			f.numbers = append(f.numbers, h.Number)
		}
	}
	return f.fault()
}

// A place that fails is tried again, is said to fail once, and misses no head.
func TestCourierTriesAgain(t *testing.T) {
	s := newSealedStore(t)
	to := &flaky{down: true}
	sealer := newSealer(sealing{keys: s.keys, places: []place{to}}, s.desk, s.db, s.log)
	c := sealer.couriers[0]
	for range 3 {
		s.head(1)
		c.bring(t.Context())
	}
	if err := sealer.brought(t.Context()); err == nil || !strings.Contains(err.Error(), "somewhere: unreachable") {
		t.Errorf("the state is %v", err)
	}
	if n := strings.Count(s.logged.String(), "can't be brought"); n != 1 {
		t.Errorf("it was said %d times:\n%s", n, s.logged)
	}
	page := httptest.NewRecorder()
	admin(sealer.probes(), newMetrics(s.db, nil).handler()).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if page.Code != 200 || !strings.Contains(page.Body.String(), "heads: somewhere: unreachable") || !strings.Contains(page.Body.String(), "seal: ok") {
		t.Errorf("/readyz says %d\n%s", page.Code, page.Body)
	}
	m := newMetrics(s.db, nil)
	m.watchSeal(s.db, sealer)
	text := httptest.NewRecorder()
	m.handler().ServeHTTP(text, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{"countersign_audit_unsealed 0", `countersign_audit_heads_waiting{to="somewhere"} 3`} {
		if !strings.Contains(text.Body.String(), want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	to.down = false
	c.bring(t.Context())
	s.head(1)
	c.bring(t.Context())
	if fmt.Sprint(to.numbers) != "[1 2 3 4]" || sealer.brought(t.Context()) != nil {
		t.Errorf("it was brought %v (%v)", to.numbers, sealer.brought(t.Context()))
	}
}

// The key is made once, is nobody else's to read, and says which installation it belongs to.
func TestSealKeyFile(t *testing.T) {
	s := newSealedStore(t)
	s.head(1)
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	keys, err := openSealKeys(t.Context(), path, s.db, s.log)
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v (%v)", info.Mode(), err)
	}
	if keys[0].Origin() != s.keys[0].Origin() {
		t.Errorf("a new key for the same store is that of %s, want %s", keys[0].Origin(), s.keys[0].Origin())
	}
	if !strings.Contains(s.logged.String(), keys[0].Public) || strings.Contains(s.logged.String(), "PRIVATE") {
		t.Errorf("the log says\n%s", s.logged)
	}
	again, err := openSealKeys(t.Context(), path, s.db, s.log)
	if err != nil || again[0].Public != keys[0].Public {
		t.Errorf("the second start has another key: %v", err)
	}
	if err := renewSealKey(path); err != nil {
		t.Fatal(err)
	}
	renewed, err := readSealKeys(path)
	if err != nil || len(renewed.private) != 2 || renewed.public[1] != keys[0].Public || renewed.private[0].Origin() != keys[0].Origin() {
		t.Errorf("after a new key was made: %v, %v", renewed, err)
	}
	if err := os.WriteFile(path, []byte("# the one before was lost\n"+renewed.public[1]+"\n"+strings.SplitN(readText(t, path), "\n", 2)[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	if lost, err := readSealKeys(path); err != nil || len(lost.private) != 1 || lost.private[0].Public != renewed.public[0] || len(lost.public) != 2 {
		t.Errorf("with a key that was lost: %+v, %v", lost, err)
	}
	for what, text := range map[string]string{"nothing": "\n", "no key": "x\n", "a public key": keys[0].Public + "\n", "another's key": readText(t, path) + "\n" + otherKey(t)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openSealKeys(t.Context(), path, s.db, s.log); exitCode(err) != exitUsage {
			t.Errorf("a file with %s: %v", what, err)
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := openSealKeys(t.Context(), path, s.db, s.log); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others can read: %v", err)
	}
	if _, err := openSealKeys(t.Context(), filepath.Join(dir, "none", "key"), s.db, s.log); exitCode(err) != exitFailed || !strings.Contains(err.Error(), keyVariable) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func otherKey(t *testing.T) string {
	t.Helper()
	s := newSealedStore(t)
	path := filepath.Join(t.TempDir(), "key")
	if _, err := openSealKeys(t.Context(), path, s.db, s.log); err != nil {
		t.Fatal(err)
	}
	return readText(t, path)
}

// Everything that the bot recorded is sealed when it has stopped, and the heads are in the file beside the store.
func TestBotSeals(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", data: dir, play: builtIn, noBrowser: true}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	beside := config.AuditBeside(filepath.Join(dir, "countersign.db"))
	db, err := openStore(filepath.Join(dir, "countersign.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(t.Context(), func(r store.Reader) error {
		last, err := r.LastHead()
		if err != nil {
			return err
		}
		left, err := r.Journal(last.Size, 10)
		if last.Size == 0 || len(left) > 0 {
			t.Errorf("head %d covers %d records, and %d are not sealed", last.Number, last.Size, len(left))
		}
		if n := kept(t, readText(t, beside.Heads)); uint64(len(n)) != last.Number {
			t.Errorf("the file has %d heads of %d", len(n), last.Number)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	out.Reset()
	if err := printSealKeys(&out, beside.Key); err != nil || !strings.HasPrefix(out.String(), "countersign-") {
		t.Errorf("%v: %s", err, out.String())
	}
}
