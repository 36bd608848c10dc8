package pagetest

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"countersign/internal/testkit"

	"github.com/chromedp/chromedp"
)

// browser is the page in headless Chromium.
type browser struct {
	*harness
	ctx context.Context
}

// openBrowser starts Chromium.
func openBrowser(o *harness) *browser {
	o.Helper()
	path := testkit.RequireProgram(o, "chromium", "the page in a browser", testkit.InstallChromium)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 900), chromedp.Flag("force-prefers-reduced-motion", true), chromedp.UserDataDir(o.TempDir()))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	o.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	o.Cleanup(closeTab)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		o.Fatal(err)
	}
	return &browser{harness: o, ctx: ctx}
}

// until waits for a JavaScript condition.
func (b *browser) until(what, condition string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testkit.Patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](condition))
		if err == nil {
			return
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "context") { // other errors about a context mean that the page was replaced
			b.shot("failed")
			b.Fatalf("waiting until %s: %v", what, err)
		}
	}
}

// keys types into the focused element.
func (b *browser) keys(text string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testkit.Patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.KeyEvent(text)); err != nil {
		b.Fatalf("typing %q: %v", text, err)
	}
}

// press presses a key that the page handles itself. Chromium's own Enter has two events, and the page can stop only the
// first event. The Enter of a real keyboard has one event.
func (b *browser) press(key string) {
	b.Helper()
	b.until("the page takes "+key, `!document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "`+key+`", bubbles: true, cancelable: true}))`)
}

// focus focuses a field.
func (b *browser) focus(field string) {
	b.Helper()
	b.until("there is "+field, `(() => { const f = document.querySelector(`+"`"+field+"`"+`); f?.focus(); return f !== null && document.activeElement === f; })()`)
}

// click clicks the first visible element whose text begins with the given text.
func (b *browser) click(selector, text string) {
	b.Helper()
	b.until("there is "+selector+" "+text, `(() => { const e = [...document.querySelectorAll(`+"`"+selector+"`"+`)].find(e => e.checkVisibility() && e.innerText.startsWith("`+text+`")); e?.click(); return e !== undefined; })()`)
}

// sees waits until a visible element shows a text.
func (b *browser) sees(selector, text string) {
	b.Helper()
	b.until("they see "+text, `[...document.querySelectorAll(`+"`"+selector+"`"+`)].some(e => e.checkVisibility() && e.innerText.includes("`+text+`"))`)
}

// become opens a place of the page as a person.
func (b *browser) become(user, place string) {
	b.Helper()
	if err := chromedp.Do(b.ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(b.http.URL+"/#/"+user+"/"+place)); err != nil {
		b.Fatal(err)
	}
	b.until(user+"'s page is drawn", `document.body.dataset.ready === "true"`)
}

// shot stores a screenshot if COUNTERSIGN_SCREENSHOTS is set.
func (b *browser) shot(name string) {
	dir := os.Getenv("COUNTERSIGN_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.Errorf("screenshot %s: %v", name, err)
	}
}
