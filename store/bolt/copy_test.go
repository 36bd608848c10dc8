package bolt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/store"
	"countersign/store/bolt"
)

// opened opens a store, and closes the store at the end of the test.
func opened(t *testing.T, path string) *bolt.Store {
	t.Helper()
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// put writes a setting whose value is a number.
func put(t *testing.T, s store.Store, key string, n int) {
	t.Helper()
	err := s.Update(context.Background(), func(tx store.Tx) error {
		old, err := tx.Setting(key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return tx.PutSetting(store.Setting{Key: key, Version: old.Version, Value: json.RawMessage(fmt.Sprint(n))})
	})
	if err != nil {
		t.Error(err)
	}
}

// number reads the number that put wrote. If put has not written the key, number returns "".
func number(t *testing.T, s store.Store, key string) (n string) {
	t.Helper()
	err := s.View(t.Context(), func(r store.Reader) error {
		got, err := r.Setting(key)
		n = string(got.Value)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// slowly is the writer that receives a copy. Before it receives a piece, slowly calls the function in its field, so
// that a test can write to the store during the copy.
type slowly struct {
	bytes.Buffer
	between func()
}

func (s *slowly) Write(p []byte) (int, error) {
	s.between()
	return s.Buffer.Write(p)
}

// A copy is a snapshot of the store, even if many rows are written during the copy. The copy passes the check.
func TestCopy(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, filepath.Join(dir, "store.db"))
	for i := range 300 { // some pages
		put(t, s, fmt.Sprint("before-", i), i)
	}
	n := 0
	out := &slowly{between: func() {
		n++
		put(t, s, "before-7", 1000+n)
		put(t, s, fmt.Sprint("during-", n), n)
	}}
	size, err := s.Copy(t.Context(), out)
	if err != nil || size != int64(out.Len()) || n < 3 {
		t.Fatalf("%d bytes of %d in %d pieces: %v", size, out.Len(), n, err)
	}
	path := filepath.Join(dir, "copy.db")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	c := opened(t, path)
	if err := c.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if got := number(t, c, "before-7") + number(t, c, "during-1"); got != "7" {
		t.Errorf("the copy has what was written later: %s", got)
	}
	if got := number(t, s, "before-7"); got != fmt.Sprint(1000+n) {
		t.Errorf("the store lost what was written meanwhile: %s", got)
	}
	put(t, c, "later", 1)
}

func TestCopyThatIsStopped(t *testing.T) {
	s := opened(t, filepath.Join(t.TempDir(), "store.db"))
	ctx, stop := context.WithCancel(t.Context())
	if _, err := s.Copy(ctx, &slowly{between: stop}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	full := errors.New("no space left")
	if _, err := s.Copy(t.Context(), failing{full}); !errors.Is(err, full) {
		t.Errorf("refused: %v", err)
	}
	put(t, s, "still", 1)
	s.Close()
	if _, err := s.Copy(t.Context(), &bytes.Buffer{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// backup returns the bytes of a store with one setting.
func backup(t *testing.T, n int) []byte {
	t.Helper()
	s := opened(t, filepath.Join(t.TempDir(), "store.db"))
	put(t, s, "which", n)
	var out bytes.Buffer
	if _, err := s.Copy(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := opened(t, path)
	put(t, s, "which", 1)
	now := backup(t, 2)
	prepared := func(s *bolt.Store) error { put(t, s, "prepared", 1); return nil }
	if _, err := bolt.Replace(path, bytes.NewReader(now), prepared); !errors.Is(err, store.ErrLocked) {
		t.Fatalf("a store that is held: %v", err)
	}
	s.Close()
	refused := errors.New("refused")
	if _, err := bolt.Replace(path, bytes.NewReader(now), func(*bolt.Store) error { return refused }); !errors.Is(err, refused) {
		t.Fatalf("a backup that is refused: %v", err)
	}
	for name, broken := range map[string][]byte{"cut off": now[:len(now)/2], "empty": nil, "foreign": bytes.Repeat([]byte("photo"), 10_000)} {
		if _, err := bolt.Replace(path, bytes.NewReader(broken), prepared); !errors.Is(err, store.ErrForeign) || !strings.Contains(err.Error(), "the backup can't be used") {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantFiles(t, path, "store.db")
	old, young := path+".restored-1", path+".restored-2" // files left by a killed process, or still being written
	for _, name := range []string{old, young} {
		if err := os.WriteFile(name, now, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := bolt.Replace(path, bytes.NewReader(nil), prepared); err == nil {
		t.Error("an empty backup was taken")
	}
	wantFiles(t, path, "store.db", "store.db.restored-2")
	if err := os.Remove(young); err != nil {
		t.Fatal(err)
	}
	s = opened(t, path)
	if number(t, s, "which") != "1" {
		t.Fatal("something was replaced although it failed")
	}
	s.Close()

	kept, err := bolt.Replace(path, bytes.NewReader(now), func(s *bolt.Store) error {
		if _, err := bolt.Open(path, bolt.Options{}); !errors.Is(err, store.ErrLocked) {
			t.Errorf("somebody else can open the store meanwhile: %v", err)
		}
		return prepared(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, path, "store.db", filepath.Base(kept))
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	s, before := opened(t, path), opened(t, kept)
	if number(t, s, "which")+number(t, s, "prepared") != "21" || number(t, before, "which")+number(t, before, "prepared") != "1" {
		t.Errorf("the restored store has %s, and the old one has %s", number(t, s, "which"), number(t, before, "which"))
	}
	s.Close()
	again, err := bolt.Replace(path, bytes.NewReader(backup(t, 3)), prepared)
	if err != nil || again == kept {
		t.Errorf("a second time: the old store was kept as %s (%v)", again, err)
	}
}

// A backup can replace a store that is damaged or missing.
func TestReplaceWhatCannotBeOpened(t *testing.T) {
	for name, content := range map[string][]byte{"damaged": bytes.Repeat([]byte{1}, 1<<16), "empty": {}, "gone": nil} {
		path := filepath.Join(t.TempDir(), "store.db")
		if content != nil {
			if err := os.WriteFile(path, content, 0o640); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := bolt.Replace(path, bytes.NewReader(backup(t, 5)), func(*bolt.Store) error { return nil })
		if err != nil || (kept != "") != (content != nil) {
			t.Fatalf("%s: beside %q, %v", name, kept, err)
		}
		if content != nil {
			if still, err := os.ReadFile(kept); err != nil || !bytes.Equal(still, content) {
				t.Errorf("%s: the earlier contents are lost: %v", name, err)
			}
		}
		if number(t, opened(t, path), "which") != "5" {
			t.Errorf("%s: the backup is not there", name)
		}
	}
	if _, err := bolt.Replace(t.TempDir(), bytes.NewReader(backup(t, 5)), nil); err == nil {
		t.Error("a directory was replaced")
	}
}

// While Replace runs, there is a file at the path at every moment.
func TestReplaceUnderEyes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	opened(t, path).Close()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("there is no store: %v", err)
				return
			}
		}
	})
	for i := range 30 {
		if _, err := bolt.Replace(path, bytes.NewReader(backup(t, i)), func(*bolt.Store) error { return nil }); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

// If another file replaces the store while Open opens it, Open fails instead of using the old file.
func TestOpenWhileReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	opened(t, path).Close()
	now := backup(t, 2)
	first := true
	_, err := bolt.Open(path, bolt.Options{OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, flag, mode)
		if first {
			first = false
			if _, err := bolt.Replace(path, bytes.NewReader(now), func(*bolt.Store) error { return nil }); err != nil {
				t.Error(err)
			}
		}
		return f, err
	}})
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "Try again") {
		t.Errorf("it opens: %v", err)
	}
	if number(t, opened(t, path), "which") != "2" {
		t.Error("the next Open does not find the new store")
	}
}

func wantFiles(t *testing.T, path string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the directory has %v; want %v", got, want)
	}
}
