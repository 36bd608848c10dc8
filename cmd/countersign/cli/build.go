package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// release is the version of a release that is built without the repository's tags, for example from a tarball. The
// linker sets this variable: -ldflags "-X countersign/cmd/countersign/cli.release=v1.2.3".
var release string

// unreleased is the version of a program that was built without the repository's history.
const unreleased = "v0.0.0-devel"

// Build identifies the source from which a program was built.
type Build struct {
	Version  string `json:"version"`          // a semantic version with v, or unreleased
	Commit   string `json:"commit,omitempty"` // empty: the program was built without the repository's history
	Date     string `json:"date,omitempty"`   // when the commit was made, RFC 3339 in UTC
	Changed  bool   `json:"changed"`          // true: the source differs from the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ThisBuild returns the source from which this program was built.
var ThisBuild = sync.OnceValue(func() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return buildOf(release, info)
})

// buildOf reads the information that the compiler stores in a program. Go derives the main module's version from the
// tags and commits of the repository.
func buildOf(release string, info *debug.BuildInfo) Build {
	b := Build{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b.Version == "" && strings.HasPrefix(info.Main.Version, "v") {
		b.Version = info.Main.Version
	}
	if b.Version == "" {
		b.Version = unreleased
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Changed = s.Value == "true"
		}
	}
	return b
}

// String describes the build in one line.
func (b Build) String() string {
	source := "commit unknown"
	if b.Commit != "" {
		source = "commit " + b.Commit[:min(12, len(b.Commit))] + " of " + b.Date
	}
	if b.Changed {
		source += " with changes"
	}
	return fmt.Sprintf("%s, %s, %s %s", b.Version, source, b.Go, b.Platform)
}
