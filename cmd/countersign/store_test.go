package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/internal/testkit"
	"countersign/store"
)

// hollowStore creates a store file that is mostly free space, and returns its path.
func hollowStore(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "countersign.db")
	db, err := openstore.File(path)
	if err != nil {
		t.Fatal(err)
	}
	const conversations = 100
	random := make([]byte, 22_500) // does not compress
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	text := base64.StdEncoding.EncodeToString(random)
	for _, erase := range []bool{false, true} {
		for i := range conversations {
			id := fmt.Sprint("conv_", i)
			err := db.Update(t.Context(), func(tx store.Tx) (err error) {
				if erase {
					_, err = tx.EraseConversation(id, 1000)
					return err
				}
				return errors.Join(tx.PutConversation(store.Conversation{ID: id, Place: id}),
					tx.PutMessage(store.Message{Conversation: id, Seq: 1, Text: text}))
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func runCommand(t *testing.T, args ...string) (said string, err error) {
	t.Helper()
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestStoreCompact(t *testing.T) {
	path := hollowStore(t)
	t.Setenv("COUNTERSIGN_STORE", "bolt:"+path)
	before := sizeOf(t, path)
	db, err := openstore.File(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runCommand(t, "store", "compact"); cli.Code(err) != cli.ExitFailed || !strings.Contains(err.Error(), "is held by") {
		t.Errorf("while it is held: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	said, err := runCommand(t, "store", "compact")
	if after := sizeOf(t, path); err != nil || after > before/4 || said != fmt.Sprintf("%s: %s → %s\n", path, cli.Size(before), cli.Size(after)) {
		t.Errorf("%d became %d: %s (%v)", before, after, said, err)
	}
	if said, err := runCommand(t, "store", "compact"); err != nil || !strings.Contains(said, "nothing to gain") {
		t.Errorf("a second time: %s (%v)", said, err)
	}
	t.Setenv("COUNTERSIGN_STORE", "bolt:"+path+".none")
	if _, err := runCommand(t, "store", "compact"); cli.Code(err) != cli.ExitUsage || !strings.Contains(err.Error(), "there is no store at") {
		t.Errorf("where there is none: %v", err)
	}
}

// serve compacts the store before it opens the store, if the compaction frees enough space in a short time.
func TestCompactAtStart(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	soon := compaction{file: 1 << 20, live: 1 << 20, long: time.Minute}
	for _, c := range []struct {
		name    string
		rule    func(*compaction)
		shrinks bool
		says    string
	}{
		{"worth it", func(*compaction) {}, true, "the store is compacted, as at least half of its file is free"},
		{"a small file", func(c *compaction) { c.file = 1 << 30 }, false, ""},
		{"too much to write", func(c *compaction) { c.live = 1 }, false, "Compact it with countersign store compact"},
		{"takes too long", func(c *compaction) { c.long = time.Nanosecond }, false, "takes too long for a start"},
	} {
		path := hollowStore(t)
		rule, logged := soon, new(lineLog)
		c.rule(&rule)
		before := sizeOf(t, path)
		rule.compact(t.Context(), path, slog.New(slog.NewTextHandler(logged, nil)))
		if shrank := sizeOf(t, path) < before/4; shrank != c.shrinks {
			t.Errorf("%s: %d bytes became %d", c.name, before, sizeOf(t, path))
		}
		if said := strings.Join(logged.all(), "\n"); !strings.Contains(said, c.says) || c.says == "" && said != "" {
			t.Errorf("%s: the log says %q", c.name, said)
		}
		soon.compact(t.Context(), path, slog.New(slog.DiscardHandler))
		logged = new(lineLog)
		soon.compact(t.Context(), path, slog.New(slog.NewTextHandler(logged, nil)))
		if len(logged.all()) != 0 {
			t.Errorf("%s: when it is compact the log says %q", c.name, logged.all())
		}
	}
}

// A store may be truncated or overwritten at any place. Every command that needs the damaged part ends with an error
// and code 3. If verification found the damage, the code is 1. Such a command never ends with a panic.
func TestDamagedStore(t *testing.T) {
	testkit.SkipIfShort(t)
	l := newAuditFixture(t)
	whole, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "damaged.db")
	t.Setenv("COUNTERSIGN_STORE", "bolt:"+path)
	policy := filepath.Join(dir, "countersign.yaml")
	if err := os.WriteFile(policy, []byte("version: 1\ntools: {search_orders: {risk: low}}\nagents: {support: {channels: [\"#support\"], tools: [search_orders]}}\n"+
		"approvers: {lead: {title: Lead, members: [U0002], max_risk: critical, can_approve: [\"*\"]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COUNTERSIGN_POLICY", policy)
	damage := map[string][]byte{"empty": {}}
	for _, part := range []int{1, 10, 25, 50, 75, 99} {
		damage[fmt.Sprintf("cut to %d %%", part)] = whole[:len(whole)*part/100]
	}
	const page = 4096
	for _, from := range []int{0, 2, 3, 8, 21, 55} {
		for what, with := range map[string]byte{"zeros": 0, "words": 'w'} {
			torn := bytes.Clone(whole)
			for i := from * page; i < min((from+3)*page, len(torn)); i++ {
				torn[i] = with
			}
			damage[fmt.Sprintf("%s at page %d", what, from)] = torn
		}
	}
	cycle, branches := bytes.Clone(whole), 0
	for n := range uint64(len(cycle) / page) {
		p := cycle[n*page:]
		if binary.LittleEndian.Uint64(p) == n && p[8] == 1 { // a branch page, whose first entry names another page
			binary.LittleEndian.PutUint64(p[24:], n)
			branches++
		}
	}
	if branches == 0 {
		t.Fatal("the store has no branch page")
	}
	damage["branch pages that name themselves"] = cycle
	ended := map[int]int{}
	for name, content := range damage {
		for _, args := range []string{
			"audit verify", "audit list", "pending req_none", "store compact", "store check", "backup " + filepath.Join(dir, "copy.db") + " --force",
			"store salvage " + path + " --to bolt:" + filepath.Join(dir, "salvaged.db"),
		} {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(filepath.Join(dir, "salvaged.db"))
			_, err := runCommand(t, strings.Fields(args)...)
			ended[cli.Code(err)]++
			if cli.Code(err) == cli.ExitUsage && !strings.Contains(fmt.Sprint(err), "req_none") { // the pages that this command reads are undamaged
				t.Errorf("%s, %s: %v", name, args, err)
			}
		}
	}
	if ended[cli.ExitFailed] < len(damage) {
		t.Error("too little was found")
	}
	t.Logf("stores=%d commands by exit code: %v", len(damage), ended)
}

// Commands that only read leave the store's file as it is, if no bot runs: they neither repair a damaged file nor
// upgrade the file of an older version.
func TestReadingCommands(t *testing.T) {
	testkit.SkipIfShort(t)
	older := func(t *testing.T, path string) {
		f, err := os.Open("../../store/bolt/testdata/schema9.db.gz")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		plain, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(plain)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damaged := func(t *testing.T, path string) {
		db, err := openstore.File(path)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(t.Context(), func(tx store.Tx) error {
			return errors.Join(tx.PutConversation(store.Conversation{ID: "conv_1", Place: "T0001/C0001/1"}), tx.PutSetting(store.Setting{Key: "one", Value: []byte("1")}))
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(raw, []byte(`"key":"one"`), []byte(`"key":"onE"`)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, prepare := range map[string]func(*testing.T, string){"an older version": older, "a damaged row": damaged} {
		for _, args := range [][]string{
			{"store", "check"}, {"audit", "verify"}, {"audit", "list"}, {"audit", "export"}, {"audit", "pace"}, {"audit", "report"}, {"explain", "--observed"},
			{"backup", "-"}, {"doctor"}, {"store", "copy", "--from", "bolt:STORE", "--to", "bolt:COPY"},
		} {
			t.Run(name+", "+strings.Join(args[:min(2, len(args))], " "), func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "countersign.db")
				prepare(t, path)
				before, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				t.Setenv("COUNTERSIGN_STORE", "bolt:"+path)
				args := slices.Clone(args)
				for i := range args {
					args[i] = strings.NewReplacer("STORE", path, "COPY", filepath.Join(t.TempDir(), "copy.db")).Replace(args[i])
				}
				_, err = runCommand(t, args...)
				if after, failed := os.ReadFile(path); failed != nil || !bytes.Equal(after, before) {
					t.Errorf("the store was changed (%v)", failed)
				}
				if files, err := filepath.Glob(path + ".damaged-*"); err != nil || len(files) > 0 {
					t.Errorf("files %v (%v)", files, err)
				}
				if args[0] == "store" && args[1] == "check" {
					if want := map[bool]int{true: cli.ExitNo, false: 0}[name == "a damaged row"]; cli.Code(err) != want {
						t.Errorf("got exit code %d, want %d", cli.Code(err), want)
					}
				}
			})
		}
	}
}
