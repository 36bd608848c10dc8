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
)

// licensed is a module with its licences.
type licensed struct {
	module
	ids  []string // SPDX
	text []byte   // the files, whole
}

// licenceFile matches the names of files that contain a licence, or a notice that a licence requires to be passed on.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licenceTexts recognises each licence by sentences that occur only in that licence. The order matters, because the
// first match in a file counts.
var licenceTexts = []struct {
	id       string
	contains []string
}{
	{"Apache-2.0", []string{"Apache License", "Version 2.0"}},
	{"MPL-2.0", []string{"Mozilla Public License", "2.0"}},
	{"BSD-3-Clause", []string{"Redistribution and use in source and binary forms", "endorse or promote products"}},
	{"BSD-2-Clause", []string{"Redistribution and use in source and binary forms"}},
	{"ISC", []string{"Permission to use, copy, modify, and/or distribute this software"}},
	{"ISC", []string{"Permission to use, copy, modify, and distribute this software"}},
	{"MIT", []string{"Permission is hereby granted, free of charge"}},
	{"CC0-1.0", []string{"CC0 1.0 Universal"}},
	{"Unlicense", []string{"This is free and unencumbered software released into the public domain"}},
}

// compatible lists the accepted licences of modules. These licences must be compatible with Countersign's own licence,
// because the modules are in its programs.
var compatible = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MPL-2.0", "Unlicense"}

// spdx returns the licence of a file; "" if it is not recognised.
func spdx(text []byte) string {
	plain := strings.Join(strings.Fields(string(text)), " ")
	for _, l := range licenceTexts {
		if !slices.ContainsFunc(l.contains, func(s string) bool { return !strings.Contains(plain, s) }) {
			return l.id
		}
	}
	return ""
}

// readLicences finds the licences of the modules in Go's module cache. A module without a known, compatible licence is
// an error.
func (r *release) readLicences() ([]licensed, error) {
	all := []licensed{}
	args := []string{"mod", "download", "-json"}
	for _, m := range r.modules {
		args = append(args, m.path+"@"+m.version)
	}
	listed, err := command(r.dir, "go", args...)
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(listed)); d.More(); {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		dirs[m.Path] = m.Dir
	}
	for _, m := range r.modules {
		l, err := licenceOf(m, dirs[m.path])
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	goroot, err := command("", "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	version, err := command("", "go", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	std, err := licenceOf(module{path: "std", version: strings.TrimPrefix(version, "go")}, goroot)
	return append(all, std), err
}

func licenceOf(m module, dir string) (licensed, error) {
	l := licensed{module: m}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return l, fmt.Errorf("%s: %w", m.path, err)
	}
	var text bytes.Buffer
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return l, err
		}
		if id := spdx(content); id != "" && !slices.Contains(l.ids, id) {
			l.ids = append(l.ids, id)
		}
		fmt.Fprintf(&text, "%s\n\n", bytes.TrimSpace(content))
	}
	l.text = text.Bytes()
	slices.Sort(l.ids)
	if len(l.ids) == 0 {
		return l, fmt.Errorf("%s %s has no licence that is known here: read it, and add it to licenceTexts", m.path, m.version)
	}
	for _, id := range l.ids {
		if !slices.Contains(compatible, id) {
			return l, fmt.Errorf("%s %s is under %s, which is not in the list of compatible licences", m.path, m.version, id)
		}
	}
	return l, nil
}

// notices is the file with the licences of all modules in the programs.
func (r *release) notices() string { return filepath.Join(r.work, "THIRD-PARTY-LICENSES.txt") }

// licences writes the licences of all modules into one file.
func (r *release) licences() error {
	all, err := r.readLicences()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	fmt.Fprintln(&text, "Countersign's programs contain these Go modules.")
	for _, l := range all {
		fmt.Fprintf(&text, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("=", 80), l.path, l.version, strings.Join(l.ids, ", "), bytes.TrimSpace(l.text))
	}
	r.licensed = all
	return os.WriteFile(r.notices(), text.Bytes(), 0o644)
}
