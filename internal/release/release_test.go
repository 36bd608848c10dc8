package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// scratch is a folder that all tests share. scratch is removed at the end.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "countersign-released-")
	if err != nil {
		panic(err)
	}
	scratch = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// released makes a release of HEAD for linux/amd64 only, once for all tests.
var released = sync.OnceValues(func() (string, error) {
	out := filepath.Join(scratch, "first")
	return out, run(out, "", true)
})

// published returns the folder of the release.
func published(t *testing.T) string {
	t.Helper()
	dir, err := released()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// one returns the published file whose name has a suffix.
func one(t *testing.T, end string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(published(t), "*"+end))
	if err != nil || len(found) != 1 {
		t.Fatalf("there are %d files *%s, %v", len(found), end, err)
	}
	return found[0]
}

// TestReproducible makes the release a second time, from another clone. Each file must have the same bytes in both
// releases. The test also checks the list of checksums. With COUNTERSIGN_COLD_CACHE=1, the second release compiles
// everything again.
func TestReproducible(t *testing.T) {
	first, second := published(t), filepath.Join(scratch, "second")
	if os.Getenv("COUNTERSIGN_COLD_CACHE") == "1" {
		t.Setenv("GOCACHE", t.TempDir())
	}
	if err := run(second, "", true); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(first)
	if err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadDir(second)
	if err != nil || len(again) != len(files) || len(files) < 6 {
		t.Fatalf("%d files, and then %d, %v", len(files), len(again), err)
	}
	sums, err := os.ReadFile(filepath.Join(first, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		a, err := os.ReadFile(filepath.Join(first, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(second, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs: %d and %d bytes", f.Name(), len(a), len(b))
		}
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(a), f.Name()); f.Name() != "SHA256SUMS" && !strings.Contains(string(sums), line) {
			t.Errorf("SHA256SUMS lacks %s", line)
		}
	}
}

// The software bill of materials fits the schema of its format. The bill lists modules of the programs and of the image
// with a version and a licence, and no module that only tests use.
func TestBill(t *testing.T) {
	content, err := os.ReadFile(one(t, "sbom.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if err := schemaOfBills(t).Validate(value); err != nil {
		t.Error(err)
	}
	bom := new(cyclonedx.BOM)
	if err := json.Unmarshal(content, bom); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, c := range *bom.Components {
		listed[c.Name] = c.Version != "" && c.Licenses != nil && len(*c.Licenses) > 0
	}
	for _, path := range []string{"github.com/slack-go/slack", "go.etcd.io/bbolt", "github.com/jackc/pgx/v5", "std", imageModule} {
		if !listed[path] {
			t.Errorf("%s is not listed with a version and a licence", path)
		}
	}
	if listed["pgregory.net/rapid"] {
		t.Error("a module that only tests use is listed")
	}
}

// schemaOfBills returns the JSON Schema of CycloneDX 1.6. The module that writes the bill contains the schema.
func schemaOfBills(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := command("", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")
	if err != nil {
		t.Fatal(err)
	}
	const base = "http://cyclonedx.org/schema/"
	c := jsonschema.NewCompiler()
	for name, file := range map[string]string{"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json"} {
		f, err := os.Open(filepath.Join(dir, "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(base+name, doc); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile(base + "bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// A version must be a semantic version, and CHANGELOG.md must have an entry for the version.
func TestVersion(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte("# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-11-26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for version, ok := range map[string]bool{"v0.1.0": true, "v0.2.0": false, "0.1.0": false, "v0.1": false, "latest": false} {
		if err := (source{dir: dir, version: version}).mayRelease(); (err == nil) != ok {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// unpackDeb unpacks the .deb into a folder.
func unpackDeb(t *testing.T) string {
	t.Helper()
	need(t, "dpkg-deb")
	root := filepath.Join(t.TempDir(), "root")
	if out, err := exec.Command("dpkg-deb", "-x", one(t, ".deb"), root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return root
}

// need skips the test on a machine that lacks a program. With CI=true, need fails the test instead.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing", program)
	}
	t.Skipf("not tried without %s", program)
}

// mostExposed is the largest allowed exposure level of the unit. systemd-analyze security computes the exposure level,
// from 0 to 10.
const mostExposed = 1.5

// TestUnit runs systemd-analyze on the unit in the unpacked package. The test adds the parts of a system that the unit
// needs.
func TestUnit(t *testing.T) {
	need(t, "systemd-analyze")
	root := unpackDeb(t)
	for _, unit := range []string{"sysinit.target", "shutdown.target", "basic.target", "network-online.target", "multi-user.target", "system.slice", "-.slice"} {
		write(t, filepath.Join(root, "usr/lib/systemd/system", unit), "[Unit]\nDescription="+unit+"\n")
	}
	write(t, filepath.Join(root, "bin/kill"), "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(root, "bin/kill"), 0o755); err != nil {
		t.Fatal(err)
	}
	verify := exec.Command("systemd-analyze", "verify", "--man=no", "--root="+root, "/usr/lib/systemd/system/countersign.service")
	if out, err := verify.CombinedOutput(); err != nil || strings.Contains(string(out), "countersign.service:") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", filepath.Join(root, "usr/lib/systemd/system/countersign.service")).CombinedOutput()
	m := regexp.MustCompile(`Overall exposure level for countersign.service: ([0-9.]+)`).FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var exposed float64
	if _, err := fmt.Sscan(string(m[1]), &exposed); err != nil || exposed > mostExposed {
		t.Errorf("the exposure is %s (%v), more than %g:\n%s", m[1], err, mostExposed, out)
	}
	t.Logf("exposure %s of 10", m[1])
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestContents looks for files in the unpacked package and in the unpacked archive. Both have the pages of the
// documentation, because the program's messages refer to these pages. Both have all files to which docs/deploy.md
// refers, and all files that the Compose file mounts.
func TestContents(t *testing.T) {
	page, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	compose, err := os.ReadFile("../../cmd/countersign/deploy/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	both := []string{
		"LICENSE", "THIRD-PARTY-LICENSES.txt", "README.md", "docs/postgres.md", "docs/operate.md", "docs/card.png",
		"deploy/countersign.yaml", "deploy/prometheus/alerts.yaml", "deploy/grafana/countersign.json", "deploy/compose/compose.yaml",
		"deploy/systemd/countersign.service", "deploy/systemd/environment", "deploy/helm/countersign/values.schema.json",
	}
	for _, m := range regexp.MustCompile(`\bDEPLOY/([a-z][a-z./]*[a-z])`).FindAllSubmatch(page, -1) {
		both = append(both, "deploy/"+string(m[1]))
	}
	for _, m := range regexp.MustCompile(`- (\.\.?/\S+):/etc/(?:prometheus|grafana)/`).FindAllSubmatch(compose, -1) {
		both = append(both, filepath.Join("deploy/compose", string(m[1])))
	}
	if len(both) < 20 {
		t.Errorf("docs/deploy.md and the Compose file name too few files: %q", both)
	}
	deb, archive := unpackDeb(t), t.TempDir()
	untar(t, one(t, "_linux_amd64.tar.gz"), archive)
	top, err := filepath.Glob(filepath.Join(archive, "countersign_*"))
	if err != nil || len(top) != 1 {
		t.Fatal(top, err)
	}
	for root, files := range map[string][]string{
		top[0]: {
			"countersign", "countersign-hook", "man/countersign.1", "man/countersign-serve.1",
			"completions/bash/countersign", "completions/zsh/_countersign", "completions/fish/countersign-hook.fish",
		},
		filepath.Join(deb, "usr/share/doc/countersign"): {
			"../../../bin/countersign", "../../../bin/countersign-hook", "../../man/man1/countersign.1", "../../man/man1/countersign-serve.1",
			"../../bash-completion/completions/countersign", "../../zsh/site-functions/_countersign", "../../fish/vendor_completions.d/countersign-hook.fish",
			"../../../lib/systemd/system/countersign.service", "../../../../etc/countersign/environment",
		},
	} {
		for _, file := range slices.Concat(both, files) {
			if info, err := os.Stat(filepath.Join(root, file)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// The archive for Windows has each file with its path, mode, time and content, and the same files give the same bytes.
func TestZip(t *testing.T) {
	dir, at := t.TempDir(), time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	files := []entry{{"countersign.exe", filepath.Join(dir, "program"), 0o755}, {"docs/operate.md", filepath.Join(dir, "page"), 0o644}}
	var first, second bytes.Buffer
	for _, f := range files {
		write(t, f.from, "content of "+f.path)
	}
	if err := errors.Join(zipped(&first, "top", files, at), zipped(&second, "top", files, at)); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Fatalf("%d and %d bytes, %v", first.Len(), second.Len(), err)
	}
	z, err := zip.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()))
	if err != nil || len(z.File) != len(files) {
		t.Fatalf("%+v, %v", z, err)
	}
	for i, f := range files {
		got := z.File[i]
		content, err := fs.ReadFile(z, got.Name)
		if err != nil || string(content) != "content of "+f.path || got.Name != "top/"+f.path || got.Mode() != fs.FileMode(f.mode) || !got.Modified.Equal(at) { //nolint:gosec // one of the modes above
			t.Errorf("%+v has %q, %v", got.FileHeader, content, err)
		}
	}
}

// The published chart and its image have the version of the release. The chart in the package is the same.
func TestChart(t *testing.T) {
	dir := t.TempDir()
	untar(t, one(t, "_chart.tgz"), dir)
	version := regexp.MustCompile(`countersign_(.*)_chart.tgz`).FindStringSubmatch(one(t, "_chart.tgz"))[1]
	text, err := os.ReadFile(filepath.Join(dir, "countersign/Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\nversion: "+version+"\nappVersion: "+version+"\n") {
		t.Errorf("Chart.yaml of the release %s is\n%s", version, text)
	}
	packed, err := os.ReadFile(filepath.Join(unpackDeb(t), "usr/share/doc/countersign", chartFolder, "Chart.yaml"))
	if err != nil || !bytes.Equal(packed, text) {
		t.Errorf("Chart.yaml of the package is\n%s\n%v", packed, err)
	}
	for _, file := range []string{"values.yaml", "values.schema.json", "templates/_helpers.tpl", "templates/workload.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, "countersign", file)); err != nil {
			t.Error(err)
		}
	}
}

// If Chart.yaml has other versions than those that the release replaces, the release fails.
func TestChartWithVersion(t *testing.T) {
	r := &release{source: source{dir: t.TempDir(), version: "v0.2.0"}, work: t.TempDir()}
	write(t, filepath.Join(r.dir, deployFolder, "helm/countersign/Chart.yaml"), "name: countersign\nversion: 0.1.0\nappVersion: 0.0.0\n")
	if path, err := r.stampChart(); err == nil {
		t.Errorf("the release wrote %s", path)
	}
}

// packed is a file or directory of a package.
type packed struct{ mode, owner, sum string }

// inDeb returns the content of the .deb by path.
func inDeb(t *testing.T) map[string]packed {
	t.Helper()
	need(t, "dpkg-deb")
	content, err := exec.Command("dpkg-deb", "--fsys-tarfile", one(t, ".deb")).Output()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]packed{}
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		p := packed{mode: h.FileInfo().Mode().String(), owner: h.Uname + "/" + h.Gname}
		if h.Typeflag == tar.TypeReg {
			sum := sha256.New()
			if _, err := io.Copy(sum, r); err != nil {
				t.Fatal(err)
			}
			p.sum = fmt.Sprintf("%x", sum.Sum(nil))
		}
		out[filepath.Clean("/"+h.Name)] = p
	}
}

// TestRPM compares the .rpm with the .deb. Both have the same files, with the same content, owner and mode, and the same
// scripts. The directories that only this package uses belong to it, so that rpm removes them.
func TestRPM(t *testing.T) {
	need(t, "rpm")
	query := func(format string) string {
		out, err := exec.Command("rpm", "--query", "--package", one(t, ".rpm"), "--queryformat", format).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	rpm, deb := map[string]packed{}, inDeb(t)
	for line := range strings.Lines(query(`[%{FILENAMES}|%{FILEMODES:perms}|%{FILEUSERNAME}/%{FILEGROUPNAME}|%{FILEDIGESTS}\n]`)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		rpm[f[0]] = packed{f[1], f[2], f[3]}
		if deb[f[0]] != rpm[f[0]] {
			t.Errorf("%s is %v in the .rpm, and %v in the .deb", f[0], rpm[f[0]], deb[f[0]])
		}
	}
	for path, p := range deb {
		if _, ok := rpm[path]; !ok && (p.sum != "" || strings.Contains(path, "/countersign")) {
			t.Errorf("the .rpm lacks %s", path)
		}
	}
	if configs := query(`[%{FILENAMES} %{FILEFLAGS:fflags}\n]`); !strings.Contains(configs, "/etc/countersign/environment cn\n") {
		t.Errorf("an update would replace the settings:\n%s", configs)
	}
	for tag, file := range map[string]string{"POSTIN": "after-install.sh", "PREUN": "before-removal.sh"} {
		script, err := os.ReadFile(filepath.Join("../..", deployFolder, "systemd", file))
		if err != nil {
			t.Fatal(err)
		}
		if got := query("%{" + tag + "}"); strings.TrimSpace(got) != strings.TrimSpace(string(script)) {
			t.Errorf("%s is\n%s", tag, got)
		}
	}
}

// TestImage checks the image's layout, its settings, and its root certificates.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	untar(t, one(t, "oci.tar"), filepath.Join(dir, "layout"))
	var index v1.ImageIndex
	index, err := layout.ImageIndexFromPath(filepath.Join(dir, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	named, err := index.IndexManifest()
	if err != nil || len(named.Manifests) != 1 || !strings.HasPrefix(named.Manifests[0].Annotations["org.opencontainers.image.ref.name"], "countersign:") {
		t.Fatalf("%+v, %v", named, err)
	}
	if index, err = index.ImageIndex(named.Manifests[0].Digest); err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil || len(m.Manifests) != 1 || m.Manifests[0].Platform.Architecture != "amd64" {
		t.Fatalf("%+v, %v", m, err)
	}
	img, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.Config.User != imageUser || strings.Join(c.Config.Healthcheck.Test, " ") != "CMD /usr/bin/countersign health" {
		t.Errorf("%+v", c.Config)
	}
	root := filepath.Join(dir, "root")
	unpackImage(t, img, root)
	pem, err := os.ReadFile(filepath.Join(root, imageRoots))
	if err != nil {
		t.Fatal(err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) || bytes.Count(pem, []byte("BEGIN CERTIFICATE")) < 100 {
		t.Error("there are no root certificates")
	}
	// The bot refuses to start if both the variable and the file of a setting are given.
	for _, deployment := range []string{"compose/compose.yaml", "helm/countersign/templates/_helpers.tpl"} {
		text, err := os.ReadFile(filepath.Join("../../cmd/countersign/deploy", deployment))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\b([A-Z_]+)_FILE\b`).FindAllStringSubmatch(string(text), -1) {
			if slices.ContainsFunc(c.Config.Env, func(set string) bool { return strings.HasPrefix(set, m[1]+"=") }) {
				t.Errorf("the image sets %s, and %s sets %s", m[1], deployment, m[0])
			}
		}
	}
}

func unpackImage(t *testing.T, img v1.Image, root string) {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatal(len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	extract(t, tar.NewReader(content), root)
}

func untar(t *testing.T, file, dir string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if strings.HasSuffix(file, "gz") {
		unzipped, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		extract(t, tar.NewReader(unzipped), dir)
		return
	}
	extract(t, tar.NewReader(f), dir)
}

func extract(t *testing.T, r *tar.Reader, dir string) {
	t.Helper()
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			content, readErr := io.ReadAll(r)
			if readErr != nil {
				t.Fatal(readErr)
			}
			write(t, path, string(content))
			err = os.Chmod(path, os.FileMode(h.Mode)) //nolint:gosec // a mode of the release
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// started is a running program.
type started struct {
	t     *testing.T
	said  chan string
	all   []string
	ended chan error
}

// patience is how long a test waits for an expected event. This time is long, because the machine may be busy.
const patience = time.Minute

func start(t *testing.T, cmd *exec.Cmd) *started {
	t.Helper()
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &started{t: t, said: make(chan string, 1000), ended: make(chan error, 1)}
	go func() {
		err := cmd.Wait()
		w.Close()
		s.ended <- err
	}()
	go func() {
		defer close(s.said)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			s.said <- lines.Text()
		}
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // an error is fine, because the process may have ended
	return s
}

// says waits for a line that matches a regular expression, and returns the first group of the match. The function also
// checks earlier lines.
func (s *started) says(pattern string) string {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	for _, line := range s.all {
		if m := re.FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	for end := time.After(patience); ; {
		select {
		case line, more := <-s.said:
			if !more {
				s.t.Fatalf("it ended before it said %s:\n%s", pattern, strings.Join(s.all, "\n"))
			}
			s.all = append(s.all, line)
			if m := re.FindStringSubmatch(line); m != nil {
				return m[1]
			}
		case <-end:
			s.t.Fatalf("it does not say %s:\n%s", pattern, strings.Join(s.all, "\n"))
		}
	}
}
