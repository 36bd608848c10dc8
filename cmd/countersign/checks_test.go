package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// The operators are told of a check that has failed for its time. When the check succeeds once, its time begins anew.
func TestLongFailedChecks(t *testing.T) {
	failures := map[string]error{}
	var told []probe
	for name := range toldAfter {
		told = append(told, probe{name: name, ready: func(context.Context) error { return failures[name] }})
	}
	failing := map[string]workflow.FailedCheck{}
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for i, step := range []struct {
		rows, model string
		want        []string
	}{
		{"", "the key is refused", nil},
		{"a row is damaged", "the key is refused", []string{"rows"}},
		{"", "no answer", []string{"model"}},
		{"", "", nil},
		{"", "no answer", nil},
	} {
		clear(failures)
		for name, why := range map[string]string{"rows": step.rows, "model": step.model} {
			if why != "" {
				failures[name] = errors.New(why)
			}
		}
		runChecks(t.Context(), told, failing, now.Add(time.Duration(i)*5*time.Minute))
		got := maps.Clone(failing)
		maps.DeleteFunc(got, func(_ string, f workflow.FailedCheck) bool { return !f.Long })
		for _, name := range step.want {
			if f := got[name]; f.Why == "" || name == "model" && (!f.Since.Equal(now) || f.Why != step.model) {
				t.Errorf("step %d: %s is %+v", i, name, f)
			}
		}
		if len(got) != len(step.want) {
			t.Errorf("step %d: the operators are told of %v", i, got)
		}
	}
}

// lateInspection is a store whose inspections wait for the channel.
type lateInspection struct {
	store.Store
	store.Inspected
	begin chan struct{}
}

func (s lateInspection) Inspect(ctx context.Context) error {
	select {
	case <-s.begin:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// After a restart, the check of the store's rows succeeds, because this process has not inspected the store yet. The
// notice about damaged rows that an earlier process has found ends only after the inspection.
func TestRowsBeforeInspection(t *testing.T) {
	var begin chan struct{}
	inFakedTime(t, func(b *synctestHarness) {
		b.policy += "operators: {channel: \"#support\"}\n"
		begin = make(chan struct{})
		b.setup.store = lateInspection{b.db, b.db, begin}
		known, err := json.Marshal(settings.Operators{Notices: []settings.OperatorNotice{{
			Message: "earlier", At: time.Now(), Problems: []settings.Problem{{Kind: settings.ProblemCheck, Of: "rows", Since: time.Now()}},
		}}})
		b.ok(err)
		b.ok(b.db.Update(b.ctx, func(tx store.Tx) error {
			return tx.PutSetting(store.Setting{Key: store.SettingOperators, Value: known})
		}))
	}, func(b *synctestHarness) {
		lasts := func() (yes bool) {
			b.ok(b.db.View(b.ctx, func(r store.Reader) error {
				o, _, err := settings.ReadOperators(r)
				yes = err == nil && o.Notices[0].Problems[0].Lasts()
				return err
			}))
			return yes
		}
		time.Sleep(10 * time.Minute)
		if !lasts() {
			t.Error("the problem has ended before the inspection")
		}
		close(begin)
		time.Sleep(2 * checkEvery)
		if lasts() {
			t.Error("the problem lasts after the inspection")
		}
	})
}
