package main

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the format .deb
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // the format .rpm
)

// docFolder is the folder of the texts in a package. rpm removes a directory only if the directory belongs to the
// package, so the folder and its subfolders are part of the package.
const docFolder = "/usr/share/doc/countersign"

// packages writes the .deb and .rpm packages for Linux.
func (r *release) packages() error {
	for _, b := range r.built {
		if b.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(b, format); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *release) pack(b built, format string) error {
	deploy := filepath.Join(r.dir, deployFolder)
	var contents files.Contents
	own := func(dir string, mode os.FileMode) {
		contents = append(contents, &files.Content{Destination: dir, Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.date, Owner: "root", Group: "root"}})
	}
	add := func(from, to string, mode os.FileMode) {
		contents = append(contents, &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.date, Owner: "root", Group: "root"}})
	}
	for i, program := range programs {
		add(b.files[i], "/usr/bin/"+program, 0o755)
	}
	for _, page := range r.manual {
		add(page, "/usr/share/man/man1/"+filepath.Base(page), 0o644)
	}
	completions := map[string]string{"bash": "/usr/share/bash-completion/completions/", "zsh": "/usr/share/zsh/site-functions/", "fish": "/usr/share/fish/vendor_completions.d/"}
	for _, script := range r.completions {
		add(script, completions[filepath.Base(filepath.Dir(script))]+filepath.Base(script), 0o644)
	}
	dirs := map[string]bool{}
	for _, f := range r.texts() {
		file := docFolder + "/" + f.path
		add(f.from, file, 0o644)
		for dir := path.Dir(file); strings.HasPrefix(dir, docFolder); dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for dir := range dirs {
		own(dir, 0o755)
	}
	own("/etc/countersign", 0o755)
	own("/etc/countersign/credentials", 0o700)
	add(filepath.Join(deploy, "systemd/countersign.service"), "/usr/lib/systemd/system/countersign.service", 0o644)
	contents = append(contents, &files.Content{
		Source: filepath.Join(deploy, "systemd/environment"), Destination: "/etc/countersign/environment", Type: files.TypeConfigNoReplace,
		FileInfo: &files.ContentFileInfo{Mode: 0o644, MTime: r.date, Owner: "root", Group: "root"},
	})
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "countersign", Arch: b.arch, Platform: "linux", Version: r.version, VersionSchema: "semver", Section: "net", Priority: "optional",
		Maintainer: "The Countersign authors <countersign@localhost>", License: "Apache-2.0", MTime: r.date,
		Description: "A Slack bot whose AI agent's risky tool calls wait until the right people countersign them.",
		Overridables: nfpm.Overridables{
			Contents: contents,
			Scripts:  nfpm.Scripts{PostInstall: filepath.Join(deploy, "systemd/after-install.sh"), PreRemove: filepath.Join(deploy, "systemd/before-removal.sh")},
			RPM:      nfpm.RPM{BuildHost: "countersign"},
		},
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	if err := packager.Package(info, &buf); err != nil {
		return err
	}
	return os.WriteFile(r.name(b.String()+"."+format), buf.Bytes(), 0o644)
}
