package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/testkit"
)

// TestOtherPlatforms type-checks the programs for macOS and Windows, with all packages that they import. This takes a
// few seconds. A build for another platform takes minutes, because the cache has none of its packages.
func TestOtherPlatforms(t *testing.T) {
	testkit.SkipIfShort(t)
	if !testkit.CI() {
		t.Skip("with CI=true only, because it takes eight seconds of processor time")
	}
	for _, platform := range []string{"darwin/arm64", "windows/amd64"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			system, arch, _ := strings.Cut(platform, "/")
			checked := map[string]*types.Package{"unsafe": types.Unsafe}
			ours := 0
			env := []string{"GOOS=" + system, "GOARCH=" + arch, "CGO_ENABLED=0"}
			var err error
			for _, p := range goList(t, env, "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./cmd/...") { // each package comes after its imports
				if p.ImportPath == "unsafe" {
					continue
				}
				if p.own() {
					ours++
				}
				if checked[p.ImportPath], err = p.check(arch, checked); err != nil {
					t.Fatalf("%s: %v", p.ImportPath, err)
				}
			}
			if ours < 50 {
				t.Errorf("only %d packages of this module were checked", ours)
			}
		})
	}
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	ImportMap               map[string]string
	Module                  *struct{ Main bool }
}

// goList runs go list with additional variables in its environment.
func goList(t *testing.T, env []string, args ...string) (packages []listed) {
	t.Helper()
	list := exec.Command("go", append([]string{"list"}, args...)...)
	list.Dir, list.Env, list.Stderr = root(t), append(os.Environ(), env...), os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

func (p listed) own() bool { return p.Module != nil && p.Module.Main }

// parse parses the package's files.
func (p listed) parse(set *token.FileSet) (files []*ast.File, err error) {
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// check type-checks a package. Only packages of this module are checked with the bodies of their functions.
func (p listed) check(arch string, checked map[string]*types.Package) (*types.Package, error) {
	set := token.NewFileSet()
	files, err := p.parse(set)
	if err != nil {
		return nil, err
	}
	c := types.Config{IgnoreFuncBodies: !p.own(), Sizes: types.SizesFor("gc", arch), Importer: importer(func(path string) (*types.Package, error) {
		if real, ok := p.ImportMap[path]; ok {
			path = real
		}
		if pkg := checked[path]; pkg != nil {
			return pkg, nil
		}
		return nil, errors.New(path + " was not checked")
	})}
	return c.Check(p.ImportPath, set, files, nil)
}

type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }
