package approvers_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"countersign/approvers"
)

// withToolPreview returns a request with a pending tool preview.
func withToolPreview(t *testing.T, p *approvers.Policy, tool, args string) approvers.Request {
	t.Helper()
	r := open(t, p, tool, args)
	r.ToolPreview = &approvers.ToolPreview{By: "look", State: approvers.ToolPreviewPending, Digest: r.Digest}
	return r
}

// A critical call can't be approved until its preview is ready or has failed. A click that was made before that time
// is also refused, even if the click is handled later. A call below critical risk can be approved earlier, and the
// decision records that the preview was missing.
func TestCriticalWaitsForItsPreview(t *testing.T) {
	p := example()
	at := func(r approvers.Request, who approvers.Identity, when time.Time) approvers.Action {
		m := actionBy(r, who, when)
		m.Typed = true
		return m
	}
	r := withToolPreview(t, p, "issue_refund", large)
	_, _, denied := r.Approve(deciding(p, start), at(r, onLead, start))
	if denied == nil || denied.Code != approvers.DeniedPreview {
		t.Fatalf("got %v", denied)
	}
	if _, _, denied := r.Reject(deciding(p, start), approvers.Action{Who: onLead, At: start, Digest: r.Digest, Reason: "no"}); denied != nil {
		t.Errorf("a rejection needs no preview: %v", denied)
	}
	for _, fault := range []string{"", "it is gone"} {
		there, _, changed := r.RecordToolPreview(r.Digest, approvers.PreviewAnswer{Text: "Would refund 900", Fault: fault}, start.Add(time.Minute))
		if !changed {
			t.Fatal("nothing changed")
		}
		if _, _, denied := there.Approve(deciding(p, start.Add(2*time.Minute)), at(there, onLead, start)); denied == nil || denied.Code != approvers.DeniedPreview {
			t.Errorf("a click from before the preview: %v", denied)
		}
		after, _, denied := there.Approve(deciding(p, start.Add(2*time.Minute)), at(there, onLead, start.Add(time.Minute)))
		if denied != nil || after.Decisions[0].WithoutToolPreview {
			t.Errorf("with the preview %v: %v, %+v", there.ToolPreview.State, denied, after.Decisions)
		}
	}
	r = withToolPreview(t, p, "issue_refund", small)
	after, _, denied := r.Approve(deciding(p, start), at(r, onLead, start))
	if denied != nil || !after.Decisions[0].WithoutToolPreview {
		t.Errorf("a high call: %v, %+v", denied, after.Decisions)
	}
	e := edited(p, r, "exec_2", large)
	e.ToolPreview = &approvers.ToolPreview{By: "look", State: approvers.ToolPreviewPending, Digest: e.Digest}
	changed, _, denied := r.Modify(deciding(p, start), at(r, onLead, start), e)
	if denied != nil || len(changed.ValidApprovals()) != 0 || changed.ToolPreview != e.ToolPreview {
		t.Errorf("an edit that makes it critical counts as an approval before its preview is there: %v, %+v", denied, changed.ValidApprovals())
	}
}

// A preview counts as a refusal only in two cases. In the first case, the preview has a member that tools commonly
// use for refusals. In the second case, the code that called the tool reports a refusal.
func TestPreviewSaysNo(t *testing.T) {
	p := example()
	for _, c := range []struct {
		text, given, want string
	}{
		{text: "It would be refused"},
		{text: `{"ok": true, "reason": "a reason of the call"}`},
		{text: `{"reason": "arrived broken", "refundable": 0}`},
		{text: `{"ok": "false", "error": null, "refused": false, "success": null}`},
		{text: `[{"ok": false}]`},
		{text: `{"nested": {"ok": false}}`},
		{text: `{"ok": false}`, want: "ok is false"},
		{text: `{"allowed": false, "reason": "too late"}`, want: "too late"},
		{text: `{"possible": false, "message": "It can't be done"}`, want: "It can't be done"},
		{text: `{"valid":false,"error":{"code":7,"message":"no such order"}}`, want: "no such order"},
		{text: `{"would_succeed": false, "summary": "nothing is left"}`, want: "nothing is left"},
		{text: `{"success" : false}`, want: "success is false"},
		{text: `{"error": "no such order", "message": "sorry"}`, want: "no such order"},
		{text: `{"error": {"code": 7}}`, want: "error is given"},
		{text: `{"refused": true, "message": "It is closed"}`, want: "It is closed"},
		{text: `{"refused": "it is closed", "error": "x"}`, want: "it is closed"},
		{text: `{"ok": true}`, given: "nothing is left", want: "nothing is left"},
	} {
		r := withToolPreview(t, p, "issue_refund", small)
		after, _, _ := r.RecordToolPreview(r.Digest, approvers.PreviewAnswer{Text: c.text, No: c.given}, start)
		if after.ToolPreview.No != c.want || after.ToolPreview.State != approvers.ToolPreviewReady {
			t.Errorf("%s: %q, want %q", c.text, after.ToolPreview.No, c.want)
		}
		if c.want != "" && after.Preview != r.Preview {
			t.Errorf("%s: a refusal became the headline %q", c.text, after.Preview)
		}
	}
}

// A preview's sentence replaces a headline that was made from the arguments. A preview without a sentence adds the
// subject's name to that headline.
func TestMadePreview(t *testing.T) {
	p := example()
	for _, c := range []struct{ text, want string }{
		{"Would refund 49.99", "look says: Would refund 49.99"},
		{`{"customer": "Jane Doe", "paid": 49.99}`, "Issue refund: ORD-1 (Jane Doe), amount 49.99"},
		{`{"customer": "ORD-1"}`, "Issue refund: ORD-1, amount 49.99"},
		{`{"customer": {"name": "Jane"}}`, "Issue refund: ORD-1, amount 49.99"},
		{`{"ok": false, "message": "It is refunded"}`, "Issue refund: ORD-1, amount 49.99"},
	} {
		r := withToolPreview(t, p, "issue_refund", `{"order_id":"ORD-1","amount":49.99}`)
		r.Preview, r.MadePreview = approvers.MadeHeadline("", r.Tool, nil, r.Args, nil), true
		after, events, _ := r.RecordToolPreview(r.Digest, approvers.PreviewAnswer{Text: c.text}, start)
		if after.Preview != c.want {
			t.Errorf("%s: %q, want %q", c.text, after.Preview, c.want)
		}
		if made, _ := approvers.FindEvent[approvers.PreviewMade](events); made.Headline != (after.Preview != r.Preview) {
			t.Errorf("%s: the event reports a new headline: %v", c.text, made.Headline)
		}
	}
}

// A tool's preview is accepted once, only for the current arguments, and with limited length.
func TestRecordToolPreview(t *testing.T) {
	p := example()
	for _, c := range []struct {
		name, text, fault  string
		own                bool
		preview            string // the preview from the policy's template
		wantPreview, shown string
		cut                int
		failed             string
	}{
		{name: "a sentence", text: " Would refund 49.99. \n", wantPreview: "look says: Would refund 49.99.", shown: "Would refund 49.99."},
		{name: "its own", text: "Refund 49.99", own: true, wantPreview: "Refund 49.99", shown: "Refund 49.99"},
		{name: "below a template", text: "a\nb", preview: "Refund", wantPreview: "Refund", shown: "a\nb"},
		{name: "lines", text: "first\nsecond", wantPreview: "look says: first", shown: "first\nsecond"},
		{name: "an object", text: `{"left": 5, "message": "It is fine"}`, wantPreview: "look says: It is fine", shown: `{"left": 5, "message": "It is fine"}`},
		{name: "an object without a sentence", text: `{"left": 5}`, shown: `{"left": 5}`},
		{name: "a list", text: `[1]`, shown: `[1]`},
		{name: "no JSON", text: `{broken`, shown: `{broken`},
		{name: "a sentence of 601", text: strings.Repeat("é", 601), shown: strings.Repeat("é", 601)},
		{name: "too much", text: strings.Repeat("é", 5000), shown: strings.Repeat("é", 3999) + "…", cut: 1001},
		{name: "no UTF-8", text: "a\xff\xfeb", wantPreview: "look says: a\uFFFDb", shown: "a\uFFFDb"},
		{name: "nothing", text: " \n ", failed: "it said nothing"},
		{name: "a failure", fault: strings.Repeat("x", 700), failed: strings.Repeat("x", 599) + "…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := withToolPreview(t, p, "issue_refund", small)
			r.Preview, r.ToolPreview.Own = c.preview, c.own
			asked := *r.ToolPreview
			after, _, changed := r.RecordToolPreview(r.Digest, approvers.PreviewAnswer{Text: c.text, Fault: c.fault}, start)
			if !changed || *r.ToolPreview != asked {
				t.Fatal("not taken in, or written into the request as it was")
			}
			if f := after.ToolPreview; f.Text != c.shown || f.Fault != c.failed || f.Cut != c.cut || after.Preview != c.wantPreview || !f.At.Equal(start) {
				t.Errorf("%q, preview %q, fault %q, cut %d", f.Text, after.Preview, f.Fault, f.Cut)
			}
			if _, _, changed := after.RecordToolPreview(r.Digest, approvers.PreviewAnswer{Text: "once more"}, start); changed {
				t.Error("accepted twice")
			}
		})
	}
	r := withToolPreview(t, p, "issue_refund", small)
	if _, _, changed := r.RecordToolPreview("another", approvers.PreviewAnswer{Text: "text"}, start); changed {
		t.Error("a preview of other arguments was accepted")
	}
	r.State = approvers.Approved
	if _, _, changed := r.RecordToolPreview(r.Digest, approvers.PreviewAnswer{Text: "text"}, start); changed {
		t.Error("a preview after the decision was accepted")
	}
	erased := approvers.Request{ToolPreview: &approvers.ToolPreview{Text: "t", Fault: "f", No: "n", By: "look"}}
	if e := erased.Erase(); e.ToolPreview.Text+e.ToolPreview.Fault+e.ToolPreview.No != "" || e.ToolPreview.By != "look" || erased.ToolPreview.Text != "t" {
		t.Errorf("erased: %+v", e.ToolPreview)
	}
}

func TestMaskText(t *testing.T) {
	args := json.RawMessage(`{"card":{"number":"4111 1111","cvc":"7"},"pin":1234,"note":"4111","keys":["a\"b\\c","zz"],"amount":7.50}`)
	for _, c := range []struct {
		text, want string
		secrets    []string
	}{
		{"Charge 4111 1111, pin 1234", "Charge (masked), pin (masked)", []string{"card", "pin"}},
		{"cvc 7, 17 or 7a", "cvc (masked), 17 or 7a", []string{"card"}},
		{`keys a"b\c and "a\"b\\c" and zz, zzz`, `keys (masked) and "(masked)" and (masked), zzz`, []string{"keys"}},
		{"amount 7.50 and 7.5", "amount (masked) and 7.5", []string{"amount"}},
		{"4111 1111", "4111 1111", nil},
		{"4111 1111", "(masked) 1111", []string{"note"}},
		{"anything 1234 Zürich", "anything (masked) Zürich", []string{"*"}},
	} {
		if got := approvers.MaskText(c.text, args, c.secrets); got != c.want {
			t.Errorf("%q without %q:\n got %q\nwant %q", c.text, c.secrets, got, c.want)
		}
	}
	if got := approvers.MaskText("text", json.RawMessage(`{`), []string{"a"}); got != approvers.MaskedValue {
		t.Errorf("got %q", got)
	}
}

func TestSetMember(t *testing.T) {
	for _, c := range []struct{ object, name, value, want string }{
		{`{}`, "dry_run", "true", `{"dry_run":true}`},
		{` { } `, "dry_run", "true", ` { "dry_run":true} `},
		{`{"a":1.10, "b" : [ 2 ]}`, "dry_run", "true", `{"a":1.10, "b" : [ 2 ],"dry_run":true}`},
		{`{"dry_run":false ,"a":1}`, "dry_run", "true", `{"dry_run":true ,"a":1}`},
		{`{"a":{"dry_run":false},"dry_run" :  "no"}`, "dry_run", `"simulate"`, `{"a":{"dry_run":false},"dry_run" :  "simulate"}`},
		{`{"dry\u005frun":false}`, "dry_run", "true", `{"dry\u005frun":true}`},
	} {
		got, err := approvers.SetMember(json.RawMessage(c.object), c.name, json.RawMessage(c.value))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.object, got, err, c.want)
		}
	}
	for _, bad := range []string{``, `[]`, `{`, `{"a":`, `{"a"}`, `null`} {
		if got, err := approvers.SetMember(json.RawMessage(bad), "a", json.RawMessage("true")); err == nil {
			t.Errorf("%q: got %s", bad, got)
		}
	}
}

// FuzzToolPreview checks three rules for any preview. The headline is one line of at most 600 characters. The length of
// the stored text is limited. The stored text contains no secret value of more than two characters.
func FuzzToolPreview(f *testing.F) {
	f.Add("Would charge 4111 1111", "4111 1111")
	f.Add(`{"message":"a\u0007\nb"}`, "ab\"c")
	f.Add("\xff\u2028approved by <!channel>", "(masked)")
	f.Fuzz(func(t *testing.T, text, secret string) {
		args, err := json.Marshal(map[string]string{"pin": secret, "note": "n"})
		if err != nil {
			t.Fatal(err)
		}
		r := approvers.Request{
			State: approvers.Pending, Args: args, Secrets: []string{"pin"}, Digest: "d",
			ToolPreview: &approvers.ToolPreview{By: "look", State: approvers.ToolPreviewPending, Digest: "d"},
		}
		after, _, changed := r.RecordToolPreview("d", approvers.PreviewAnswer{Text: text}, start)
		if !changed {
			t.Fatal("not taken in")
		}
		kept := after.ToolPreview.Text + after.ToolPreview.Fault
		if utf8.RuneCountInString(after.Preview) > approvers.MaxHeadline || strings.ContainsAny(after.Preview, "\n\r") || utf8.RuneCountInString(kept) > approvers.MaxToolPreview || !utf8.ValidString(kept+after.Preview) {
			t.Errorf("%q gives %q, %q", text, after.Preview, kept)
		}
		var decoded struct{ Pin string }
		if json.Unmarshal(args, &decoded) == nil && utf8.RuneCountInString(decoded.Pin) > 2 && strings.Contains(kept, decoded.Pin) && !strings.Contains("look says: (masked)it said nothing", decoded.Pin) {
			t.Errorf("%q still says %q: %q", text, decoded.Pin, kept)
		}
	})
}
