package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// programs lists the programs of the product.
var programs = []string{"countersign", "countersign-hook"}

// built has the programs for one platform.
type built struct {
	platform
	files []string // paths of the programs, in the order of programs
}

// build builds the programs. The programs are static. The programs contain no paths of this machine and no debug
// tables, but a panic prints functions and lines.
func (r *release) build(targets []platform) error {
	for _, p := range targets {
		b := built{platform: p}
		for _, program := range programs {
			name := program
			if p.os == "windows" {
				name += ".exe"
			}
			file := filepath.Join(r.work, p.String(), name)
			linker := "-s -w"
			if r.given {
				linker += " -X countersign/cmd/countersign/cli.release=" + r.version
			}
			env := []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off"}
			if _, err := commandWith(r.dir, env, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", linker, "-o", file, "./cmd/"+program); err != nil {
				return err
			}
			b.files = append(b.files, file)
		}
		r.built = append(r.built, b)
	}
	return r.readModules()
}

// own returns a program that runs on this machine.
func (r *release) own(program int) (string, error) {
	for _, b := range r.built {
		if b.os == runtime.GOOS && b.arch == runtime.GOARCH {
			return b.files[program], nil
		}
	}
	return "", fmt.Errorf("no program was built for %s/%s, which makes the manual pages", runtime.GOOS, runtime.GOARCH)
}

// module is a Go module that is published.
type module struct{ path, version, sum, dir string }

// readModules reads the lists of modules from the programs, and stores the union of these lists in the release. The
// lists differ, because some modules are needed only on some platforms.
func (r *release) readModules() error {
	for _, b := range r.built {
		for _, file := range b.files {
			info, err := buildinfo.ReadFile(file)
			if err != nil {
				return err
			}
			for _, d := range info.Deps {
				if d.Replace != nil {
					d = d.Replace
				}
				if m := (module{path: d.Path, version: d.Version, sum: d.Sum}); !slices.Contains(r.modules, m) {
					r.modules = append(r.modules, m)
				}
			}
		}
	}
	slices.SortFunc(r.modules, func(a, b module) int { return strings.Compare(a.path, b.path) })
	return nil
}

// described has the manual pages and the completions for the packages. The program itself writes these texts.
type described struct {
	manual      []string // manual pages
	completions []string // completions for bash, zsh and fish
}

// describe runs the program to get its version, its manual pages and the completions for shells.
func (r *release) describe() error {
	for i, program := range programs {
		file, err := r.own(i)
		if err != nil {
			return err
		}
		if i == 0 {
			if err := r.askVersion(file); err != nil {
				return err
			}
			pages := filepath.Join(r.work, "man")
			if _, err := command("", file, "man", pages); err != nil {
				return err
			}
			if r.manual, err = filepath.Glob(filepath.Join(pages, "*.1")); err != nil {
				return err
			}
		}
		for shell, name := range map[string]string{"bash": program, "zsh": "_" + program, "fish": program + ".fish"} {
			script, err := command("", file, "completion", shell)
			if err != nil {
				return err
			}
			path := filepath.Join(r.work, "completions", shell, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(script+"\n"), 0o644); err != nil {
				return err
			}
			r.completions = append(r.completions, path)
		}
	}
	slices.Sort(r.completions)
	return nil
}

// askVersion runs the program with the argument version, and compares the printed version with the source.
func (r *release) askVersion(file string) error {
	said, err := command("", file, "version", "--json")
	if err != nil {
		return err
	}
	var v struct {
		Version, Commit string
		Changed         bool
	}
	if err := json.Unmarshal([]byte(said), &v); err != nil {
		return err
	}
	if r.version == "" {
		r.version = v.Version
	}
	if v.Version != r.version || v.Commit != r.commit || v.Changed {
		return fmt.Errorf("the program says %+v, and should be %s of %s", v, r.version, r.commit)
	}
	return nil
}

// name returns the name of a published file: countersign_1.2.3_WHAT.
func (r *release) name(what string) string {
	return filepath.Join(r.out, "countersign_"+strings.TrimPrefix(r.version, "v")+"_"+what)
}
