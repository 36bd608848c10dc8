// Command release makes all files that are published for one commit. These files are archives and packages with the
// programs, a container image, a Helm chart, a software bill of materials, and a list of checksums. The command needs
// git, Go, and network access for Go modules only. Two runs on the same commit write the same bytes.
//
// The command is a separate module, so that the product does not depend on the modules that only the release needs.
//
//	source.go    the commit that is released, and its version
//	build.go     the programs, for each platform
//	licences.go  the licences of the published modules
//	sbom.go      the bill of materials
//	deploy.go    the deployment files, and the Helm chart
//	archive.go   archives, and the checksums
//	packages.go  .deb and .rpm
//	image.go     the container image
//
// .ci/release runs this command.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	out := flag.String("out", "dist", "the folder for what is made; its content is replaced")
	version := flag.String("version", "", "the version, such as v1.2.3; without it, that of the commit's tag, or else Go's pseudo-version")
	short := flag.Bool("short", false, "only linux/amd64")
	flag.Parse()
	if err := run(*out, *version, *short); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// platform is an operating system and a processor.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

// platforms lists the platforms for which programs are published.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}}

// run makes a release of HEAD.
func run(out, version string, short bool) error {
	root, err := command("", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "countersign-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	s, err := checkOut(root, filepath.Join(work, "source"), version)
	if err != nil {
		return err
	}
	targets := platforms
	if short {
		targets = targets[:1]
	}
	r := &release{source: s, out: out, work: work}
	if err := r.build(targets); err != nil {
		return err
	}
	for _, step := range []func() error{r.describe, r.licences, r.deployment, r.archives, r.packages, r.chart, r.image, r.bill, r.checksums} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Println(strings.TrimPrefix(r.version, "v"), "of", r.commit, "is in", out)
	return nil
}

// release is the state of a release while it is made.
type release struct {
	source
	out      string // the folder for the published files
	work     string // the folder for all other files
	built    []built
	modules  []module // modules in the programs
	licensed []licensed
	deployed []entry // deployment files
	described
}
