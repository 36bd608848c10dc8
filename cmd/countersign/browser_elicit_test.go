package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The shop's server asks, in the middle of an export that a director has allowed, which of the data are wanted. The
// question is Sam's, who asked; what he leaves out is not exported.
func TestBrowserElicits(t *testing.T) {
	h := openHouse(t, t.TempDir(), nil)
	b := openBrowserTest(t, h.base)
	b.become("U0100", "C0001")
	b.write("composer", "@Countersign export the data of customer USR-456")
	b.click("replies", "")
	b.sees(inThread, "Waits for Finance Director")
	b.become("U0004", "U0BOT")
	b.sees(inMessages, "export_customer_data")
	b.approves("USR-456")
	b.sees(inMessages, "Approved by")
	b.become("U0100", "C0001")
	b.click("replies", "")
	b.sees(inThread, "Which of the data of USR-456 shall be exported?")
	b.shot("elicit-01-question")
	b.click("button", "Answer…")
	b.until("the form opens", formOpen)
	b.sees("[data-testid=modal][open]", "Payments")
	b.shot("elicit-02-form")
	b.chooses("payments", "No")
	b.chooses("emails", "No")
	b.shot("elicit-03-filled-in")
	b.press("modal-submit")
	b.until("the form closes", formClosed)
	b.sees(inThread, "Exported the data of USR-456 (Jane Doe): profile, orders")
	b.shot("elicit-04-answer")
	ledger := h.shop.Ledger()
	if len(ledger) != 1 || !strings.HasSuffix(ledger[0].Summary, ": profile, orders") {
		t.Errorf("the shop's ledger is %+v", ledger)
	}
}

// chooses picks an option of a list or of buttons in the form's field.
func (b *browser) chooses(field, option string) {
	b.Helper()
	in := `[data-testid=modal][open] [data-testid=input][data-block-id*=` + field + `]`
	b.until(field+" can be chosen", `(() => {
		const box = document.querySelector("`+in+`");
		const choice = [...(box?.querySelectorAll("option, label, [role=option], [role=radio]") ?? [])].find(e => e.innerText.trim() === "`+option+`");
		if (!choice) return false;
		if (choice.tagName === "OPTION") { choice.parentElement.value = choice.value; choice.parentElement.dispatchEvent(new Event("change", {bubbles: true})); } else choice.click();
		return true;
	})()`)
	b.do("look", chromedp.WaitVisible(chromedp.CSS(in)))
}
