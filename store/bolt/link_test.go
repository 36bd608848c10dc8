package bolt

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// linked makes a directory with a symbolic link to a file in another directory.
func linked(t *testing.T) (link, file string) {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "etc"), 0o700), os.Mkdir(filepath.Join(dir, "volume"), 0o700)); err != nil {
		t.Fatal(err)
	}
	link, file = filepath.Join(dir, "etc", "store.db"), filepath.Join(dir, "volume", "store.db")
	if err := os.Symlink("../volume/store.db", link); err != nil {
		t.Fatal(err)
	}
	return link, file
}

// wantLink requires that the link is still a link, alone in its directory. The directory of the file must have the
// file, with the given mode, and one file with the prefix.
func wantLink(t *testing.T, link, file string, mode fs.FileMode, kept string) {
	t.Helper()
	if to, err := os.Readlink(link); err != nil || to != "../volume/store.db" {
		t.Errorf("the link leads to %q (%v)", to, err)
	}
	if beside, err := os.ReadDir(filepath.Dir(link)); err != nil || len(beside) != 1 {
		t.Errorf("beside the link: %v (%v)", beside, err)
	}
	if info, err := os.Lstat(file); err != nil || info.Mode() != mode {
		t.Errorf("the file has the mode %v (%v)", info.Mode(), err)
	}
	all, err := os.ReadDir(filepath.Dir(file))
	if err != nil || !slices.ContainsFunc(all, func(f fs.DirEntry) bool { return strings.HasPrefix(f.Name(), kept) }) {
		t.Errorf("no file %s… beside the file: %v (%v)", kept, all, err)
	}
}

// If the store's path is a symbolic link, the repair of the store and Replace replace the file, and not the link. The
// new file has the mode of the old file.
func TestReplaceLinkedFile(t *testing.T) {
	link, file := linked(t)
	whole := wreckable(t)
	damaged := bytes.ReplaceAll(whole, []byte(`"key":"id1"`), []byte(`"kEy":"id1"`))
	if err := errors.Join(os.WriteFile(file, damaged, 0o600), os.Chmod(file, 0o640)); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, link)
	if len(s.Damage()) == 0 {
		t.Error("nothing was damaged")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantLink(t, link, file, 0o640, "store.db.damaged-")
	if _, err := Replace(link, bytes.NewReader(whole), func(*Store) error { return nil }); err != nil {
		t.Fatal(err)
	}
	wantLink(t, link, file, 0o640, "store.db.replaced-")
}

// If another file is at the store's path, an inspection still reads the file that the store has open.
func TestInspectMovedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, wreckable(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path)
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := s.Inspect(t.Context()); err != nil {
		t.Errorf("without a file at the path: %v", err)
	}
	if err := mustOpen(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Inspect(t.Context()); err != nil || len(s.Damage()) > 0 {
		t.Errorf("with another file at the path: %v, damage %v", err, s.Damage())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
