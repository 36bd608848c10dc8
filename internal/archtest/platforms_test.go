package archtest

import (
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
			list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./cmd/...")
			list.Dir, list.Env = root(t), append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
			out, err := list.Output()
			if err != nil {
				t.Fatal(err)
			}
			checked := map[string]*types.Package{"unsafe": types.Unsafe}
			ours := 0
			for in := json.NewDecoder(strings.NewReader(string(out))); ; { // each package comes after its imports
				var p listed
				if err := in.Decode(&p); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
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
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
}

func (p listed) own() bool { return p.Module != nil && p.Module.Main }

// check type-checks a package. Only packages of this module are checked with the bodies of their functions.
func (p listed) check(arch string, checked map[string]*types.Package) (*types.Package, error) {
	files, set := []*ast.File{}, token.NewFileSet()
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
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
