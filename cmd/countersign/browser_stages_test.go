package main

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"countersign/internal/testkit"
)

// typedField is the field in which the approver of a critical call types a value. formOpen and formClosed are
// conditions in JavaScript for the method Until.
const (
	typedField = "[data-testid=modal][open] [data-testid=input][data-block-id=typed] input"
	formOpen   = `document.querySelector("[data-testid=modal][open]") !== null`
	formClosed = `document.querySelector("[data-testid=modal][open]") === null`
)

// The method "approves" opens the form of a critical call, types the value, and approves the call. It acts as the
// person whose page is open.
func (b *browser) approves(value string) {
	b.Helper()
	b.click("button", "Approve…")
	b.Until("the form opens", formOpen)
	b.enter(typedField, value)
	b.press("modal-submit")
	b.Until("the form closes", formClosed)
}

// choosesPerson selects a person in the form's list.
func (b *browser) choosesPerson(name string) {
	b.Helper()
	b.Until("the list of people can be typed into", `(() => { const f = document.querySelector("[data-testid=modal][open] [data-testid=users_select]"); f?.focus(); return f !== null && document.activeElement === f; })()`)
	b.Do("type "+name, chromedp.KeyEvent(name))
	b.Until(name+" is chosen", `(() => { const o = [...document.querySelectorAll("[data-testid=option]")].find(o => o.innerText.includes("`+name+`")); o?.click(); return o !== undefined; })()`)
}

// The test drives a call with two stages in a real browser. One stage needs two approvals. The only Team Lead hands the
// request on to a peer. After two approvals, a director edits the request. The edit voids the approvals, and the stages
// begin from the start. The bot is down at the time at which the request should be escalated. Then three people
// approve.
func TestBrowserStages(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	h := openDemoHarness(t, t.TempDir(), func(s *setup) {
		if err := s.policies.Become(t.Context(), "testdata/browser.yaml"); err != nil {
			t.Fatal(err)
		}
	})
	b := openBrowserTest(t, h.base)

	b.become("U0100", "C0001")
	b.write("composer", "@Countersign refund 900 USD of order ORD-129, the desks arrived damaged")
	b.click("replies", "")
	b.sees(inThread, "stage 1 of 2")
	b.Shot("stages-1-asked")

	b.become("U0002", "U0BOT")
	b.sees(inMessages, "Then Finance Director")
	b.Shot("stages-2-card")
	b.click("button", "Details")
	b.Until("the details open", formOpen)
	b.click("button", "Hand on")
	b.Until("the form opens", formOpen)
	b.Shot("stages-3-hand-on")
	b.choosesPerson("Priya")
	b.press("modal-submit")
	b.Until("the form closes", formClosed)

	b.become("U0101", "U0BOT")
	b.sees(inMessages, "handed")
	b.Shot("stages-4-handed-on")
	b.approves("900")
	b.sees(inMessages, "Waits for Finance Director")

	b.become("U0003", "U0BOT")
	b.sees(inMessages, "Waits for Finance Director")
	b.approves("900")
	b.sees(inMessages, "1 of 2 agreed")
	b.Shot("stages-5-one-of-two")

	b.become("U0004", "U0BOT")
	b.sees(inMessages, "1 of 2 agreed")
	b.click("button", "Modify")
	b.Until("the form opens", `document.querySelector("`+amountField+`") !== null`)
	b.enter(amountField, "800")
	b.Shot("stages-6-modify")
	b.press("modal-submit")
	b.Until("the form closes", formClosed)
	b.sees(inMessages, "Refund of $800.00")
	b.Shot("stages-7-changed")

	b.become("U0101", "U0BOT")
	b.sees(inMessages, "no longer counts")
	b.Shot("stages-8-approval-fell")

	h.down(25 * time.Minute)
	b.become("U0001", "U0BOT")
	b.sees(inMessages, "Not decided yet")
	b.Shot("stages-9-escalated")
	b.approves("800")
	b.sees(inMessages, "Waits for Finance Director")

	b.become("U0003", "U0BOT")
	b.sees(inMessages, "Waits for Finance Director")
	b.approves("800")
	b.become("U0004", "U0BOT")
	b.sees(inMessages, "1 of 2 agreed")
	b.approves("800")
	b.sees(inMessages, "Approved by")
	b.Shot("stages-10-approved")

	b.become("U0100", "C0001")
	b.click("replies", "")
	b.sees(inThread, "800.00")
	b.Until("the call is done", `[...document.querySelectorAll("`+inThread+`")].some(e => e.innerText.includes("Done.") || e.innerText.includes("Approved by"))`)
	b.Shot("stages-11-done")
}
