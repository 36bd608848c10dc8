//go:build linux

package workflow_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// TestCrashImages records every write and sync of a process with six concurrent conversations, and all facts that the
// process acknowledged. From the recording, the test builds images: possible contents of the disk after a power
// failure. An image has all writes up to a sync, and any sectors of the later writes in any order. The test opens the
// store of each image. The store's check must find no fault, the store must have every acknowledged delivery and
// decision, and no tool may be called twice.
//
// TestCrashImages builds 150 images, or as many as COUNTERSIGN_IMAGES says.
func TestCrashImages(t *testing.T) {
	testkit.SkipIfShort(t)
	images, seed := testkit.Size(t, "COUNTERSIGN_IMAGES", 150), testkit.Seed(t)
	began := time.Now()
	r := recorded(t, max(50, images/10))
	random := testkit.Chance(seed, 0)
	moments := make([]int, images)
	for i := range moments {
		moments[i] = r.moments[random.IntN(len(r.moments))]
	}
	slices.Sort(moments)
	d := &disk{synced: slices.Clone(r.made)}
	different := map[[32]byte]bool{}
	kept, lost, acknowledged, at := 0, 0, 0, 0
	known := &known{called: map[string]bool{}}
	for i, moment := range moments {
		for ; at < moment; at++ {
			d.do(r.events[at])
			known.learn(r.events[at])
		}
		file, k, l := d.image(random)
		kept, lost, acknowledged = kept+k, lost+l, acknowledged+len(known.safe)
		different[sha256.Sum256(file)] = true
		if err := known.holds(filepath.Join(r.dir, fmt.Sprintf("image-%d.db", i)), file); err != nil {
			t.Fatalf("image %d, at event %d of %d: %v", i, at, len(r.events), err)
		}
	}
	t.Logf("images=%d different=%d of %d writes and %d syncs: %d sectors that were not synced kept, %d lost; %d acknowledgements looked for, 0 lost, in %s",
		images, len(different), r.writes, r.syncs, kept, lost, acknowledged, time.Since(began).Round(time.Second))
	if len(different) < images/4 {
		t.Errorf("only %d images are different", len(different))
	}
}

// TestCrashImagesOfALyingDisk proves that the checks of the images work. The disk of this test reports syncs that it
// did not do, and the checks must find a fault.
func TestCrashImagesOfALyingDisk(t *testing.T) {
	testkit.SkipIfShort(t)
	r := recorded(t, 30)
	d := &disk{synced: slices.Clone(r.made)}
	known := &known{called: map[string]bool{}}
	found, syncs := 0, 0
	for i, e := range r.events {
		if e.kind == synced {
			if syncs++; syncs > r.syncs/2 {
				continue // the lying disk skips this sync
			}
		}
		d.do(e)
		known.learn(e)
		if syncs > r.syncs/2 && e.kind == said {
			d := &disk{synced: d.synced}
			file, _, _ := d.image(testkit.Chance(1, uint64(i)))
			if err := known.holds(filepath.Join(r.dir, fmt.Sprintf("lie-%d.db", i)), file); err != nil {
				found++
			}
		}
	}
	if found == 0 {
		t.Error("acknowledged data is missing from the disk, and that was not noticed")
	}
}

// recording has the recorded operations and output of a process.
type recording struct {
	dir           string
	made          []byte // the store before the process began
	events        []traced
	writes, syncs int
	moments       []int // possible moments of a power failure, as numbers of earlier events; moments after a write are listed three times
}

func recorded(t *testing.T, decisions int) recording {
	t.Helper()
	r := recording{dir: quickDir(t)}
	path := filepath.Join(r.dir, "store.db")
	s, err := bolt.Open(path, bolt.Options{})
	if err == nil {
		err = s.Close()
	}
	if err == nil {
		r.made, err = os.ReadFile(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.events = record(t, r.dir, decisions)
	for i, e := range r.events {
		r.moments = append(r.moments, i+1)
		switch e.kind {
		case wrote, truncated:
			r.writes++
			r.moments = append(r.moments, i+1, i+1)
		case synced:
			r.syncs++
		}
	}
	d := &disk{synced: slices.Clone(r.made)}
	for _, e := range r.events {
		d.do(e)
	}
	d.do(traced{kind: synced})
	left, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if sha256.Sum256(left) != sha256.Sum256(d.synced) {
		t.Fatalf("the recorded writes make a file of %d bytes that differs from the one that the process left, of %d bytes", len(d.synced), len(left))
	}
	return r
}

// known has the facts that the recorded process acknowledged before a moment.
type known struct {
	safe   []string        // the lines that the process printed
	called map[string]bool // executions whose tool was called
}

func (k *known) learn(e traced) {
	if e.kind != said {
		return
	}
	k.safe = append(k.safe, e.said)
	if execution, ok := strings.CutPrefix(e.said, saidCalled+" "); ok {
		k.called[execution] = true
	}
}

// k.holds writes an image to a file, opens the store, and returns an error if an acknowledged fact is missing.
func (k *known) holds(path string, image []byte) error {
	if err := os.WriteFile(path, image, 0o600); err != nil {
		return err
	}
	defer os.Remove(path)
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	err = errors.Join(s.Check(ctx), s.View(ctx, func(r store.Reader) error {
		var lost []error
		for _, line := range k.safe {
			if err := isSafe(r, line); err != nil {
				lost = append(lost, fmt.Errorf("%q was acknowledged, and is lost: %w", line, err))
			}
		}
		return errors.Join(lost...)
	}), k.runOn(ctx, s))
	return errors.Join(err, s.Close())
}

// isSafe checks whether the store has one acknowledged fact.
func isSafe(r store.Reader, line string) error {
	what, ref, _ := strings.Cut(line, " ")
	switch what {
	case saidReceived:
		_, err := r.Inbox(ref)
		return err
	case saidDecided:
		req, err := r.Request(ref)
		if err != nil {
			return err
		}
		records, err := r.Audit(ref)
		written := slices.ContainsFunc(records, func(a approvers.AuditRecord) bool { return a.Kind == approvers.AuditDecided && a.Actor == lead.ID })
		if req.State == approvers.Pending || len(req.Decisions) != 1 || !written {
			return errors.Join(err, fmt.Errorf("the request is %s, and has %d decisions", req.State, len(req.Decisions)))
		}
		return err
	case saidCalled, saidFinished:
		e, err := r.Execution(ref)
		if e.State == approvers.ExecutionNone || what == saidFinished && e.State != approvers.ExecutionSucceeded {
			return errors.Join(err, fmt.Errorf("it is %s", e.State))
		}
		return err
	}
	return fmt.Errorf("the recorded process prints no line %q", what)
}

// runOn simulates the next process. The next process must not run calls that the recorded process started.
func (k *known) runOn(ctx context.Context, s store.Store) error {
	tools, at, current := newToolbox(), imageTime.Add(time.Minute), policy("policy-1")
	wf := workflow.New(workflow.Config{
		Store: s, Policy: func() *approvers.Policy { return current }, Tools: tools, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return at },
	})
	if err := wf.Runs.Recover(ctx, store.AllShares); err != nil {
		return err
	}
	var due []store.Timer
	err := s.View(ctx, func(r store.Reader) (err error) {
		due, err = r.TimersIn(store.AllShares, store.TimerRun, at, 1000)
		return err
	})
	for _, timer := range due {
		_, run, claimErr := wf.Runs.Claim(ctx, timer.Ref)
		if run && k.called[timer.Ref] {
			claimErr = errors.Join(claimErr, fmt.Errorf("execution %s is called a second time", timer.Ref))
		}
		err = errors.Join(err, claimErr)
	}
	return err
}
