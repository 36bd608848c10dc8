package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// sealedStore is a store that the test seals.
type sealedStore struct {
	*testing.T
	path     string
	db       *bolt.Store
	workflow *workflow.Workflow
	keys     []approvers.SealKey
	log      *slog.Logger
	logged   *bytes.Buffer
	n        int
}

func newSealedStore(t *testing.T) *sealedStore {
	t.Helper()
	logged := new(bytes.Buffer)
	s := &sealedStore{T: t, logged: logged, log: slog.New(slog.NewTextHandler(logged, nil))}
	s.open(filepath.Join(t.TempDir(), "store.db"))
	keys, err := OpenKeyFile(t.Context(), filepath.Join(t.TempDir(), "key"), s.db, s.log)
	if err != nil {
		t.Fatal(err)
	}
	s.keys = keys
	return s
}

func (s *sealedStore) open(path string) {
	s.Helper()
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { db.Close() })
	s.path, s.db = path, db
	s.workflow = workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return &approvers.Policy{} }, Log: s.log})
}

// head records an event and seals the history, n times.
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
		if sealed, err := s.workflow.History.Seal(s.Context(), s.keys...); err != nil || sealed != 1 {
			s.Fatalf("%d records were sealed: %v", sealed, err)
		}
	}
}

// headNumbers lists the numbers of the heads in a text.
func headNumbers(t *testing.T, text string) (numbers []uint64) {
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

// A new process adds the missing heads to the file. The file may be in any state in which a stopped process left it.
func TestHeadFile(t *testing.T) {
	s := newSealedStore(t)
	path := filepath.Join(t.TempDir(), "heads")
	s.head(3)
	whole := func() string { // the file as it would be if the process had never stopped
		path := filepath.Join(t.TempDir(), "whole")
		NewHeadShipper(HeadFile(path), s.db, s.log).Ship(t.Context())
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
		c := NewHeadShipper(HeadFile(path), s.db, s.log)
		c.Ship(t.Context())
		if err := c.Err(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		text := readText(t, path)
		numbers := headNumbers(t, text)
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
	// The shipper continues at the end of a large file. If somebody has moved the file away, the shipper writes a new
	// file.
	s.head(200)
	c := NewHeadShipper(HeadFile(path), s.db, s.log)
	c.Ship(t.Context())
	s.head(1)
	c = NewHeadShipper(HeadFile(path), s.db, s.log)
	c.Ship(t.Context())
	if n := headNumbers(t, readText(t, path)); n[len(n)-1] != uint64(s.n) || n[len(n)-2] != uint64(s.n-1) {
		t.Errorf("the file ends with the heads %v of %d", n[len(n)-3:], s.n)
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	s.head(2)
	c.Ship(t.Context())
	if n := headNumbers(t, readText(t, path)); len(n) != 2 || n[1] != uint64(s.n) {
		t.Errorf("the new file has the heads %v, want the last two of %d", n, s.n)
	}
}

// A head in the file that the store lacks is detected, even if a lower head or other text follows it in the file. The
// head is also detected if the file has only its beginning.
func TestHeadsThatTheStoreLacks(t *testing.T) {
	s := newSealedStore(t)
	path := filepath.Join(t.TempDir(), "heads")
	s.head(1)
	NewHeadShipper(HeadFile(path), s.db, s.log).Ship(t.Context())
	first := readText(t, path)
	old := filepath.Join(t.TempDir(), "old.db")
	raw, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	s.head(2)
	NewHeadShipper(HeadFile(path), s.db, s.log).Ship(t.Context())
	whole := readText(t, path)
	earlier := *s
	earlier.open(old)
	for _, c := range []struct {
		what, text string
		lacks      uint64 // the number of the newest head that the store lacks; 0: the store lacks no head
	}{
		{"what the old store has", first, 0},
		{"two more heads", whole, 3},
		{"a lower head behind them", whole + first, 3},
		{"words behind them", strings.TrimSuffix(whole, "\n") + "garbage\n", 3},
		{"words in a paragraph behind them", whole + "garbage\n\n", 4},
		{"a cut signature", whole[:len(whole)-20], 3},
		{"a cut text", whole[:strings.LastIndex(whole, "time ")], 3},
		{"words behind what the old store has", first + "garbage", 2},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := HeadFile(path).Last(t.Context(), earlier.db)
		var ahead *aheadError
		switch {
		case c.lacks == 0 && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.lacks > 0 && (!errors.As(err, &ahead) || ahead.number != c.lacks):
			t.Errorf("%s: %v, want that head %d is missing", c.what, err, c.lacks)
		}
		err = StillNewest(old, path, earlier.db)
		if (err != nil) != (c.lacks > 0) {
			t.Errorf("%s: whether the store may continue was judged wrongly: %v", c.what, err)
		}
	}
}

// If a file has newer heads than the store, the shipper reports an error and does not write to the file.
func TestHeadFileIsAheadOfTheStore(t *testing.T) {
	s := newSealedStore(t)
	path := filepath.Join(t.TempDir(), "heads")
	s.head(4)
	NewHeadShipper(HeadFile(path), s.db, s.log).Ship(t.Context())
	early := *s
	early.open(filepath.Join(t.TempDir(), "other.db")) // another store, without records
	s.head(2)
	NewHeadShipper(HeadFile(path), s.db, s.log).Ship(t.Context())
	before := readText(t, path)
	early.n = 100 // the other store has other records
	early.head(6)
	c := NewHeadShipper(HeadFile(path), early.db, s.log)
	c.Ship(t.Context())
	if err := c.Err(); !errors.Is(err, errAhead) {
		t.Errorf("another store: %v", err)
	}
	if !strings.Contains(s.logged.String(), "Nothing is added to the file") {
		t.Errorf("the log says\n%s", s.logged)
	}
	if readText(t, path) != before {
		t.Error("the file was written to")
	}
	if n, err := c.Waiting(t.Context()); err != nil || n != 6 {
		t.Errorf("%d heads wait (%v), want 6", n, err)
	}
	if err := os.Rename(path, path+".kept"); err != nil {
		t.Fatal(err)
	}
	c.Ship(t.Context())
	if err := c.Err(); err != nil {
		t.Errorf("after the file was moved away: %v", err)
	}
	if n := headNumbers(t, readText(t, path)); len(n) != 6 {
		t.Errorf("the new file has the heads %v, want 6", n)
	}
}

// flaky is a head target that can't always be reached.
type flaky struct {
	down    bool
	numbers []uint64
}

func (f *flaky) String() string { return "somewhere" }

func (f *flaky) Last(context.Context, store.Store) (uint64, error) { return 0, f.fault() }

func (f *flaky) fault() error {
	if f.down {
		return errors.New("unreachable")
	}
	return nil
}

func (f *flaky) Ship(_ context.Context, heads []store.Head) error {
	for _, h := range heads {
		if !f.down {
			f.numbers = append(f.numbers, h.Number)
		}
	}
	return f.fault()
}

// If a head target fails, the failure is reported once. The shipper tries the target once more, and the target then
// gets every head.
func TestHeadShipperTriesAgain(t *testing.T) {
	s := newSealedStore(t)
	to := &flaky{down: true}
	sealer := NewSealer(s.keys, []HeadTarget{to}, s.workflow.History, s.db, s.log)
	c := sealer.Shippers[0]
	for range 3 {
		s.head(1)
		c.durable(uint64(s.n))
		c.Ship(t.Context())
	}
	if err := sealer.HeadsShipped(t.Context()); err == nil || !strings.Contains(err.Error(), "somewhere: unreachable") {
		t.Errorf("the state is %v", err)
	}
	if n := strings.Count(s.logged.String(), "can't be shipped"); n != 1 {
		t.Errorf("the failure was logged %d times:\n%s", n, s.logged)
	}
	if n, err := c.Waiting(t.Context()); n != 3 || err != nil {
		t.Errorf("%d heads wait (%v), want 3", n, err)
	}
	to.down = false
	c.Ship(t.Context())
	s.head(1)
	c.durable(uint64(s.n))
	c.Ship(t.Context())
	if fmt.Sprint(to.numbers) != "[1 2 3 4]" || sealer.HeadsShipped(t.Context()) != nil {
		t.Errorf("the heads %v were shipped (%v)", to.numbers, sealer.HeadsShipped(t.Context()))
	}
}

// signer fails each seal with the next of its errors.
type signer chan error

func (s signer) Seal(ctx context.Context, _ ...approvers.SealKey) (int, error) {
	select {
	case err := <-s:
		return 0, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// A takeover of the sealing by another replica does not count as a failure. A failure before the takeover is forgotten.
func TestSealerTakenOver(t *testing.T) {
	s := newSealedStore(t)
	s.head(1)
	fenced := fmt.Errorf("seal: %w", store.ErrFenced)
	fails := make(signer, 1)
	sealer := NewSealer(s.keys, []HeadTarget{&flaky{down: true}}, fails, s.db, s.log)
	fails <- fenced
	if err := sealer.seal(t.Context()); !errors.Is(err, store.ErrFenced) || sealer.Ready(t.Context()) != nil {
		t.Errorf("seal returned %v, and Ready %v", err, sealer.Ready(t.Context()))
	}
	if strings.Contains(s.logged.String(), "can't be sealed") {
		t.Errorf("the takeover was logged as a failure:\n%s", s.logged)
	}

	fails <- errors.New("the disk is gone")
	if err := sealer.seal(t.Context()); err == nil || sealer.Ready(t.Context()) == nil {
		t.Errorf("seal returned %v, and Ready %v", err, sealer.Ready(t.Context()))
	}
	sealer.Shippers[0].Ship(t.Context())
	if sealer.HeadsShipped(t.Context()) == nil {
		t.Error("the target is down, but no failure is reported")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sealer.Run(ctx); err != nil {
		t.Error(err)
	}
	if err := errors.Join(sealer.Ready(t.Context()), sealer.HeadsShipped(t.Context())); err != nil {
		t.Errorf("the replica does not seal any more, and still reports %v", err)
	}
}

// early is a store whose commits are visible before they are durable. In bbolt, this is the case between the write and
// the sync.
type early struct {
	store.Store
	seen func() // called before Update returns
}

func (e *early) Update(ctx context.Context, fn func(store.Tx) error) error {
	err := e.Store.Update(ctx, fn)
	e.seen()
	return err
}

// A head is shipped when its commit is durable. A head is not shipped while its commit is only visible. If such a
// head were shipped, the store could lack the head after a power failure, and would look like an old copy.
func TestHeadsAreBroughtWhenTheyAreDurable(t *testing.T) {
	s := newSealedStore(t)
	to := &flaky{}
	db := &early{Store: s.db, seen: func() {}}
	s.workflow.Store = db
	sealer := NewSealer(s.keys, []HeadTarget{to}, s.workflow.History, db, s.log)
	for n := range 3 {
		err := s.db.Update(t.Context(), func(tx store.Tx) error {
			a := approvers.AuditRecord{Chain: fmt.Sprint("req_", n), At: time.Unix(1, 0), Kind: approvers.AuditProposed}
			return tx.AppendAudit(a.Link(approvers.AuditRecord{}), nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		db.seen = func() {
			db.seen = func() {}
			sealer.Shippers[0].Ship(t.Context())
			if len(to.numbers) > n {
				t.Errorf("head %d was shipped before its commit was durable", n+1)
			}
		}
		if err := sealer.seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		sealer.Shippers[0].Ship(t.Context())
		if len(to.numbers) != n+1 {
			t.Errorf("after head %d was sealed, the target has %v", n+1, to.numbers)
		}
	}
}

// racingStore is the store of a replica. While this replica reads the store, another replica makes the key file.
type racingStore struct {
	store.Store
	makeKey func()
}

func (s racingStore) View(ctx context.Context, read func(store.Reader) error) error {
	s.makeKey()
	return s.Store.View(ctx, read)
}

// A replica that finds an empty key file waits until the other replica has written the key.
func TestSealKeyFileThatIsBeingWritten(t *testing.T) {
	s := newSealedStore(t)
	made := filepath.Join(t.TempDir(), "made")
	want, err := OpenKeyFile(t.Context(), made, s.db, s.log)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error)
	time.AfterFunc(100*time.Millisecond, func() { wrote <- os.WriteFile(path, text, 0o600) })
	got, err := OpenKeyFile(t.Context(), path, s.db, s.log)
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if err != nil || len(got) != 1 || got[0].Public != want[0].Public {
		t.Errorf("the replica uses %v: %v", got, err)
	}
}

// Replicas that start at the same moment use the key of the replica that made the file.
func TestSealKeyFileOfTwoReplicas(t *testing.T) {
	s := newSealedStore(t)
	path := filepath.Join(t.TempDir(), "key")
	var first []approvers.SealKey
	second, err := OpenKeyFile(t.Context(), path, racingStore{s.db, func() {
		var err error
		if first, err = OpenKeyFile(t.Context(), path, s.db, s.log); err != nil {
			t.Fatal(err)
		}
	}}, s.log)
	if err != nil || len(first) != 1 || len(second) != 1 || first[0].Public != second[0].Public {
		t.Errorf("the replicas use %v and %v: %v", first, second, err)
	}
}

// A process does not continue the history without the key that signed the newest head. The error names the key. After
// audit key --new, the file has the earlier key, too.
func TestSealKeyOfAnotherReplica(t *testing.T) {
	s := newSealedStore(t)
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	open := func(path string) []approvers.SealKey {
		t.Helper()
		keys, err := OpenKeyFile(t.Context(), path, s.db, s.log)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	refused := func(path string) {
		t.Helper()
		_, err := OpenKeyFile(t.Context(), path, s.db, s.log)
		if !errors.Is(err, ErrKeyFile) || !strings.Contains(err.Error(), s.keys[0].Public) || CheckKeyFile(t.Context(), path, s.db) == nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	s.keys = open(first)
	other := open(second) // no head yet
	s.head(1)
	refused(second)
	refused(filepath.Join(dir, "missing"))
	if _, err := os.Stat(filepath.Join(dir, "missing")); err == nil {
		t.Error("a key was created")
	}
	sealer := NewSealer(other, nil, s.workflow.History, s.db, s.log)
	sealer.Trusted = []string{other[0].Public}
	if err := sealer.Run(t.Context()); !errors.Is(err, ErrOtherKey) || s.n != 1 {
		t.Errorf("the sealer with the other key: %v", err)
	}
	text, err := RenewedKeyFile(first)
	if err == nil {
		err = os.WriteFile(first, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	old := s.keys
	s.keys = open(first)
	s.head(1)
	if err := os.WriteFile(second, []byte(readText(t, first)[strings.Index(readText(t, first), "\n")+1:]), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(second) // the earlier key also signed the newest head, but the new key signs from now on
	s.head(1)
	refused(second)
	if open(first)[1].Public != old[0].Public {
		t.Error("the earlier key is lost")
	}
}

// audit key --new also makes the first key. A bot on a new store uses this key.
func TestFirstKeyFile(t *testing.T) {
	s := newSealedStore(t)
	path := filepath.Join(t.TempDir(), "key")
	text, err := RenewedKeyFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	keys, err := OpenKeyFile(t.Context(), path, s.db, s.log)
	if err != nil || len(keys) != 1 || readText(t, path) != text {
		t.Errorf("the bot has %d keys (%v), and the file\n%s", len(keys), err, readText(t, path))
	}
}

// The key is created once. Only the owner of the key file can read the file. The key names its installation.
func TestSealKeyFile(t *testing.T) {
	s := newSealedStore(t)
	s.head(1)
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	lost := s.keys[0].Public
	if err := os.WriteFile(path, []byte(lost+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := OpenKeyFile(t.Context(), path, s.db, s.log)
	if err != nil || len(keys) != 1 || !strings.Contains(readText(t, path), lost) {
		t.Fatal(keys, err, readText(t, path))
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
	again, err := OpenKeyFile(t.Context(), path, s.db, s.log)
	if err != nil || again[0].Public != keys[0].Public {
		t.Errorf("the second start has another key: %v", err)
	}
	text, err := RenewedKeyFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := ReadKeyFile(path)
	if err != nil || len(renewed.Private) != 2 || renewed.Public[1] != keys[0].Public || renewed.Public[2] != lost || renewed.Private[0].Origin() != keys[0].Origin() {
		t.Errorf("after a new key was made: %v, %v", renewed, err)
	}
	if err := os.WriteFile(path, []byte("# the one before was lost\n"+renewed.Public[1]+"\n"+strings.SplitN(readText(t, path), "\n", 2)[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	if lost, err := ReadKeyFile(path); err != nil || len(lost.Private) != 1 || lost.Private[0].Public != renewed.Public[0] || len(lost.Public) != 2 || lost.Public[0] != renewed.Public[0] {
		t.Errorf("with a key that was lost: %+v, %v", lost, err)
	}
	for what, text := range map[string]string{"nothing": "\n", "no key": "x\n", "a public key": keys[0].Public + "\n", "another's key": readText(t, path) + "\n" + otherKey(t)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenKeyFile(t.Context(), path, s.db, s.log); !errors.Is(err, ErrKeyFile) {
			t.Errorf("a file with %s: %v", what, err)
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeyFile(t.Context(), path, s.db, s.log); !errors.Is(err, ErrKeyFile) || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others can read: %v", err)
	}
	if _, err := OpenKeyFile(t.Context(), filepath.Join(dir, "none", "key"), newSealedStore(t).db, s.log); errors.Is(err, ErrKeyFile) || !strings.Contains(err.Error(), keyVariable) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func otherKey(t *testing.T) string {
	t.Helper()
	s := newSealedStore(t)
	path := filepath.Join(t.TempDir(), "key")
	if _, err := OpenKeyFile(t.Context(), path, s.db, s.log); err != nil {
		t.Fatal(err)
	}
	return readText(t, path)
}

// The page names the first head that covers a request's records, even if there are many heads.
func TestEvidenceFindsTheHead(t *testing.T) {
	testkit.SkipIfShort(t)
	s := newSealedStore(t)
	for range 300 { // every request has its own head
		s.head(1)
	}
	for _, n := range []int{1, 2, 137, 299, 300} {
		var b strings.Builder
		faults, err := WriteEvidence(t.Context(), &b, s.db, "", EvidenceOptions{Requests: []string{fmt.Sprintf("req_%06d", n)}, Keys: []string{s.keys[0].Public}, Own: true})
		if err != nil || faults > 0 {
			t.Errorf("request %d: %d faults (%v)", n, faults, err)
		}
		for _, want := range []string{fmt.Sprintf("Signed head %d of", n), "covers every record, 1 in all"} {
			if !strings.Contains(html.UnescapeString(b.String()), want) {
				t.Errorf("request %d: the page lacks %q", n, want)
			}
		}
	}
}
