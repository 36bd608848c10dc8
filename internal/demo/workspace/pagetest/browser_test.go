package pagetest

import (
	"countersign/internal/testkit/chromium"

	"github.com/chromedp/chromedp"
)

// browser is the page in headless Chromium.
type browser struct {
	*harness
	page *chromium.Page
}

// openBrowser starts Chromium.
func openBrowser(o *harness) *browser {
	o.Helper()
	return &browser{harness: o, page: chromium.Open(o)}
}

// keys types into the focused element.
func (b *browser) keys(text string) {
	b.Helper()
	b.page.Do("type "+text, chromedp.KeyEvent(text))
}

// press sends only the event keydown of a key that the page handles itself. If a person presses Enter and the page stops
// keydown, the browser inserts no line break. In a simulated Enter, the line break is an event of its own.
func (b *browser) press(key string) {
	b.Helper()
	b.page.Until("the page takes "+key, `!document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "`+key+`", bubbles: true, cancelable: true}))`)
}

// The method "focus" focuses a field.
func (b *browser) focus(field string) {
	b.Helper()
	b.page.Until("there is "+field, `(() => { const f = document.querySelector(`+"`"+field+"`"+`); f?.focus(); return f !== null && document.activeElement === f; })()`)
}

// click clicks the first visible element whose text begins with the given text.
func (b *browser) click(selector, text string) {
	b.Helper()
	b.page.Until("there is "+selector+" "+text, `(() => { const e = [...document.querySelectorAll(`+"`"+selector+"`"+`)].find(e => e.checkVisibility() && e.innerText.startsWith("`+text+`")); e?.click(); return e !== undefined; })()`)
}

// The method "sees" waits until a visible element shows a text.
func (b *browser) sees(selector, text string) {
	b.Helper()
	b.page.Until("they see "+text, `[...document.querySelectorAll(`+"`"+selector+"`"+`)].some(e => e.checkVisibility() && e.innerText.includes("`+text+`"))`)
}

// become opens a place of the page (a channel, a DM or the Home) as a person.
func (b *browser) become(user, place string) {
	b.Helper()
	b.page.Load(b.http.URL + "/#/" + user + "/" + place)
}
