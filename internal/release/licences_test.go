package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/licences.md")

const mit = `Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.
%s
THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`

const isc = `Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby
granted, provided that the above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.
`

// TestLicenceOf reads modules with one package, a/b.
func TestLicenceOf(t *testing.T) {
	free := fmt.Sprintf(mit, "")
	for name, c := range map[string]struct {
		files  map[string]string
		ids    string
		passed string // a text that must be passed on
		err    string
	}{
		"one licence":         {files: map[string]string{"LICENSE": free}, ids: "MIT", passed: "Somebody"},
		"copied code":         {files: map[string]string{"LICENSE": free, "a/COPYING.txt": isc}, ids: "ISC MIT", passed: "with or without fee"},
		"two in one file":     {files: map[string]string{"LICENSE": free + "\n" + isc}, ids: "ISC MIT"},
		"a notice":            {files: map[string]string{"LICENSE": free, "NOTICE": "Thanks to Nobody."}, ids: "MIT", passed: "Thanks to Nobody."},
		"not in the program":  {files: map[string]string{"LICENSE": free, "c/LICENSE": "All rights reserved."}, ids: "MIT"},
		"no licence":          {files: map[string]string{"README": free}, err: "no file with a licence"},
		"unknown":             {files: map[string]string{"LICENSE": "All rights reserved."}, err: "only 0 % of the words"},
		"unknown beside MIT":  {files: map[string]string{"LICENSE": free, "a/b/LICENSE": "All rights reserved."}, err: "only 0 % of the words"},
		"with a condition":    {files: map[string]string{"LICENSE": fmt.Sprintf(mit, "\nThe Software shall be used for Good, not Evil.\n")}, err: "JSON, which is not in the list"},
		"only a reference":    {files: map[string]string{"LICENSE": "https://opensource.org/licenses/MIT"}, err: "only 0 % of the words"},
		"more words than MIT": {files: map[string]string{"LICENSE": free + strings.Repeat("And pay us. ", 30)}, err: "of the words"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, folder := range []string{"a/b", "c"} {
				write(t, filepath.Join(dir, folder, "x.go"), "package x\n")
			}
			for path, text := range c.files {
				write(t, filepath.Join(dir, path), text)
			}
			l, err := licenceOf(module{path: "example.com/m", version: "v1.0.0", dir: dir}, []string{filepath.Join(dir, "a/b")})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			}
			if err != nil || strings.Join(l.ids, " ") != c.ids || !bytes.Contains(l.text, []byte(c.passed)) {
				t.Errorf("%s, %v:\n%s", l.ids, err, l.text)
			}
		})
	}
}

// listPage is the page with the licences.
const listPage = "../../docs/licences.md"

// TestLicences compares docs/licences.md with the licences of all modules that this source tree would publish. With
// -update, the test writes the page.
func TestLicences(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all, err := readLicences(root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(all, func(l licensed) bool { return l.path == "github.com/inconshreveable/mousetrap" }) {
		t.Error("a module that only the programs for Windows need is not listed")
	}
	var page strings.Builder
	page.WriteString(listIntroduction)
	for _, l := range all {
		fmt.Fprintf(&page, "| %s | %s |\n", l.path, strings.Join(l.ids, ", "))
	}
	if *update {
		if err := os.WriteFile(listPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(listPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != page.String() {
		t.Errorf("docs/licences.md is not up to date: read the licences that are new, and run go -C internal/release test -run Licences -update; want\n%s", page.String())
	}
}

var listIntroduction = `# Licences

Countersign is under [Apache-2.0](../LICENSE). Its programs for all platforms contain the Go modules in the table, and
the container image contains Mozilla's root certificates from ` + "`" + imageModule + "`" + `. ` + "`std`" + ` is Go's
standard library. A second licence of a module is that of code which the module copied.

Each archive, package and image has the whole texts of these licences in ` + "`THIRD-PARTY-LICENSES.txt`" + `, with the notices
that the licences require. The [bill of materials](upgrade.md#making-a-release) lists the versions.

A release, and this page's test, fail if a licence is not in the list ` + "`compatible`" + ` of ` + "`internal/release/licences.go`" + `.
The test writes this page: ` + "`go -C internal/release test -run Licences -update`" + `.

| module | licences |
| --- | --- |
`
