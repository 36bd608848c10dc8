package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/storecmd"
	"countersign/config"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
)

// If the environment variable copierEnv is set, the test binary runs the command "countersign store copy". The copy
// pauses at a line of its output. The value of the variable is a copierConfig.
const copierEnv = "COUNTERSIGN_TEST_COPIER"

type copierConfig struct {
	From, To string
	Anew     bool
	Line     int // the copier pauses after this line of output until the test continues it; 0: no pause
}

// paused is the line that a copier prints when it pauses.
const paused = "PAUSED"

// copierMain is the copier's process. copierMain prints a line for each row.
func copierMain(conf string) int {
	var x copierConfig
	if err := json.Unmarshal([]byte(conf), &x); err != nil {
		panic(err)
	}
	out := &pausedOutput{line: x.Line, tell: os.Stdin}
	c := storecmd.Copy{Anew: x.Anew, Every: 1, Out: out, Progress: out}
	err := c.Run(context.Background(), x.From, x.To)
	if err != nil {
		fmt.Println(err)
	}
	return cli.Code(err)
}

// pausedOutput prints lines, and pauses after one of them.
type pausedOutput struct {
	line, n int
	tell    io.Reader
}

func (p *pausedOutput) Write(b []byte) (int, error) {
	n, err := os.Stdout.Write(b)
	if p.n++; p.n == p.line {
		fmt.Println(paused)
		_, _ = p.tell.Read(make([]byte, 1)) // also returns when the parent process has ended
	}
	return n, err
}

// copierRun is the result of a copier.
type copierRun struct {
	code   int
	killed bool
	lines  int
	said   string
}

// TestCopyIsInterrupted copies a store from a file into a database, and from the database into another file. Each copy
// is killed with SIGKILL several times, at any line of its output or a moment later. The test also cuts the network to
// the database. The next run of the same command continues the copy. Until the copy is complete, the new store can't be
// opened. In the end, both stores have the same rows, and their histories have the same heads.
//
// COUNTERSIGN_COPY_KILLS sets the number of kills in each direction (6 with CI=true). COUNTERSIGN_SEED repeats the
// moments of the kills.
func TestCopyIsInterrupted(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	server := pgserver.New(t, "fsync=off")
	c := &copying{T: t, dir: t.TempDir(), random: testkit.Chance(testkit.Seed(t), 9), proxy: pgserver.NewProxy(t, server)}
	c.direct = server.TCP("postgres")
	c.fillOriginal(filepath.Join(c.dir, "original.db"))
	kills := testkit.Size(t, "COUNTERSIGN_COPY_KILLS", 6)
	there, back := c.proxy.URL("postgres"), "bolt:"+filepath.Join(c.dir, "back.db")
	c.move("bolt:"+filepath.Join(c.dir, "original.db"), there, kills)
	c.move(there, back, kills)
	c.same("bolt:"+filepath.Join(c.dir, "original.db"), back)
}

type copying struct {
	*testing.T
	dir    string
	random *rand.Rand
	proxy  *pgserver.Proxy
	direct string // address of the database without the proxy
}

// fillOriginal makes the store of a played scenario. fillOriginal adds some megabytes, so the copy needs several
// transactions.
func (c *copying) fillOriginal(path string) {
	c.Helper()
	if err := demo(c.Context(), demoOptions{addr: "127.0.0.1:0", patience: patience, data: c.dir, play: "testdata/scenarios/stages.txt", noBrowser: true}, io.Discard); err != nil {
		c.Fatal(err)
	}
	for _, suffix := range []string{"", ".audit-key", ".heads"} {
		if err := os.Rename(filepath.Join(c.dir, "countersign.db"+suffix), path+suffix); err != nil && (suffix != ".heads" || !errors.Is(err, fs.ErrNotExist)) {
			c.Fatal(err)
		}
	}
	db, err := openstore.File(path)
	if err != nil {
		c.Fatal(err)
	}
	err = db.Update(c.Context(), func(tx store.Tx) error {
		for i := range 40 {
			err := tx.PutRendering(store.Rendering{OutboxMessage: "long", Post: uint64(i + 1), Body: []byte(strings.Repeat("x", 100_000))})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		c.Fatal(err)
	}
}

// run runs a copier. At the pause of the copier, run calls the function meanwhile. meanwhile returns false if it has
// killed the process.
func (c *copying) run(conf copierConfig, meanwhile func(*os.Process) bool) (r copierRun) {
	c.Helper()
	js, err := json.Marshal(conf)
	if err != nil {
		c.Fatal(err)
	}
	cmd := exec.CommandContext(c.Context(), os.Args[0])
	cmd.Dir, cmd.Env = c.dir, append(plainEnv(), copierEnv+"="+string(js))
	in, err := cmd.StdinPipe()
	if err != nil {
		c.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.Fatal(err)
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == paused {
			if meanwhile(cmd.Process) {
				in.Write([]byte("\n"))
			}
			continue
		}
		r.lines++
		r.said += lines.Text() + "\n"
	}
	_ = cmd.Wait() // cmd.ProcessState says how the process ended
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	r.code, r.killed = cmd.ProcessState.ExitCode(), status.Signaled()
	r.said += errs.String()
	return r
}

// The method "move" copies a store, with interruptions.
func (c *copying) move(from, to string, kills int) {
	c.Helper()
	rehearsal := c.run(copierConfig{From: from, To: "bolt:" + filepath.Join(c.dir, fmt.Sprintf("rehearsal-%d.db", c.random.Int64()))}, nil)
	if rehearsal.code != cli.ExitDone {
		c.Fatalf("the rehearsal: %s", rehearsal.said)
	}
	before, _, found := strings.Cut(rehearsal.said, "copied 35 renderings\n")
	if !found {
		c.Fatalf("the rehearsal: %s", rehearsal.said)
	}
	killed, continued := 0, 0
	for i := range kills {
		line := 1 + c.random.IntN(rehearsal.lines)
		if i < 2 { // so that there is something to continue
			line = 1 + strings.Count(before, "\n")
		}
		r := c.run(copierConfig{From: from, To: to, Line: line}, func(p *os.Process) bool {
			if i < 2 || c.random.IntN(2) == 0 {
				return p.Kill() != nil
			}
			after := time.Duration(c.random.Int64N(int64(20 * time.Millisecond)))
			time.AfterFunc(after, func() { _ = p.Kill() }) // the process may have ended
			return true
		})
		if strings.Contains(r.said, "continuing an interrupted copy") {
			continued++
		}
		switch {
		case r.killed:
			killed++
			c.unusable(to, from)
		case r.code != cli.ExitDone:
			c.Fatalf("kill %d at line %d: exit code %d: %s", i, line, r.code, r.said)
		}
		if !r.killed || c.Failed() {
			break
		}
	}
	if i := strings.Index(to+from, "postgres://"); i >= 0 && killed == kills {
		r := c.run(copierConfig{From: from, To: to, Line: rehearsal.lines / 3}, func(*os.Process) bool {
			c.proxy.Set(pgserver.Network{Refused: true})
			return true
		})
		c.proxy.Set(pgserver.Network{})
		if r.code != cli.ExitFailed && r.code != cli.ExitDone || r.code == cli.ExitFailed && !strings.Contains(r.said, "Run the same command again, and it continues") {
			c.Errorf("without the network: exit code %d: %s", r.code, r.said)
		}
	}
	for range 2 { // the second time, there is nothing left to do
		if r := c.run(copierConfig{From: from, To: to}, nil); r.code != cli.ExitDone || !strings.Contains(r.said, "and compared row by row: ") {
			c.Fatalf("the last run: exit code %d: %s", r.code, r.said)
		}
	}
	c.Logf("to %s: %d lines, killed %d times, continued %d times", strings.SplitN(to, ":", 2)[0], rehearsal.lines, killed, continued)
	if killed > 1 && continued == 0 {
		c.Errorf("no copy was continued")
	}
	c.same(from, to)
}

// The method "opens" opens a store in the same way as a command.
func (c *copying) opens(name string) (openstore.Store, config.Audit, error) {
	s, audit, err := config.ReadStore("the store", name)
	if err != nil {
		c.Fatal(err)
	}
	db, err := openstore.Existing(c.Context(), config.Env{Store: s, Audit: config.Audit{}})
	return db, audit, err
}

// The method "unusable" checks that the new store can't be opened, unless the copy is complete.
func (c *copying) unusable(to, from string) {
	c.Helper()
	db, _, err := c.opens(to)
	if err == nil {
		db.Close()
		c.same(from, to)
		return
	}
	if cli.Code(err) != cli.ExitUsage {
		c.Errorf("an incomplete copy: %v", err)
	}
}

// The method "same" checks that two stores have the same rows and the same heads, and that both histories are complete.
func (c *copying) same(a, b string) {
	c.Helper()
	var heads [2]string
	var stores [2]openstore.Store
	for i, name := range []string{a, b} {
		db, files, err := c.opens(name)
		if err != nil {
			c.Fatal(err)
		}
		defer db.Close()
		stores[i] = db
		key := files.Key
		if !filepath.IsAbs(key) {
			key = filepath.Join(c.dir, key)
		}
		var keys auditcmd.TrustedKeys
		err = errors.Join(keys.TrustFile(key), db.Check(c.Context()))
		err = errors.Join(err, auditcmd.Verify(c.Context(), io.Discard, db, audit.VerifyOptions{Keys: keys.Keys, Own: keys.Own}))
		err = errors.Join(err, db.View(c.Context(), func(r store.Reader) error {
			head, err := r.LastHead()
			heads[i] = head.Note
			return err
		}))
		if err != nil {
			c.Errorf("the history of %s: %v", name, err)
		}
	}
	if heads[0] == "" || heads[0] != heads[1] {
		c.Errorf("the heads are %q and %q", heads[0], heads[1])
	}
	if err := store.Equal(c.Context(), stores[0].(store.Contents), stores[1].(store.Contents)); err != nil {
		c.Error(err)
	}
}
