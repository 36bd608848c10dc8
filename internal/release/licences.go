package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// licensed is a module with its licences.
type licensed struct {
	module
	ids  []string // SPDX identifiers of the licences
	text []byte   // the full text of the licence files
}

// compatible lists the accepted licences of modules. An accepted licence must be compatible with Countersign's own
// licence, because the modules are in Countersign's programs.
var compatible = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "MPL-2.0", "Unlicense"}

// licenceFile matches the names of files that contain a licence. passedOn matches the names of other files that must be
// distributed together with the code, because a licence requires it.
var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([.-].*)?$`)
	passedOn    = regexp.MustCompile(`(?i)^(notice|patents)([.-].*)?$`)
)

// recognised is a percentage. At least this part of the words of a licence file must belong to known licences. The
// other words are copyright lines and headings.
const recognised = 75

// spdx returns the licences that a file contains.
func spdx(text []byte) ([]string, error) {
	cover := licensecheck.Scan(text)
	if cover.Percent < recognised {
		return nil, fmt.Errorf("only %.0f %% of the words belong to known licences", cover.Percent)
	}
	var ids []string
	for _, m := range cover.Match {
		if !m.IsURL && !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids, nil
}

// imageModule has the root certificates in the container image.
const imageModule = "golang.org/x/crypto/x509roots/fallback"

// readLicences finds the licences of all modules that are published from a source tree. The published modules are the
// modules in the programs, the module with the image's root certificates, and Go's standard library. The modules of all
// platforms count. A module without a known, compatible licence is an error.
func readLicences(source string) ([]licensed, error) {
	dirs := map[module][]string{} // the folders of a module's packages
	for _, p := range platforms {
		if err := linked(source, p, dirs, "./cmd/countersign", "./cmd/countersign-hook"); err != nil {
			return nil, err
		}
	}
	if err := linked(filepath.Join(source, "internal/release"), platforms[0], dirs, imageModule+"/bundle"); err != nil {
		return nil, err
	}
	standard, err := command(source, "go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	goroot, version, _ := strings.Cut(standard, "\n")
	dirs[module{path: "std", version: strings.TrimPrefix(version, "go"), dir: goroot}] = []string{goroot}

	var all []licensed
	for m, packages := range dirs {
		l, err := licenceOf(m, packages)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b licensed) int { return strings.Compare(a.path, b.path) })
	return all, nil
}

// linked adds to dirs the folders of all packages that the named packages import on a platform.
func linked(source string, p platform, dirs map[module][]string, packages ...string) error {
	env := []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOFLAGS=", "GOWORK=off"}
	listed, err := commandWith(source, env, "go", append([]string{"list", "-deps", "-json=Dir,Module"}, packages...)...)
	if err != nil {
		return err
	}
	for d := json.NewDecoder(strings.NewReader(listed)); d.More(); {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := d.Decode(&p); err != nil {
			return err
		}
		if p.Module == nil || p.Module.Main {
			continue // a package of the standard library, or our own package
		}
		m := module{path: p.Module.Path, version: p.Module.Version, dir: p.Module.Dir}
		if !slices.Contains(dirs[m], p.Dir) {
			dirs[m] = append(dirs[m], p.Dir)
		}
	}
	return nil
}

// licenceOf reads the licence files of a module. licenceOf searches the folders of the module's packages, and all
// folders above them up to the module's root. A folder with copied code often has its own licence.
func licenceOf(m module, packages []string) (licensed, error) {
	l := licensed{module: m}
	folders := []string{m.dir}
	for _, dir := range packages {
		for ; dir != m.dir && strings.HasPrefix(dir, m.dir); dir = filepath.Dir(dir) {
			if !slices.Contains(folders, dir) {
				folders = append(folders, dir)
			}
		}
	}
	slices.Sort(folders)
	var texts [][]byte
	for _, dir := range folders {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return l, fmt.Errorf("%s: %w", m.path, err)
		}
		for _, e := range entries {
			isLicence := licenceFile.MatchString(e.Name())
			if !e.Type().IsRegular() || strings.HasSuffix(e.Name(), ".go") || !isLicence && !passedOn.MatchString(e.Name()) {
				continue
			}
			content, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return l, err
			}
			content = bytes.TrimSpace(content)
			if slices.ContainsFunc(texts, func(t []byte) bool { return bytes.Equal(t, content) }) {
				continue
			}
			texts = append(texts, content)
			if !isLicence {
				continue
			}
			ids, err := spdx(content)
			if err != nil {
				return l, fmt.Errorf("%s %s: %s: %w", m.path, m.version, filepath.Join(dir, e.Name()), err)
			}
			l.ids = append(l.ids, ids...)
		}
	}
	l.text = bytes.Join(texts, []byte("\n\n"))
	slices.Sort(l.ids)
	l.ids = slices.Compact(l.ids)
	if len(l.ids) == 0 {
		return l, fmt.Errorf("%s %s has no file with a licence", m.path, m.version)
	}
	for _, id := range l.ids {
		if !slices.Contains(compatible, id) {
			return l, fmt.Errorf("%s %s is under %s, which is not in the list of compatible licences", m.path, m.version, id)
		}
	}
	return l, nil
}

// notices returns the path of the file with the licences of all modules in the programs.
func (r *release) notices() string { return filepath.Join(r.work, "THIRD-PARTY-LICENSES.txt") }

// licences writes the licences of all modules into one file. For the bill of materials, licences keeps the modules with
// their licences and hashes.
func (r *release) licences() error {
	all, err := readLicences(r.dir)
	if err != nil {
		return err
	}
	for _, m := range r.modules {
		i := slices.IndexFunc(all, func(l licensed) bool { return l.path == m.path && l.version == m.version })
		if i < 0 {
			return fmt.Errorf("%s %s is in the programs, and its licence was not read", m.path, m.version)
		}
		all[i].sum = m.sum
	}
	var text bytes.Buffer
	fmt.Fprintln(&text, "Countersign's programs and its container image contain these Go modules.")
	for _, l := range all {
		fmt.Fprintf(&text, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("=", 80), l.path, l.version, strings.Join(l.ids, ", "), l.text)
	}
	r.licensed = all
	return os.WriteFile(r.notices(), text.Bytes(), 0o644)
}
