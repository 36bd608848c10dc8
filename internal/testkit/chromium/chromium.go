// Package chromium opens pages in headless Chromium, for tests.
package chromium

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"countersign/internal/testkit"
)

// Page is a tab of a separate Chromium process.
type Page struct {
	testing.TB
	ctx context.Context
}

// Open starts Chromium. Chromium stops at the end of the test.
func Open(t testing.TB) *Page {
	t.Helper()
	path, err := exec.LookPath("chromium-headless-shell") // the same engine without a window; it needs half of the processor time
	if err != nil {
		path = testkit.RequireProgram(t, "chromium", "the page in a browser", testkit.InstallChromium)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 900),
		chromedp.Flag("force-prefers-reduced-motion", true), chromedp.UserDataDir(t.TempDir()))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return &Page{TB: t, ctx: ctx}
}

// Do runs steps. The timeout of a step is long, so only a failed step reaches it.
func (p *Page) Do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	for i, step := range steps {
		ctx, cancel := context.WithTimeout(p.ctx, testkit.Patience)
		err := chromedp.Do(ctx, step)
		cancel()
		if err != nil {
			p.Shot("failed")
			p.Fatalf("%s, step %d: %v", what, i+1, err)
		}
	}
}

// Eval returns the value of a JavaScript expression.
func Eval[T any](p *Page, expression string) T {
	p.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.Fatal(err)
	}
	return v
}

// Until waits until a JavaScript condition is true.
func (p *Page) Until(what, condition string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, testkit.Patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](condition, chromedp.WithPollingInterval(50*time.Millisecond)))
		if err == nil {
			return
		}
		// If ctx has not ended, an error about a context means that the page was replaced.
		if ctx.Err() != nil || !strings.Contains(err.Error(), "context") {
			p.Shot("failed")
			p.Fatalf("waiting until %s: %v", what, err)
		}
	}
}

// Load loads an address. If the page already shows this address, Load loads it a second time. Load waits until the page
// of the workspace is drawn.
func (p *Page) Load(address string) {
	p.Helper()
	p.Do("load "+address, chromedp.Navigate("about:blank"), chromedp.Navigate(address))
	p.Until(address+" is drawn", `document.body.dataset.ready === "true"`)
}

// Element returns a picture of an element. scale is the number of points for each pixel of the page.
func (p *Page) Element(selector string, scale float64) []byte {
	p.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.ScreenshotScale(chromedp.CSS(selector), scale))
	if err != nil {
		p.Fatal(err)
	}
	return png
}

// Shot saves a screenshot to the directory in COUNTERSIGN_SCREENSHOTS. If the variable is not set, Shot does nothing.
func (p *Page) Shot(name string) {
	dir := os.Getenv("COUNTERSIGN_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		p.Errorf("screenshot %s: %v", name, err)
	}
}
