package main

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/config"
	"countersign/store"
)

// removeRecord deletes the last record of a chain from a store's file, as an attacker would.
func removeRecord(t *testing.T, path, chain string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("audit")).Cursor()
		k, _ := c.Seek([]byte(chain))
		for next := k; strings.HasPrefix(string(next), chain); next, _ = c.Next() {
			k = append([]byte{}, next...)
		}
		return tx.Bucket([]byte("audit")).Delete(k)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// useStore makes the commands use a store, with a small policy.
func useStore(t *testing.T, path string) {
	t.Helper()
	policy := filepath.Join(filepath.Dir(path), "countersign.yaml")
	t.Setenv("COUNTERSIGN_STORE", "bolt:"+path)
	t.Setenv("COUNTERSIGN_POLICY", policy)
	if err := os.WriteFile(policy, []byte("version: 1\ntools: {search_orders: {risk: low}}\nagents: {support: {channels: [\"#support\"], tools: [search_orders]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A store whose history was changed, or whose rows are damaged, can be copied as evidence. The command prints the
// faults, and exits with 1. Such a copy does not replace an earlier copy. An operator who has no other copy can restore
// it.
func TestBackupOfStoreWithFaults(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		fault string
	}{
		"a record was removed": {func(t *testing.T, path string) { removeRecord(t, path, "req_B") }, "chain req_B: record 3 is missing"},
		"a record is damaged":  {func(t *testing.T, path string) { flip(t, path, "req_B/2") }, "chain req_B: record 2 is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			path := threeChains(t)
			useStore(t, path)
			dir := filepath.Dir(path)
			whole, copied := filepath.Join(dir, "whole.db"), filepath.Join(dir, "copied.db")
			if said, err := runCommand(t, "backup", whole); err != nil || !strings.Contains(said, "it was checked") {
				t.Fatalf("%s (%v)", said, err)
			}
			before := readText(t, whole)
			c.spoil(t, path)

			said, err := runCommand(t, "backup", copied)
			if cli.Code(err) != cli.ExitNo || !strings.Contains(said, c.fault) || !strings.Contains(said, "SHA-256") || strings.Contains(said, "it was checked") {
				t.Errorf("the backup says %s (%v)", said, err)
			}
			said, err = runCommand(t, "backup", "--force", whole)
			if cli.Code(err) != cli.ExitNo || !strings.Contains(err.Error(), "name another file") || !strings.Contains(said, c.fault) || readText(t, whole) != before {
				t.Errorf("the backup over an earlier one says %s (%v)", said, err)
			}

			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			said, err = runCommand(t, "restore", copied)
			if _, missing := os.Stat(path); cli.Code(err) != cli.ExitNo || missing == nil || !strings.Contains(err.Error(), "--accept-faults") || !strings.Contains(said, c.fault) {
				t.Errorf("without the flag, restore says %s (%v)", said, err)
			}
			said, err = runCommand(t, "restore", "--accept-faults", copied)
			if _, missing := os.Stat(path); err != nil || missing != nil || !strings.Contains(said, c.fault) || !strings.Contains(said, "is restored from") {
				t.Errorf("with the flag, restore says %s (%v)", said, err)
			}
			if said, err := runCommand(t, "audit", "verify"); cli.Code(err) != cli.ExitNo || !strings.Contains(said, c.fault) {
				t.Errorf("after that, verify says %s (%v)", said, err)
			}
			if said, err := runCommand(t, "audit", "list", "--kind", "restored"); !strings.Contains(said, "The store was restored with faults from copied.db") {
				t.Errorf("after that, the list says %s (%v)", said, err)
			}
		})
	}
}

// A store with a damaged page can be copied as evidence, and restore repairs the copy.
func TestBackupOfStoreWithDamagedPage(t *testing.T) {
	path := threeChains(t)
	useStore(t, path)
	copied := filepath.Join(filepath.Dir(path), "copied.db")
	tearPage(t, path)

	said, err := runCommand(t, "backup", copied)
	if cli.Code(err) != cli.ExitNo || !strings.Contains(said, "SHA-256") || !strings.Contains(said, "its audit records can't be read") || !strings.Contains(said, "page") {
		t.Fatalf("the backup says %s (%v)", said, err)
	}
	said, err = runCommand(t, "backup", "--force", copied)
	if cli.Code(err) != cli.ExitNo || !strings.Contains(err.Error(), "name another file") {
		t.Errorf("the backup over an earlier one says %s (%v)", said, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if said, err := runCommand(t, "restore", "--accept-faults", copied); err != nil || !strings.Contains(said, "is restored from") {
		t.Errorf("restore says %s (%v)", said, err)
	}
}

// tearPage damages the root page of the audit records.
func tearPage(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	var at int64
	err = db.View(func(tx *bbolt.Tx) error {
		at = int64(tx.Bucket([]byte("audit")).Root()) * int64(db.Info().PageSize)
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil || at == 0 {
		t.Fatal(at, err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt(make([]byte, 16), at)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// The backup of an older store is not upgraded, so it has the SHA-256 that the command prints.
func TestBackupOfOlderStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	useStore(t, path)
	compressed, err := os.Open("../../store/bolt/testdata/schema9.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer compressed.Close()
	plain, err := gzip.NewReader(compressed)
	if err != nil {
		t.Fatal(err)
	}
	file, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	copied := path + ".copy"
	said, err := runCommand(t, "backup", copied)
	if _, missing := os.Stat(copied); missing != nil {
		t.Fatalf("%s (%v)", said, err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(readText(t, copied)))); !strings.Contains(said, "SHA-256 "+sum) {
		t.Errorf("the file has %s, and the backup says %s (%v)", sum, said, err)
	}
}

// An operator who continues with an old store must accept the faults of its history, too.
func TestAcceptLossOfStoreWithFaults(t *testing.T) {
	path := threeChains(t)
	useStore(t, path)
	removeRecord(t, path, "req_B")
	addLaterHead(t, path)
	const fault = "chain req_B: record 3 is missing"
	said, err := runCommand(t, "audit", "accept-loss", "--head", "1", "--reason", "it is lost")
	if cli.Code(err) != cli.ExitNo || !strings.Contains(err.Error(), "--accept-faults") || !strings.Contains(said, fault) {
		t.Errorf("without the flag: %s (%v)", said, err)
	}
	said, err = runCommand(t, "audit", "accept-loss", "--head", "1", "--reason", "it is lost", "--accept-faults")
	if err != nil || !strings.Contains(said, fault) || !strings.Contains(said, "Accepted as ") {
		t.Errorf("with the flag: %s (%v)", said, err)
	}
	said, err = runCommand(t, "audit", "list", "--long", "--kind", "restored")
	if err != nil || !strings.Contains(said, `faults="accepted"`) {
		t.Errorf("the list: %s (%v)", said, err)
	}
}

// If the store is old, commands that read it warn. They open the store once, so they also report damage once.
func TestReadingOldStore(t *testing.T) {
	path := threeChains(t)
	useStore(t, path)
	addLaterHead(t, path)
	db, err := openstore.File(path)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(t.Context(), func(tx store.Tx) error { return tx.PutSetting(store.Setting{Key: "one", Value: []byte("1")}) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	damaged := strings.ReplaceAll(readText(t, path), `"key":"one"`, `"key":"onE"`)
	if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	log, was := new(bytes.Buffer), cli.Stderr
	cli.Stderr = log
	defer func() { cli.Stderr = was }()
	for _, args := range [][]string{{"audit", "list"}, {"pending"}} {
		log.Reset()
		said, err := runCommand(t, args...)
		if err != nil || strings.Count(said, "this is an old state") != 1 {
			t.Errorf("%v: it does not warn once: %s (%v)", args, said, err)
		}
		if n := strings.Count(log.String(), "settings, "); n != 1 {
			t.Errorf("%v: the damage is reported %d times, want once: %s", args, n, log)
		}
	}
}

// addLaterHead writes a file of signed heads with a head that the store at the path lacks.
func addLaterHead(t *testing.T, path string) {
	t.Helper()
	text, err := approvers.NewSealKey(rand.Reader, "countersign-test")
	if err != nil {
		t.Fatal(err)
	}
	key, err := approvers.ParseSealKey(text)
	if err != nil {
		t.Fatal(err)
	}
	note, err := approvers.Head{Origin: key.Origin(), Size: 12, Number: 1, At: time.Unix(1, 0).UTC(), Key: key.Public}.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config.AuditBeside(path).Heads, []byte(note+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
