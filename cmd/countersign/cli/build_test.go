package cli

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestBuildOf(t *testing.T) {
	fromGit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.time", Value: "2026-03-02T09:00:00Z"}, {Key: "vcs.modified", Value: "false"}}
	changed := append(fromGit[:2:2], debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for _, c := range []struct {
		name    string
		release string
		info    debug.BuildInfo
		want    string // how the description begins
	}{
		{"at a tag", "", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: fromGit}, "v1.2.3, commit 0123456789ab of 2026-03-02T09:00:00Z, go"},
		{"after a tag", "", debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20260302090000-0123456789ab+dirty"}, Settings: changed},
			"v1.2.4-0.20260302090000-0123456789ab+dirty, commit 0123456789ab of 2026-03-02T09:00:00Z with changes, go"},
		{"from a tarball", "v1.2.3", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "v1.2.3, commit unknown, go"},
		{"the linker's value comes first", "v1.2.3", debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20260302090000-0123456789ab"}, Settings: fromGit}, "v1.2.3, commit 0123456789ab of"},
		{"without the history", "", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "v0.0.0-devel, commit unknown, go"},
		{"without any information", "", debug.BuildInfo{}, "v0.0.0-devel, commit unknown, go"},
	} {
		if got := buildOf(c.release, &c.info).String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
