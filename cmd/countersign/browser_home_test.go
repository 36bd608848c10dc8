package main

import (
	"countersign/internal/testkit"
	"countersign/internal/testkit/chromium"
	"testing"
)

const (
	onHome = "[data-testid=home]"
	inForm = "[data-testid=modal][open]"
)

// The test uses the Home tab in a real browser, as a requester, a lead, a director and a guest. The lead decides a
// waiting request on the Home tab, in the form that shows all arguments. The tab also lists a person's own waiting
// requests, and opens the form for an absence.
func TestBrowserHome(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	b := openBrowserTest(t, openDemoHarness(t, t.TempDir(), nil).base)

	b.become("U0002", "home")
	b.sees(onHome, "Nothing waits for you")
	b.Shot("home-1-empty")

	b.become("U0100", "C0001")
	b.write("composer", "@Countersign refund ORD-123, it arrived broken")
	b.click("replies", "")
	b.sees(inThread, "waits for Team Lead")
	b.become("U0100", "home")
	b.sees(onHome, "You asked for: 1")
	b.Shot("home-2-asker")

	b.become("U0002", "home")
	b.sees(onHome, "Waits for you: 1")
	b.Shot("home-3-lead")
	chromium.Eval[any](b.Page, `document.documentElement.dataset.theme = "dark"`)
	b.Shot("home-3-lead-dark")
	b.click("button", "Approve…")
	for _, argument := range []string{"order_id: ORD-123", "amount:   49.99", "currency: USD", "reason:   It arrived broken"} {
		b.sees(inForm, argument)
	}
	b.Shot("home-4-all-arguments")
	b.press("modal-submit")
	b.sees(onHome, "Nothing waits for you")
	b.sees(onHome, "Decided lately")
	b.Shot("home-5-decided")

	b.click("button", "I'm away…")
	b.sees(inForm, "Who stands in?")
	b.Shot("home-6-away-form")
	b.press("modal-close")

	b.become("U0003", "home")
	b.sees(onHome, "Nothing waits for you")
	b.Shot("home-7-director")
	b.become("U0900", "home")
	b.sees(onHome, "Only full members")
	b.Shot("home-8-guest")
}

// The test shows masked arguments in a real browser. Only people who may decide the request can see the values. A
// person sees the values only after a click.
func TestBrowserMasked(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	b := openBrowserTest(t, openDemoHarness(t, t.TempDir(), nil).base)

	b.become("U0100", "C0001")
	b.write("composer", "@Countersign change the phone of USR-456 to +1 555 0199")
	b.click("replies", "")
	b.sees(inThread, "waits for Support Agent")
	b.Shot("masked-1-asker")

	b.become("U0001", "C0002")
	b.sees(inMessages, "1 value is hidden: phone.")
	b.Until("the card does not tell it", `![...document.querySelectorAll("`+inMessages+`")].some(e => e.innerText.includes("0199"))`)
	b.Shot("masked-2-card")
	b.click("button", "Reveal…")
	b.sees(inForm, "+1 555 0199")
	b.Shot("masked-3-revealed")
	b.press("modal-close")

	b.become("U0003", "C0002")
	b.click("button", "Reveal…")
	b.sees(inForm, "Nothing was changed")
	b.Shot("masked-4-refused")
	b.press("modal-close")

	b.become("U0001", "C0002")
	chromium.Eval[any](b.Page, `[...document.querySelectorAll("[data-testid=message-more] , [data-testid=message-more] button")].at(-1).click()`)
	b.click("menu-item", "Explain this approval")
	b.sees(inForm, "What has happened so far")
	b.sees(inForm, "was shown the masked values")
	b.Shot("masked-5-explained")
}

// The answer to a slash command appears where the command was typed.
func TestBrowserCommands(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	b := openBrowserTest(t, openDemoHarness(t, t.TempDir(), nil).base)

	b.become("U0100", "C0001")
	b.write("composer", "@Countersign refund ORD-123, it arrived broken")
	b.click("replies", "")
	b.sees(inThread, "waits for Team Lead")
	b.become("U0100", "C0001")
	b.write("composer", "/countersign pending")
	b.sees(inMessages, "You asked for:")
	b.Shot("commands-1-pending")
	b.write("composer", `/countersign explain issue_refund {"order_id":"ORD-123","amount":900,"currency":"USD"}`)
	b.sees(inMessages, "It would wait for people")
	b.Shot("commands-2-explain")
	b.write("composer", "/countersign history")
	b.sees(inMessages, "What you asked for or had a say in")
	b.Shot("commands-3-history")
	b.write("composer", "/countersign waiting")
	b.sees(inMessages, "I don't know “waiting”")
	b.Shot("commands-4-help")
}
