//go:build unix

package bolt_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"countersign/store"
	"countersign/store/bolt"
)

// If root restores a store, the store belongs to the owner of the replaced file. If there is no such file, it belongs to
// the owner of the directory, who is the user that runs the bot.
func TestRestoredStoreKeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner of a file")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	if err := os.Chown(dir, 1234, 1235); err != nil {
		t.Fatal(err)
	}
	copied := backup(t, 1)
	for _, want := range []uint32{1234, 2345} {
		if _, err := bolt.Replace(path, bytes.NewReader(copied), func(*bolt.Store) error { return nil }); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if has := info.Sys().(*syscall.Stat_t).Uid; has != want {
			t.Errorf("the restored store belongs to the user %d, want %d", has, want)
		}
		if err := os.Chown(path, 2345, 2346); err != nil {
			t.Fatal(err)
		}
	}
}

// If root copies a store, the new store belongs to the owner of the original. If the original is no file, the new store
// belongs to the owner of its directory.
func TestFilledStoreHasOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner of a file")
	}
	dir := t.TempDir()
	like := filepath.Join(dir, "original.db")
	for _, err := range []error{os.Chown(dir, 1234, 1235), os.WriteFile(like, nil, 0o600), os.Chown(like, 2345, 2346)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for like, want := range map[string]uint32{"": 1234, like: 2345} {
		path := filepath.Join(dir, fmt.Sprint(want))
		if err := bolt.Fill(t.Context(), path, like, false, func(store.Filling) error { return nil }); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if has := info.Sys().(*syscall.Stat_t).Uid; has != want {
			t.Errorf("the new store belongs to the user %d, want %d", has, want)
		}
	}
}
