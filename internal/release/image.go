package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Paths in the image.
const (
	imageProgram = "/usr/bin/countersign"
	imageRoots   = "/etc/ssl/certs/ca-certificates.crt"
	imageState   = "/var/lib/countersign"
	imageUser    = "65532:65532" // not root; the number is that of "nonroot" in other images from scratch
)

// image writes the container image for Linux as an OCI layout in a .tar file. podman, docker, skopeo and crane can read
// this file. The image has no base image. The image has only the program, Mozilla's root certificates, the licences,
// the files for the image's user and group, and the directories that the program needs. The time zones are part of the
// program.
func (r *release) image() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range r.built {
		if b.os != "linux" {
			continue
		}
		img, err := r.imageFor(b)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: b.arch}}})
	}
	// The layout names one image, which is an index of the platforms. Therefore tools choose the platform
	// automatically.
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": "countersign:" + strings.TrimPrefix(r.version, "v")}},
	})
	dir := filepath.Join(r.work, "image")
	if _, err := layout.Write(dir, named); err != nil {
		return err
	}
	return r.tarLayout(dir)
}

func (r *release) imageFor(b built) (v1.Image, error) {
	files, err := r.root(b)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.date}, CreatedBy: "countersign release"}})
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(img, r.config(b, img))
}

// config returns the image's configuration.
func (r *release) config(b built, img v1.Image) *v1.ConfigFile {
	c, err := img.ConfigFile()
	if err != nil {
		panic(err) // impossible, because the image was made in memory
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = "linux", b.arch, v1.Time{Time: r.date}
	c.Config = v1.Config{
		User: imageUser, WorkingDir: imageState, Entrypoint: []string{imageProgram}, Cmd: []string{"serve"},
		Env: []string{
			"PATH=/usr/bin", "HOME=" + imageState, "SSL_CERT_FILE=" + imageRoots,
			"COUNTERSIGN_POLICY=/etc/countersign/countersign.yaml", "COUNTERSIGN_LOG_FORMAT=json",
		},
		Volumes: map[string]struct{}{imageState: {}},
		Labels: map[string]string{
			"org.opencontainers.image.title": "Countersign", "org.opencontainers.image.version": strings.TrimPrefix(r.version, "v"),
			"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.created": r.date.Format("2006-01-02T15:04:05Z"),
		},
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", imageProgram, "health"}, Interval: 30e9, Timeout: 15e9, StartPeriod: 60e9, Retries: 3},
	}
	return c
}

// root returns the files of the image as a .tar file.
func (r *release) root(b built) ([]byte, error) {
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	add := func(h tar.Header, content []byte) error {
		h.ModTime, h.Format, h.Size = r.date, tar.FormatUSTAR, int64(len(content))
		if err := tw.WriteHeader(&h); err != nil {
			return err
		}
		_, err := tw.Write(content)
		return err
	}
	for _, dir := range strings.Fields("etc etc/countersign etc/ssl etc/ssl/certs tmp usr usr/bin usr/share usr/share/doc usr/share/doc/countersign var var/lib") {
		mode := int64(0o755)
		if dir == "tmp" {
			mode = 0o1777
		}
		if err := add(tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: mode}, nil); err != nil {
			return nil, err
		}
	}
	if err := add(tar.Header{Typeflag: tar.TypeDir, Name: imageState[1:] + "/", Mode: 0o700, Uid: 65532, Gid: 65532}, nil); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(b.files[0])
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(r.dir, "LICENSE"))
	if err != nil {
		return nil, err
	}
	notices, err := os.ReadFile(r.notices())
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		path    string
		mode    int64
		content []byte
	}{
		{imageProgram, 0o755, program},
		{imageRoots, 0o644, roots()},
		{"/etc/passwd", 0o644, []byte("countersign:x:65532:65532::" + imageState + ":/sbin/nologin\n")},
		{"/etc/group", 0o644, []byte("countersign:x:65532:\n")},
		{"/usr/share/doc/countersign/LICENSE", 0o644, licence},
		{"/usr/share/doc/countersign/THIRD-PARTY-LICENSES.txt", 0o644, notices},
	} {
		if err := add(tar.Header{Typeflag: tar.TypeReg, Name: f.path[1:], Mode: f.mode}, f.content); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), tw.Close()
}

// roots returns Mozilla's root certificates as PEM. The certificates come from a module of the Go project. Some roots
// are trusted only under conditions. roots leaves them out, because a PEM file can't express conditions.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writing to memory does not fail
	}
	return out.Bytes()
}

// tarLayout writes the folder of an OCI layout as a .tar file.
func (r *release) tarLayout(dir string) error {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(paths)
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(rel), Mode: 0o644, Size: int64(len(content)), ModTime: r.date, Format: tar.FormatUSTAR}
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
	return os.WriteFile(r.name("oci.tar"), out.Bytes(), 0o644)
}
