package main

import (
	"countersign/internal/testkit"
	"countersign/internal/testkit/chromium"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// browser controls the page in headless Chromium, as one person.
type browser struct {
	*chromium.Page
	base string // address of the workspace
}

func openBrowserTest(t *testing.T, base string) *browser {
	t.Helper()
	return &browser{Page: chromium.Open(t), base: base}
}

// become opens the page as a person, at a given channel or conversation.
func (b *browser) become(user, place string) {
	b.Helper()
	b.Load(b.base + "/#/" + user + "/" + place)
}

// write types a text into a composer, and sends the text with Enter.
func (b *browser) write(composer, text string) {
	b.Helper()
	b.enter("[data-testid="+composer+"]", text)
	b.Do("send", chromedp.KeyEvent("\r"))
}

// enter replaces the content of a field by typing. The page may render a form again at any time. Therefore one step
// finds, focuses and selects the field. The keys go to the focused element. Afterwards, enter checks the content of the
// field.
func (b *browser) enter(field, text string) {
	b.Helper()
	for range 5 {
		b.Until("there is "+field, `(() => { const f = document.querySelector("`+field+`"); if (!f) return false; f.focus(); f.select(); return document.activeElement === f; })()`)
		b.Do("type "+text, chromedp.KeyEvent(text))
		if got := chromium.Eval[string](b.Page, `document.querySelector("`+field+`")?.value ?? ""`); got == text {
			return
		}
	}
	b.Shot("failed")
	b.Fatalf("%s does not take %q", field, text)
}

// press clicks the only element of a kind.
func (b *browser) press(testid string) {
	b.Helper()
	b.Until("there is "+testid, `(() => { const e = document.querySelector("[data-testid=`+testid+`]"); if (!e || e.disabled) return false; e.click(); return true; })()`)
}

// The method "sees" waits until an element shows a text.
func (b *browser) sees(where, text string) {
	b.Helper()
	b.Until("they see "+text, `[...document.querySelectorAll(`+"`"+where+"`"+`)].some(e => e.innerText.includes(`+"`"+text+"`"+`))`)
}

// click clicks the last element of a kind whose label starts with a text.
func (b *browser) click(kind, label string) {
	b.Helper()
	find := `[...document.querySelectorAll("[data-testid=` + kind + `]")].findLast(e => e.innerText.startsWith("` + label + `") && e.offsetParent !== null)`
	b.Until("there is a "+label+" button", find+" !== undefined")
	chromium.Eval[any](b.Page, find+".click()")
}

// The method "opens" clicks a button that opens a form.
func (b *browser) opens(label string) {
	b.Helper()
	b.click("button", label)
	b.Until("the form opens", formOpen)
}

const (
	inMessages  = "[data-testid=messages] [data-testid=message]"
	inThread    = "[data-testid=thread-messages] [data-testid=message]"
	amountField = "[data-testid=modal][open] [data-testid=input][data-block-id*=amount] input"

	// This JavaScript condition is true if the messages have only "Details…" buttons. People can't decide anything in
	// such messages.
	onlyDetails = `(all => all.length > 0 && all.every(e => e.innerText === "Details…"))([...document.querySelectorAll("[data-testid=messages] [data-testid=button]")])`
)

// The test drives the main path in a real browser. A person requests a call, and the lead approves this call. The lead
// and a director each modify another call. A director rejects a call with a reason. The bot updates every message.
func TestBrowser(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	b := openBrowserTest(t, openDemoHarness(t, t.TempDir(), nil).base)

	b.become("U0100", "C0001")
	b.write("composer", "@Countersign refund ORD-123, it arrived broken")
	b.click("replies", "")
	b.sees(inThread, "Waits for Team Lead")
	b.Shot("1-asker-waiting")

	b.become("U0002", "U0BOT")
	b.sees(inMessages, "Refund of $49.99 for order ORD-123")
	b.Shot("2-card")
	b.click("button", "Approve")
	b.Do("the dialog repeats what will happen", chromedp.WaitVisible(chromedp.CSS("[data-testid=confirm]")))
	b.sees("[data-testid=confirm]", "Refund of $49.99 for order ORD-123")
	b.Shot("3-confirm")
	b.press("confirm-accept")
	b.sees(inMessages, "Approved by")
	b.Until("nothing can be decided on the card any more", onlyDetails)
	b.Shot("4-approved")

	b.become("U0100", "C0001")
	b.click("replies", "")
	b.sees(inThread, "I refunded $49.99")
	b.Shot("5-answer")

	b.write("thread-composer", "refund 20 USD of order ORD-131, the box was damaged")
	b.sees(inThread, "Waits for Team Lead")
	b.become("U0002", "U0BOT")
	b.sees(inMessages, "Refund of $20.00 for order ORD-131")
	b.click("button", "Modify")
	b.Until("the form opens", `document.querySelector("`+amountField+`") !== null`)
	b.Shot("6-modify")
	b.enter(amountField, "-5")
	b.press("modal-submit")
	b.Until("the field says what is wrong", `[...document.querySelectorAll("[data-testid=field-error]")].some(e => !e.hidden && e.innerText.length > 5)`)
	b.Shot("7-modify-error")
	b.enter(amountField, "12.50")
	b.press("modal-submit")
	b.Until("the form closes", `document.querySelector("[data-testid=modal][open]") === null`)
	b.sees(inMessages, "Refund of $12.50 for order ORD-131")
	b.Shot("8-modified")

	b.become("U0100", "C0001")
	b.click("replies", "")
	b.sees(inThread, "12.50")
	b.write("thread-composer", "cancel account USR-456")
	b.sees(inThread, "Waits for Finance Director")
	b.become("U0003", "U0BOT")
	b.click("button", "Reject")
	b.enter("[data-testid=modal][open] [data-testid=input] textarea", "Cancelling can't be undone.")
	b.Shot("9-reject")
	b.press("modal-submit")
	b.sees(inMessages, "Rejected by")
	b.Shot("10-rejected")
	b.become("U0004", "U0BOT")
	b.sees(inMessages, "Rejected by")
	b.Until("nothing can be decided on the other director's card any more", onlyDetails)

	b.become("U0100", "C0001")
	b.click("replies", "")
	b.sees(inThread, "deactivat")
	b.Shot("11-alternative")

	b.write("thread-composer", "cancel account USR-457")
	b.sees(inThread, "Permanently cancel account USR-457")
	b.become("U0004", "U0BOT")
	b.sees(inMessages, "Permanently cancel account USR-457")
	b.click("button", "Modify")
	form := "[data-testid=modal][open] [data-testid=input]"
	b.enter(form+"[data-block-id*=reason] textarea", "He asked for it by phone.")
	b.enter(form+"[data-block-id=typed] input", "cancel_account")
	b.Shot("12-modify-critical")
	b.press("modal-submit")
	b.Until("the form closes", `document.querySelector("[data-testid=modal][open]") === null`)
	b.sees(inMessages, "(Finance Director) with changes")
	b.opens("Details…")
	b.sees(inForm, "He asked for it by phone.")
	b.Shot("13-modified-by-the-director")
	b.become("U0100", "C0001")
	b.click("replies", "")
	b.sees(inThread, "Finance Director changed the request")
	b.Shot("14-told")
}

// Before anybody decides, the card shows the shop's preview of a refund in one sentence, and the button "Details…"
// opens the whole preview. The card marks the preview as coming from the shop. The sentence above the preview comes
// from the policy.
func TestBrowserPreview(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	h := openDemoHarness(t, t.TempDir(), nil)
	b := openBrowserTest(t, h.base)
	b.become("U0100", "C0001")
	b.write("composer", "@Countersign refund 20 USD of order ORD-131, the box was damaged")
	b.become("U0002", "U0BOT")
	b.sees(inMessages, "Refund of $20.00 for order ORD-131")
	b.sees(inMessages, "preview_refund: “Jane Doe paid $129.00 for ORD-131")
	b.sees(inMessages, "could still be refunded.”")
	b.Shot("preview-1-card")
	b.opens("Details…")
	b.sees(inForm, "What preview_refund says of it, in its own words:")
	b.sees(inForm, "could still be refunded.")
	b.Shot("preview-2-details")
}

// The test shows a pause in a real browser. The lead pauses everything while a call waits, and everybody sees the
// pause. The call is approved during the pause, and does not run until another person with the permission ends the
// pause.
func TestBrowserPause(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	b := openBrowserTest(t, openDemoHarness(t, t.TempDir(), nil).base)

	b.become("U0100", "C0001")
	b.write("composer", "@Countersign refund ORD-123, it arrived broken")
	b.click("replies", "")
	b.sees(inThread, "Waits for Team Lead")

	b.become("U0100", "C0001")
	b.write("composer", "/countersign pause I don't like it")
	b.sees("[data-testid=messages]", "Team Lead")
	b.Shot("pause-1-refused")

	b.become("U0002", "U0BOT")
	b.write("composer", "/countersign pause we look into wrong refunds")
	b.click("button", "Pause everything")
	b.Do("the dialog repeats what will happen", chromedp.WaitVisible(chromedp.CSS("[data-testid=confirm]")))
	b.Shot("pause-2-confirm")
	b.press("confirm-accept")
	b.sees("[data-testid=messages]", "Everything is paused")
	b.Shot("pause-3-paused")

	b.become("U0100", "C0001")
	b.click("replies", "")
	b.sees(inThread, "we look into wrong refunds")
	b.Shot("pause-4-asker")

	b.become("U0002", "U0BOT")
	b.sees(inMessages, "we look into wrong refunds")
	b.click("button", "Approve")
	b.press("confirm-accept")
	b.sees(inMessages, "it starts when the pause ends")
	b.Shot("pause-5-approved-not-started")

	b.become("U0003", "U0BOT")
	b.sees(inMessages, "Everything has been paused")
	b.Shot("pause-6-director")
	b.click("button", "Resume")
	b.press("confirm-accept")
	b.sees(inMessages, "The pause is over")
	b.Shot("pause-7-resumed")

	b.become("U0100", "C0001")
	b.click("replies", "")
	b.sees(inThread, "I refunded $49.99")
	b.Shot("pause-8-answer")
}

// During an export that a director has approved, the shop's server asks which data to export. The question goes to Sam,
// who asked for the export. Data that he leaves out is not exported.
func TestBrowserElicits(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	h := openDemoHarness(t, t.TempDir(), nil)
	b := openBrowserTest(t, h.base)
	b.become("U0100", "C0001")
	b.write("composer", "@Countersign export the data of customer USR-456")
	b.click("replies", "")
	b.sees(inThread, "Waits for Finance Director")
	b.become("U0004", "U0BOT")
	b.sees(inMessages, "Hand out a customer's data")
	b.approves("USR-456")
	b.sees(inMessages, "Approved by")
	b.become("U0100", "C0001")
	b.click("replies", "")
	b.sees(inThread, "Which of the data of USR-456 shall be exported?")
	b.Shot("elicit-01-question")
	b.opens("Answer…")
	b.sees("[data-testid=modal][open]", "Payments")
	b.Shot("elicit-02-form")
	b.chooses("payments", "No")
	b.chooses("emails", "No")
	b.Shot("elicit-03-filled-in")
	b.press("modal-submit")
	b.Until("the form closes", formClosed)
	b.sees(inThread, "Exported the data of USR-456 (Jane Doe): profile, orders")
	b.Shot("elicit-04-answer")
	ledger := h.shop.Ledger()
	if len(ledger) != 1 || !strings.HasSuffix(ledger[0].Summary, ": profile, orders") {
		t.Errorf("the shop's ledger is %+v", ledger)
	}
}

// chooses selects an option in a field of the form. The field is a list or a group of buttons.
func (b *browser) chooses(field, option string) {
	b.Helper()
	in := `[data-testid=modal][open] [data-testid=input][data-block-id*=` + field + `]`
	b.Until(field+" can be chosen", `(() => {
		const box = document.querySelector("`+in+`");
		const choice = [...(box?.querySelectorAll("option, label, [role=option], [role=radio]") ?? [])].find(e => e.innerText.trim() === "`+option+`");
		if (!choice) return false;
		if (choice.tagName === "OPTION") { choice.parentElement.value = choice.value; choice.parentElement.dispatchEvent(new Event("change", {bubbles: true})); } else choice.click();
		return true;
	})()`)
	b.Do("look", chromedp.WaitVisible(chromedp.CSS(in)))
}
