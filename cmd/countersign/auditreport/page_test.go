package auditreport

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"countersign/approvers/audit"
	"countersign/internal/testkit/chromium"
)

// printRules applies the page's rules for print on the screen.
const printRules = `(() => {
	const sheet = document.styleSheets[0];
	for (const rule of [...sheet.cssRules].filter(r => r.media && r.media.mediaText === "print"))
		for (const inner of rule.cssRules) sheet.insertRule(inner.cssText, sheet.cssRules.length);
	return sheet.cssRules.length;
})()`

// On a printed page, no table is wider than the paper, even if a reason or a tool's name is a long word. A time is on
// one line.
func TestPrintedPage(t *testing.T) {
	p := chromium.Open(t)
	figures := &audit.Activity{
		Rejections: []audit.Rejection{{
			At: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), Request: "req_06H2QEG2UC0H85JVUD5V6M8GV0", Tool: "claude-code.mcp__warehouse__reserve_articles",
			By: "Ingrid", Role: "finance-director", Reason: "see https://tickets.example.com/" + strings.Repeat("a1b2c3d4e5", 20) + strings.Repeat(" before anybody asks for this again", 5),
		}},
		Tools: []*audit.ToolFigures{{Name: "claude-code.mcp__" + strings.Repeat("warehouse_", 12), Asked: 123456, Approved: 123456, Withdrawn: 123456, Refused: 123456}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := Write(w, "html", Report{Figures: figures, Reasons: true}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	const paper = 1009 // pixels between the margins of A4 in landscape format
	p.Do("open the page", chromedp.EmulateViewport(paper, 700), chromedp.Navigate(server.URL))
	if n := chromium.Eval[int](p, printRules); n < 20 {
		t.Fatalf("only %d rules", n)
	}
	p.Shot("report")
	if wide := chromium.Eval[float64](p, `Math.max(...[...document.querySelectorAll("table")].map(t => t.getBoundingClientRect().right))`); wide > paper {
		t.Errorf("a table is %g pixels wide, and the paper has %d", wide, paper)
	}
	if lines := chromium.Eval[int](p, `(() => { const r = document.createRange(); r.selectNodeContents(document.querySelector("td.time")); return r.getClientRects().length })()`); lines != 1 {
		t.Errorf("a time has %d lines", lines)
	}
}
