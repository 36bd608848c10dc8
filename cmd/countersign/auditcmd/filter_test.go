package auditcmd

import (
	"testing"
	"time"

	"countersign/cmd/countersign/cli"
)

func TestFilterFlags(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	got, err := filterFlags{since: "24h", until: "2026-11-21T11:00:00Z", kinds: []string{"decided"}}.read(now)
	if err != nil || !got.Since.Equal(now.Add(-24*time.Hour)) || !got.Until.Equal(now.Add(-time.Hour)) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, actor := range []string{"U0002", "T0001/U0002", "operator:anna", "caller:ci", "bot"} {
		if _, err := (filterFlags{actor: actor}).read(now); err != nil {
			t.Errorf("%s: %v", actor, err)
		}
	}
	for name, f := range map[string]filterFlags{
		"kind": {kinds: []string{"decide"}}, "since": {since: "yesterday"}, "a negative time": {until: "-3h"}, "a name": {actor: "teo"}, "nothing between": {since: "1h", until: "2h"},
	} {
		if _, err := f.read(now); cli.Code(err) != cli.ExitUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}
