package postgres_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign/internal/testkit"
)

var (
	spinErrors = regexp.MustCompile(`errors: (\d+)`)
	spinStates = regexp.MustCompile(`(\d+) states, stored`)
)

// spin runs the model checker Spin, which searches all states of the model claims.pml until the first error. spin
// returns Spin's report. The flag optimize of the compiler is -O0 or -O1.
func spin(t *testing.T, optimize string, defines ...string) string {
	t.Helper()
	program := testkit.RequireProgram(t, "spin", "the model of claims", testkit.InstallSpin)
	compiler := testkit.RequireProgram(t, "cc", "the model of claims", "install a C compiler")
	model, err := filepath.Abs("claims.pml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	var flags []string
	for _, d := range defines {
		flags = append(flags, "-D"+d)
	}
	run(program, append(flags, "-a", model)...)
	run(compiler, optimize, "-w", "-DSAFETY", "-DMEMLIM=3000", "-o", "pan", "pan.c")
	report := run(filepath.Join(dir, "pan"), "-E", "-m1000000") // -E: a state in which a replica waits for ever is not an error
	if strings.Contains(report, "max search depth too small") {
		t.Fatalf("the search was cut short:\n%s", report)
	}
	return report
}

// TestModel checks that the protocol of claims, leases and fences is correct in every order of the steps of two or
// three replicas. The test also breaks the model of the protocol in several ways, and Spin must find each fault.
func TestModel(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	for name, c := range map[string]struct {
		defines []string
		broken  bool
		long    bool // the search takes about a minute
	}{
		"two replicas":                           {defines: []string{"REPLICAS=2", "OWNERS=3"}},
		"three replicas":                         {defines: []string{"REPLICAS=3"}, long: true},
		"two replicas, often":                    {defines: []string{"REPLICAS=2", "OWNERS=4"}, long: true},
		"transactions do not check the claim":    {defines: []string{"REPLICAS=2", "NOFENCE"}, broken: true},
		"others do not wait for the lease":       {defines: []string{"REPLICAS=2", "EAGER"}, broken: true},
		"a claim is given up while work goes on": {defines: []string{"REPLICAS=2", "RUDE"}, broken: true},
	} {
		if c.long && !testkit.CI() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			optimize := "-O1"
			if c.broken { // the search ends so soon that optimizing would take longer than the search
				optimize = "-O0"
			}
			report := spin(t, optimize, c.defines...)
			found, states := spinErrors.FindStringSubmatch(report), spinStates.FindStringSubmatch(report)
			if len(found) < 2 || len(states) < 2 {
				t.Fatalf("no result:\n%s", report)
			}
			complete := !strings.Contains(report, "Search not completed")
			if broken := found[1] != "0"; broken != c.broken || complete == c.broken {
				t.Errorf("an error was found: %v, want %v:\n%s", broken, c.broken, report)
			}
			t.Logf("%s states", states[1])
		})
	}
}

// TestModelSteps checks that the model has every step of the code.
func TestModelSteps(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]string{ // methods that are not steps of the protocol
		"Shares": "", "Changed": "", "Since": "", "Alive": "", "Now": "", "ClockOffset": "", "setClock": "", "start": "", "startable": "", "leased": "", "tell": "", "String": "", "connected": "", "disconnect": "", "portion": "",
		"keep": "calls round", "beatNow": "makes keep call round now", "round": "calls beat, adopt, giveUp and take", "forget": "loses all", "forgetConnections": "no claims", "Leave": "loses all, and gives up all",
	}
	text, err := os.ReadFile("claims.pml")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "replica.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil {
			continue
		}
		star, ok := f.Recv.List[0].Type.(*ast.StarExpr)
		if !ok || fmt.Sprint(star.X) != "Replica" {
			continue
		}
		if _, ok := elsewhere[f.Name.Name]; ok {
			continue
		}
		steps++
		if !regexp.MustCompile(`(inline |/\* )` + f.Name.Name + `\b`).Match(text) {
			t.Errorf("replica.go has the step %s, and claims.pml does not", f.Name.Name)
		}
	}
	if steps < 8 {
		t.Errorf("replica.go has only %d steps", steps)
	}
}
