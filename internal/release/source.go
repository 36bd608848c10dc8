package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// source is the commit that is released. The commit is in a separate clone, so that files that are not committed can't
// get into a release.
type source struct {
	dir     string
	commit  string
	date    time.Time // time of the commit; all published files have this time
	version string    // version with the prefix v
	given   bool      // the caller gave the version; false: the version comes from the repository
}

// semantic matches a semantic version that may be released.
var semantic = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// checkOut clones HEAD into a folder.
func checkOut(root, dir, version string) (source, error) {
	s := source{dir: dir, version: version, given: version != ""}
	head, err := command(root, "git", "rev-parse", "HEAD")
	if err != nil {
		return s, err
	}
	s.commit = head
	if _, err := command("", "git", "clone", "--quiet", "--no-checkout", root, dir); err != nil {
		return s, err
	}
	if _, err := command(dir, "git", "checkout", "--quiet", "--detach", head); err != nil {
		return s, err
	}
	at, err := command(dir, "git", "show", "--no-patch", "--format=%cI", head)
	if err != nil {
		return s, err
	}
	if s.date, err = time.Parse(time.RFC3339, at); err != nil {
		return s, err
	}
	s.date = s.date.UTC()
	if !s.given {
		if tag, err := command(dir, "git", "describe", "--tags", "--exact-match", head); err == nil {
			s.version = tag
		}
	}
	if s.version == "" {
		return s, nil // Go's pseudo-version, which the built program prints
	}
	return s, s.mayRelease()
}

// mayRelease checks that the version is valid, and that CHANGELOG.md has an entry for the version.
func (s source) mayRelease() error {
	if !semantic.MatchString(s.version) {
		return fmt.Errorf("%q is not a semantic version such as v1.2.3", s.version)
	}
	log, err := os.ReadFile(filepath.Join(s.dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	heading := "\n## " + strings.TrimPrefix(s.version, "v") + " - "
	if !bytes.Contains(log, []byte(heading)) {
		return fmt.Errorf("CHANGELOG.md has no release %s: write what is in it under %q", s.version, strings.TrimSpace(heading)+"DATE")
	}
	return nil
}

// command runs a program and returns its output without the line end.
func command(dir, name string, args ...string) (string, error) {
	return commandWith(dir, nil, name, args...)
}

func commandWith(dir string, env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var out, complaint bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaint
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, complaint.Bytes())
	}
	return strings.TrimSpace(out.String()), nil
}
