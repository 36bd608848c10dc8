package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive or a package.
type entry struct {
	path string // path in the archive, with slashes
	from string // path of the file on this machine
	mode int64
}

// texts lists the licences, the pages and the deployment files, which are in every archive and package.
func (r *release) texts() []entry {
	all := []entry{
		{"LICENSE", filepath.Join(r.dir, "LICENSE"), 0o644},
		{"CHANGELOG.md", filepath.Join(r.dir, "CHANGELOG.md"), 0o644},
		{"README.md", filepath.Join(r.dir, "README.md"), 0o644},
		{"THIRD-PARTY-LICENSES.txt", r.notices(), 0o644},
	}
	for _, kind := range []string{"*.md", "*.png"} { // the program's messages refer to pages in docs
		pages, _ := filepath.Glob(filepath.Join(r.dir, "docs", kind)) // fails only if the pattern is wrong
		for _, page := range pages {
			all = append(all, entry{"docs/" + filepath.Base(page), page, 0o644})
		}
	}
	return append(all, r.deployed...)
}

// archives writes an archive for each platform. Windows gets a .zip, and the other platforms get a .tar.gz.
func (r *release) archives() error {
	for _, b := range r.built {
		all := r.texts()
		for _, file := range b.files {
			all = append(all, entry{filepath.Base(file), file, 0o755})
		}
		for _, page := range r.manual {
			all = append(all, entry{"man/" + filepath.Base(page), page, 0o644})
		}
		for _, script := range r.completions {
			all = append(all, entry{"completions/" + filepath.Base(filepath.Dir(script)) + "/" + filepath.Base(script), script, 0o644})
		}
		slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.path, b.path) })
		folder := filepath.Base(r.name(b.String()))
		write, name := tarred, r.name(b.String()+".tar.gz")
		if b.os == "windows" {
			write, name = zipped, r.name(b.String()+".zip")
		}
		var buf bytes.Buffer
		if err := write(&buf, folder, all, r.date); err != nil {
			return err
		}
		if err := os.WriteFile(name, buf.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// tarred writes files as .tar.gz. The same files always give the same bytes.
func tarred(out io.Writer, folder string, files []entry, at time.Time) error {
	zw := gzip.NewWriter(out) // without a name and a time
	tw := tar.NewWriter(zw)
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(folder, f.path), Mode: f.mode, Size: int64(len(content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := tw.Write(content); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return zw.Close()
}

// zipped writes files as .zip.
func zipped(out io.Writer, folder string, files []entry, at time.Time) error {
	zw := zip.NewWriter(out)
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: path.Join(folder, f.path), Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(f.mode)) //nolint:gosec // one of the modes above
		w, err := zw.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return zw.Close()
}

// checksums writes the SHA-256 of each published file, in the format that sha256sum --check reads.
func (r *release) checksums() error {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(content), f.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), list.Bytes(), 0o644)
}
