package shop

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var opened = time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC)

func clock() time.Time { return opened }

// refund runs the usual refund under a key.
func refund(t *testing.T, s *Shop, key, order string, amount Amount) (RefundResult, error) {
	t.Helper()
	return s.IssueRefund(t.Context(), key, RefundArgs{OrderID: order, Amount: amount, Currency: "USD", Reason: "arrived broken"})
}

func TestTheSameKeyNeverActsTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.json")
	s, err := Open(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	first, err := refund(t, s, "exec-1", "ORD-123", 2000)
	if err != nil {
		t.Fatal(err)
	}
	again, err := refund(t, s, "exec-1", "ORD-123", 2000)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the repeated key answered differently (-first +again):\n%s", diff)
	}
	// The test opens the same file with a new Shop, as after a restart. All data must be present.
	s, err = Open(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	if again, err = refund(t, s, "exec-1", "ORD-123", 2000); err != nil || again != first {
		t.Errorf("after reopening: %+v, %v; want %+v", again, err, first)
	}
	if _, err := refund(t, s, "exec-1", "ORD-123", 100); !errors.Is(err, ErrKeyReused) {
		t.Errorf("a key reused with another amount: %v, want ErrKeyReused", err)
	}
	ledger := s.Ledger()
	if len(ledger) != 1 || ledger[0].Repeats != 2 || ledger[0].Key != "exec-1" || !ledger[0].At.Equal(opened) {
		t.Errorf("ledger %+v, want one entry repeated twice", ledger)
	}
	if got := s.State().Orders[0].Refunded; got != 2000 {
		t.Errorf("refunded %v, want 20.00", got)
	}
}

func TestConcurrentCallsUnderOneKeyActOnce(t *testing.T) {
	s := New(clock)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			if _, err := s.SendEmail(context.Background(), "exec-9", EmailArgs{To: "bob@example.com", Subject: "Hello", Body: "Hi"}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	state := s.State()
	if len(state.Emails) != 1 || len(state.Ledger) != 1 || state.Ledger[0].Repeats != 15 {
		t.Errorf("%d e-mails, ledger %+v; want one of each, repeated 15 times", len(state.Emails), state.Ledger)
	}
}

func TestARefusalChangesNothing(t *testing.T) {
	s := New(clock)
	before := s.State()
	if _, err := refund(t, s, "exec-1", "ORD-123", 999999); !errors.Is(err, ErrRefused) {
		t.Fatalf("err = %v, want ErrRefused", err)
	}
	if diff := cmp.Diff(before, s.State()); diff != "" {
		t.Errorf("a refused call changed the state:\n%s", diff)
	}
	// The refused call did not use up the key, so a corrected call may use the same key.
	if _, err := refund(t, s, "exec-1", "ORD-123", 4999); err != nil {
		t.Errorf("the corrected call: %v", err)
	}
}

func TestEveryChangeNeedsAKeyAndALiveContext(t *testing.T) {
	s := New(clock)
	if _, err := refund(t, s, "", "ORD-123", 100); !errors.Is(err, ErrNoKey) {
		t.Errorf("without a key: %v, want ErrNoKey", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.CancelAccount(ctx, "exec-1", CloseArgs{UserID: "USR-456"}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v, want context.Canceled", err)
	}
	if _, err := s.SearchOrders(ctx, SearchArgs{}); !errors.Is(err, context.Canceled) {
		t.Errorf("search with a cancelled context: %v, want context.Canceled", err)
	}
	if n := len(s.Ledger()); n != 0 {
		t.Errorf("%d ledger entries, want none", n)
	}
}

func TestAChangeThatCannotBeSavedDidNotHappen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := Open(filepath.Join(dir, "shop.json"), clock)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := refund(t, s, "exec-1", "ORD-123", 100); !errors.Is(err, ErrNotSaved) {
		t.Fatalf("err = %v, want ErrNotSaved", err)
	}
	if state := s.State(); len(state.Ledger) != 0 || state.Orders[0].Refunded != 0 {
		t.Errorf("the unsaved refund is in the state: %+v", state.Ledger)
	}
}

func TestOpenRefusesWhatIsNotItsFile(t *testing.T) {
	for name, content := range map[string]string{
		"not JSON":     "hello",
		"other JSON":   `{"name":"package"}`,
		"newer":        `{"format":99}`,
		"unknown name": `{"format":1,"wares":[]}`,
		"lost entry":   `{"format":1,"runs":{"k":{"tool":"send_email","entry":3}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "shop.json")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(path, clock)
			if !errors.Is(err, ErrForeignFile) || !strings.Contains(err.Error(), path) {
				t.Errorf("err = %v, want ErrForeignFile naming the file", err)
			}
			if data, err := os.ReadFile(path); err != nil || string(data) != content {
				t.Errorf("the file was touched: %q, %v", data, err)
			}
		})
	}
}

func TestNothingIsLeftBesideTheFile(t *testing.T) {
	dir := t.TempDir()
	// The file looks as if a process was killed during a write.
	if err := os.WriteFile(filepath.Join(dir, "shop.json.new"), []byte(`{"format":1,"led`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(filepath.Join(dir, "shop.json"), clock)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := refund(t, s, "exec-1", "ORD-123", 100); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v; want the file alone", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600: it holds personal data", info.Mode(), err)
	}
	var onDisk State
	data, err := os.ReadFile(filepath.Join(dir, "shop.json"))
	if err == nil {
		err = json.Unmarshal(data, &onDisk)
	}
	if err != nil || len(onDisk.Ledger) != 1 {
		t.Errorf("on disk: %+v, %v; want the refund", onDisk.Ledger, err)
	}
}
