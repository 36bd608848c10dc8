//go:build linux

package bolt_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/store"
	"countersign/store/bolt"
)

// openIn opens a store in a new directory, and writes one turn to the store.
func openIn(t *testing.T) (s *bolt.Store, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data", "store.db")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Update(t.Context(), putTurn("before")); err != nil {
		t.Fatal(err)
	}
	return s, path
}

// move renames a file.
func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// copyOver writes one file's bytes into another, as cp does.
func copyOver(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A store can be opened by a relative path. If the process's working directory is renamed later, the store notices that
// its file is not at its path.
func TestMovedFromARelativePath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	s, err := bolt.Open("store.db", bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	move(t, dir, dir+".aside")
	if err := s.Update(t.Context(), putTurn("away")); !errors.Is(err, store.ErrMoved) {
		t.Errorf("the directory was renamed: %v", err)
	}
	move(t, dir+".aside", dir)
	if err := s.Update(t.Context(), putTurn("back")); err != nil {
		t.Error(err)
	}
}

// If the file was moved away and is back, the store refuses writes until the function given to OnReturn returns nil.
func TestMovedAndNotLetBack(t *testing.T) {
	s, path := openIn(t)
	refused := errors.New("somebody else has continued")
	asked := 0
	s.OnReturn(func() error {
		if asked++; asked < 3 {
			return refused
		}
		return nil
	})
	if err := s.Update(t.Context(), putTurn("in its place")); err != nil || asked > 0 {
		t.Fatalf("%v, asked %d times", err, asked)
	}
	move(t, path, path+".aside")
	if err := s.InPlace(); !errors.Is(err, store.ErrMoved) || asked > 0 {
		t.Fatalf("away: %v, asked %d times", err, asked)
	}
	move(t, path+".aside", path)
	if err := s.Update(t.Context(), putTurn("refused")); !errors.Is(err, store.ErrMoved) || !errors.Is(err, refused) {
		t.Errorf("refused: %v", err)
	}
	if err := s.InPlace(); !errors.Is(err, refused) {
		t.Errorf("refused: %v", err)
	}
	if err := s.Update(t.Context(), putTurn("let back")); err != nil {
		t.Errorf("let back: %v", err)
	}
	if err := s.Update(t.Context(), putTurn("as ever")); err != nil || asked != 3 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}

// While the file is not at its path, the store writes nothing, but all rows can be read and copied. When the file is
// back at its path, writes succeed.
func TestMoved(t *testing.T) {
	for name, c := range map[string]struct {
		away, back func(t *testing.T, path string)
	}{
		"renamed": {
			func(t *testing.T, path string) { move(t, path, path+".aside") },
			func(t *testing.T, path string) { move(t, path+".aside", path) },
		},
		"the directory renamed": {
			func(t *testing.T, path string) { move(t, filepath.Dir(path), filepath.Dir(path)+".aside") },
			func(t *testing.T, path string) { move(t, filepath.Dir(path)+".aside", filepath.Dir(path)) },
		},
		"replaced by a copy": {
			func(t *testing.T, path string) {
				move(t, path, path+".aside")
				copyOver(t, path+".aside", path)
			},
			func(t *testing.T, path string) { move(t, path+".aside", path) },
		},
		"replaced by another store": {
			func(t *testing.T, path string) {
				move(t, path, path+".aside")
				other, err := bolt.Open(path, bolt.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(other.Update(t.Context(), putTurn("of another")), other.Close()); err != nil {
					t.Fatal(err)
				}
			},
			func(t *testing.T, path string) { move(t, path+".aside", path) },
		},
		"unlinked": {
			func(t *testing.T, path string) {
				if err := errors.Join(os.Link(path, path+".aside"), os.Remove(path)); err != nil {
					t.Fatal(err)
				}
			},
			func(t *testing.T, path string) { move(t, path+".aside", path) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, path := openIn(t)
			if err := s.InPlace(); err != nil {
				t.Fatal(err)
			}
			c.away(t, path)
			for range 3 {
				err := s.Update(t.Context(), putTurn("meanwhile"))
				if !errors.Is(err, store.ErrMoved) || errors.Is(err, store.ErrCommitUnknown) || !store.Refused(err) || !strings.Contains(err.Error(), path) {
					t.Fatalf("a write gives %v", err)
				}
			}
			if err := s.InPlace(); !errors.Is(err, store.ErrMoved) {
				t.Errorf("where the file is: %v", err)
			}
			if !has(t, s, "before") || has(t, s, "meanwhile") || has(t, s, "of another") {
				t.Error("a view does not see the file that is open")
			}
			if err := s.Check(t.Context()); err != nil {
				t.Error(err)
			}
			rescued := filepath.Join(t.TempDir(), "rescued.db")
			var b bytes.Buffer
			if _, err := s.Copy(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(rescued, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			saved, err := bolt.Open(rescued, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !has(t, saved, "before") || has(t, saved, "of another") {
				t.Error("the copy is not of the file that is open")
			}
			if err := saved.Close(); err != nil {
				t.Error(err)
			}
			c.back(t, path)
			if err := errors.Join(s.Update(t.Context(), putTurn("after")), s.InPlace(), s.Check(t.Context())); err != nil {
				t.Error(err)
			}
			if !has(t, s, "after") || has(t, s, "meanwhile") {
				t.Error("writing does not continue")
			}
		})
	}
}

// If another program writes into the store's file, the store stops at the next commit or check, and writes nothing
// more.
func TestOverwritten(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path, old string){
		"an old copy over it": func(t *testing.T, path, old string) { copyOver(t, old, path) },
		"cut off":             func(t *testing.T, path, _ string) { truncate(t, path, 0) },
		"cut off a little":    func(t *testing.T, path, _ string) { truncate(t, path, 16<<10) },
		"zeros": func(t *testing.T, path, _ string) {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(make([]byte, 1<<14)); err != nil {
				t.Fatal(err)
			}
			f.Close()
		},
		"another process's commit": func(t *testing.T, path, old string) {
			other, err := bolt.Open(old, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"1", "2", "3", "4", "5"} {
				if err := other.Update(t.Context(), putTurn(id)); err != nil {
					t.Fatal(err)
				}
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			copyOver(t, old, path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, looks := range []bool{true, false} {
				s, path := openIn(t)
				old := filepath.Join(t.TempDir(), "old.db")
				copyOver(t, path, old)
				if err := s.Update(t.Context(), putTurn("since")); err != nil {
					t.Fatal(err)
				}
				spoil(t, path, old)
				spoilt, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if looks {
					if err := s.InPlace(); !errors.Is(err, store.ErrDamaged) {
						t.Fatalf("a look gives %v", err)
					}
				}
				for range 2 {
					err := s.Update(t.Context(), putTurn("meanwhile"))
					if !errors.Is(err, store.ErrDamaged) || !errors.Is(err, store.ErrCommitUnknown) {
						t.Fatalf("a write gives %v", err)
					}
				}
				if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, spoilt) {
					t.Errorf("it was written to (%v)", err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkInPlace measures the check before a commit. The two syncs of a commit take about a hundred times longer.
func BenchmarkInPlace(b *testing.B) {
	s, err := bolt.Open(filepath.Join(b.TempDir(), "store.db"), bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if err := s.InPlace(); err != nil {
			b.Fatal(err)
		}
	}
}
