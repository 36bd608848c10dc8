package workflow_test

import (
	"errors"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// A store belongs to the first installation that uses it. Another workspace and another app are refused. An app that
// has replaced the store's app in the same workspace gets the store if the operator names the replaced app.
func TestInstall(t *testing.T) {
	h := newHarness(t)
	first := settings.Installation{Team: "T1", App: "A1"}
	install := func(is settings.Installation, replaced string, ok bool) {
		t.Helper()
		err := h.History.Install(t.Context(), is, replaced)
		var other *settings.OtherInstallation
		if ok != (err == nil) || err != nil && (!errors.As(err, &other) || other.Bot != is) {
			t.Errorf("%v, which replaces %q: %v", is, replaced, err)
		}
	}
	owner := func(want settings.Installation) {
		t.Helper()
		var got settings.Installation
		if err := h.store.View(t.Context(), func(r store.Reader) (err error) {
			got, _, err = settings.ReadInstallation(r)
			return err
		}); err != nil || got != want {
			t.Errorf("the store belongs to %v (%v), want %v", got, err, want)
		}
	}
	install(settings.Installation{Team: "T1"}, "", true) // Slack does not provide the app's id
	install(first, "", true)
	owner(first)
	install(settings.Installation{Team: "T1"}, "", true)
	owner(first)
	install(settings.Installation{Team: "T2", App: "A1"}, "", false)
	install(settings.Installation{Team: "T2", App: "A2"}, "A1", false)
	second := settings.Installation{Team: "T1", App: "A2"}
	install(second, "", false)
	install(second, "A9", false)
	owner(first)
	install(second, "A1", true)
	owner(second)
	install(second, "A1", true) // the flag may stay
	install(first, "A9", false)
	inEnterprise := settings.Installation{Team: "T1", Enterprise: "E1", App: "A2"}
	install(inEnterprise, "", true) // the workspace has joined an enterprise
	install(settings.Installation{Team: "T3", Enterprise: "E1", App: "A2"}, "", true)
	install(settings.Installation{Team: "T3", Enterprise: "E2", App: "A2"}, "", false)
	adopted := 0
	if err := h.store.View(t.Context(), func(r store.Reader) error {
		records, err := r.Audit(approvers.InstallationChain)
		for _, a := range records {
			if a.Kind == approvers.AuditAdopted && a.Facts["replaced"] == "A1" && a.Facts["app"] == "A2" {
				adopted++
			}
		}
		return err
	}); err != nil || adopted != 1 {
		t.Errorf("%d records of the replacement: %v", adopted, err)
	}
}
