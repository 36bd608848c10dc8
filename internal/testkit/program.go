package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// RequireProgram returns the path of a program that a test needs. If the program is missing, the test fails in CI (the
// variable CI is set). Elsewhere, the test is skipped, and one line says what was not tested and how to install the
// program.
func RequireProgram(t testing.TB, program, untried, install string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	missing(t, untried, fmt.Sprintf("%s is missing", program), install)
	return ""
}

// CI reports whether the tests run in CI. In CI, no test may be skipped.
func CI() bool { return os.Getenv("CI") != "" }

// The function "missing" fails the test in CI, and skips the test elsewhere.
func missing(t testing.TB, untried, why, remedy string) {
	t.Helper()
	if CI() {
		t.Fatalf("%s: %s", why, remedy)
	}
	t.Skipf("SKIPPED: %s not tried, because %s: %s", untried, why, remedy)
}

// Instructions to install each program, for RequireProgram.
const (
	InstallChromium = "install Debian's package chromium-headless-shell or chromium"
	InstallNode     = "install Node.js 20.19 or newer, with npm"
	InstallStrace   = "install Debian's package strace"
	InstallPostgres = "install Debian's package postgresql"
	InstallBouncer  = "install Debian's package pgbouncer"
	InstallSpin     = "install Debian's package spin"
)
