package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/card"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/bot/render/wording"
	"countersign/internal/testkit"
	"countersign/store"
)

// bundleOf returns the view model for a bundle of requests.
func bundleOf(rs ...approvers.Request) view.Model {
	s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	s.Message.Kind, s.Message.Ref, s.Message.Step, s.Message.Bundle = store.OutboxBundle, "turn_1", 1, "bundle_1"
	s.Request, s.Execution, s.Call = nil, nil, nil
	for i, r := range rs {
		r.ID, r.Call, r.Bundle = fmt.Sprint("req_", i+1), fmt.Sprint("call_", i+1), "bundle_1"
		s.Calls = append(s.Calls, view.Call{
			Call:    store.Call{ID: r.Call, Tool: r.Tool, Args: string(r.Args), Preview: r.Preview, Request: r.ID, Step: 1},
			Request: &r, Execution: &approvers.Execution{ID: r.Execution, State: approvers.ExecutionNone, Tool: r.Tool, Args: r.Args, Digest: r.Digest},
		})
	}
	return s
}

func refundOf(order, amount string) approvers.Request {
	r := bottest.Request(`{ "order_id": "` + order + `", "amount": ` + amount + `, "currency": "USD", "reason": "arrived broken" }`)
	r.Preview = "Refund of $" + amount + " for order " + order
	return r
}

func TestBundles(t *testing.T) {
	email := bottest.Request(`{"to":"bob@example.com","subject":"Your refund","body":"Dear Bob,\nit is on its way.\nYours"}`)
	email.Tool, email.Preview = "send_email", "E-mail bob@example.com: Your refund"
	email.Plan.Why = []string{"send_email is high risk", "Team Lead is the first role that may approve this at high risk"}
	three := bundleOf(refundOf("ORD-123", "49.99"), refundOf("ORD-124", "20"), email)

	mixed := bundleOf(bottest.Closed(bottest.ApprovedBy(refundOf("ORD-123", "49.99"), "U0002", "Teo", "team-lead", 0), approvers.Consumed, "U0002", "team-lead", ""),
		refundOf("ORD-124", "20"), bottest.Closed(refundOf("ORD-125", "5"), approvers.Rejected, "U0002", "team-lead", "refunded already"), refundOf("ORD-126", "7"), refundOf("ORD-127", "900"))
	mixed.Calls[0].Call.Outcome, mixed.Calls[0].Execution.State = approvers.OutcomeExecuted, approvers.ExecutionSucceeded
	mixed.Calls[2].Call.Outcome = approvers.OutcomeRejected
	mixed.Calls[3].Request.Apart = true
	later := mixed.Calls[4].Request
	later.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
	later.Stage, later.Apart = 1, true

	over := bundleOf(bottest.Closed(bottest.ApprovedBy(refundOf("ORD-123", "49.99"), "U0002", "Teo", "team-lead", 0), approvers.Consumed, "U0002", "team-lead", ""),
		bottest.Closed(refundOf("ORD-124", "20"), approvers.Expired, "", "", "nobody decided in time"))
	over.Calls[0].Execution.State = approvers.ExecutionExecuting
	over.Calls[1].Call.Outcome = approvers.OutcomeExpired

	steps := bundleOf(refundOf("ORD-123", "49.99"), refundOf("ORD-124", "20"))
	steps.Calls[1].Request.StepUp = "Sam has caused 21 requests within an hour; the policy's cap is 20"

	quorum := []approvers.Stage{{Approver: "finance-director", Quorum: 2}}
	one, two := refundOf("ORD-123", "49.99"), refundOf("ORD-124", "20")
	one.Plan.Stages, two.Plan.Stages = quorum, quorum
	one = bottest.ApprovedBy(one, "U0003", "Ingrid", "finance-director", 0)
	one.EscalateAt, two.EscalateAt = time.Time{}, time.Time{}
	two.ExpiresAt = bottest.Noon.Add(time.Hour)
	two.Remarks = []approvers.Remark{{Kind: approvers.Comment, By: approvers.Who("T0001", "U0004"), Name: "Kenji", Role: "finance-director", Text: "looks fine to me", At: bottest.Noon}}
	own := bundleOf(one, two)
	own.Message.To = "user:U0003"

	four := bundleOf(refundOf("ORD-123", "49.99"), refundOf("ORD-124", "20"), refundOf("ORD-125", "5"), refundOf("ORD-126", "7"))

	var several []approvers.Request
	for i := range 6 {
		several = append(several, refundOf(fmt.Sprint("ORD-12", i), fmt.Sprint(10+i)))
	}
	six := bundleOf(several...)
	long := slices.Clone(several[:4])
	for i := range long {
		long[i].Args = json.RawMessage(strings.Replace(string(long[i].Args), "arrived broken", "arrived broken"+strings.Repeat(", and the box was wet", 3*i), 1))
	}
	long[3].Plan.Known = false
	uneven := bundleOf(long...)

	hostile := bottest.Request(`{"order_id":"ORD-1","note":"ok\u202egpj.exe","amount":1}`)
	hostile.Preview, hostile.Plan.Known, hostile.PreviewFault = "Pay <!channel> *now*", false, "amount is <missing>"
	most := bottest.Request(`{"order_id":"ORD-123","body":"` + strings.Repeat("日本語のとても長い文章。", 100) + `"}`)
	most.Preview = ""
	cut := bundleOf(hostile, most)

	for name, c := range map[string]struct {
		model view.Model
		all   bool // the calls can be approved together
		shows string
	}{
		"bundle_pending": {three, true, "req_1+ req_2+ req_3+"},
		"bundle_four":    {four, true, "req_1+ req_2+ req_3+ req_4+"},
		"bundle_six":     {six, true, "req_1+ req_2+ req_3+ req_4+ req_5+ req_6+"},
		"bundle_uneven":  {uneven, false, "req_1+ req_2+ req_3 req_4"},
		"bundle_mixed":   {mixed, false, "req_2+"},
		"bundle_over":    {over, false, ""},
		"bundle_typed":   {steps, false, "req_1+ req_2+"},
		"bundle_own":     {own, false, "req_2+"},
		"bundle_cut":     {cut, false, "req_1+ req_2"},
	} {
		t.Run(name, func(t *testing.T) {
			d := drawn(t, c.model)
			bottest.Golden(t, name, d.Messages[0])
			var shows []string
			for _, one := range d.Shows {
				shows = append(shows, one.Request+map[bool]string{true: "+"}[one.Whole])
			}
			if got := strings.Join(shows, " "); got != c.shows {
				t.Errorf("shows %q, want %q", got, c.shows)
			}
			raw := string(encode(t, d))
			if got := strings.Contains(raw, `"action_id":"`+control.ActApproveAll+`"`); got != c.all {
				t.Errorf("can be approved together: %v", got)
			}
			if live := strings.Contains(raw, `"type":"button"`); live != (c.shows != "") {
				t.Errorf("buttons: %v", live)
			}
		})
	}
}

// Each of these conditions requires that the calls of a bundle are approved separately.
func TestNotAllInOne(t *testing.T) {
	for name, change := range map[string]func(r *approvers.Request){
		"critical":      func(r *approvers.Request) { r.Plan.Risk = approvers.Critical },
		"a typed value": func(r *approvers.Request) { r.StepUp = "because" },
		"not whole": func(r *approvers.Request) {
			r.Args = json.RawMessage(`{"x":"` + strings.Repeat("y", block.MaxBundleCall) + `"}`)
		},
		"another stage": func(r *approvers.Request) {
			r.Plan.Stages = []approvers.Stage{{Approver: "support-agent", Quorum: 1}, {Approver: "team-lead", Quorum: 1}}
			r.Stage = 1
		},
		"a long sentence": func(r *approvers.Request) { r.Preview = strings.Repeat("z", 190) },
	} {
		s := bundleOf(refundOf("ORD-1", "1"), refundOf("ORD-2", "2"), refundOf("ORD-3", strings.Repeat("3", 12)))
		if raw := string(encode(t, drawn(t, s))); !strings.Contains(raw, control.ActApproveAll) || !strings.Contains(raw, "2. Refund of $2 for order ORD-2") {
			t.Fatalf("three plain calls can't be approved together")
		}
		change(s.Calls[1].Request)
		if name == "a long sentence" {
			s.Calls[2].Request.Preview = strings.Repeat("z", 190)
		}
		if raw := string(encode(t, drawn(t, s))); strings.Contains(raw, control.ActApproveAll) || !strings.Contains(raw, control.ActRejectAll) || !strings.Contains(raw, "each is approved alone") {
			t.Errorf("%s: they can be approved together, or the reason why not is missing", name)
		}
	}
}

func TestLargestBundle(t *testing.T) {
	big := func(n int) string { return strings.Repeat("𝕏", n) }
	for name, change := range map[string]func(i int, r *approvers.Request){
		"pending": func(int, *approvers.Request) {},
		"over": func(i int, r *approvers.Request) {
			*r = bottest.Closed(*r, approvers.Rejected, "", "", big(5000))
			r.ClosedBy, r.ClosedName, r.ClosedRole = "operator:x", big(200), big(200)
		},
		"approved": func(i int, r *approvers.Request) {
			*r = bottest.Closed(*r, approvers.Approved, "", "", "")
		},
		"apart": func(i int, r *approvers.Request) { r.Apart = true },
	} {
		var rs []approvers.Request
		for i := range 6 {
			r := bottest.Request(`{"body":"` + big(card.MaxBundleArgs/6-10) + `"}`)
			r.Preview, r.Facts.Quote, r.PreviewFault, r.Tool = big(9000), big(9000), big(5000), big(500)
			r.Facts.AskerName, r.Plan.Known, r.StepUp = big(500), false, big(5000)
			r.ExpiresAt = bottest.Noon.Add(time.Duration(i) * time.Minute)
			r.Plan.Stages = nil
			for range 30 {
				r.Plan.Why = append(r.Plan.Why, big(200))
				r.Plan.Stages = append(r.Plan.Stages, approvers.Stage{Approver: big(100), Or: []string{big(100), big(100)}, Quorum: 9, Rejects: 3})
			}
			for j := range 9 {
				r = bottest.ApprovedBy(r, fmt.Sprintf("U%04d", j), big(100), big(100), 0)
				r.Decisions[j].By = "operator:x"
			}
			for range approvers.MaxRemarks {
				r.Remarks = append(r.Remarks, approvers.Remark{Kind: approvers.Comment, By: "operator:x", Name: big(200), Role: big(200), Text: big(block.MaxRemark)})
			}
			r.Joined = []string{big(100), big(100)}
			change(i, &r)
			rs = append(rs, r)
		}
		s := bundleOf(rs...)
		s.Conversation.Name, s.Pause = big(300), largestPause
		t.Run(name, func(t *testing.T) { drawn(t, s) })
	}
}

func TestCardQueue(t *testing.T) {
	base := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	base.Message.Kind, base.Message.Ref = store.OutboxCardQueue, "channel:#support-approvals 1"
	base.Request, base.Execution, base.Call = nil, nil, nil
	one, many, over, largest := base, base, base, base
	one.CardQueue = &view.CardQueue{Waiting: 1, Open: 1, First: []approvers.Request{refundOf("ORD-1", "1")}}
	many.CardQueue = &view.CardQueue{Waiting: 12, Open: 10, First: []approvers.Request{refundOf("ORD-1", "1"), refundOf("ORD-2", "2"), refundOf("ORD-3", "3")}}
	big := refundOf("ORD-1", "1")
	big.Preview, big.Facts.AskerName, big.Facts.Asker = strings.Repeat("𝕏", 5000), strings.Repeat("𝕏", 500), "operator:x"
	largest.CardQueue = &view.CardQueue{Waiting: 1_000_000, Open: 10_000, First: []approvers.Request{big, big, big}}
	drawn(t, largest)
	for name, s := range map[string]view.Model{"card_queue_one": one, "card_queue": many, "card_queue_over": over} {
		t.Run(name, func(t *testing.T) {
			d := drawn(t, s)
			bottest.Golden(t, name, d.Messages[0])
			if d.Expired != (s.CardQueue == nil) {
				t.Errorf("to be deleted: %v", d.Expired)
			}
		})
	}
}

// A card and its form say why a value must be typed.
func TestStepUp(t *testing.T) {
	r := bottest.Request(bottest.RefundArgs)
	r.StepUp = "Sam has caused 21 requests within an hour; the policy's cap is 20"
	d := drawn(t, bottest.ViewModel(r))
	bottest.Golden(t, "card_step_up", d.Messages[0])
	if raw := string(encode(t, d)); strings.Contains(raw, `"action_id":"approve"`) {
		t.Error("it can be approved without typing")
	}
	s := form.ClickTarget{Token: testToken(r).ButtonToken, Model: bundleOf(refundOf("ORD-123", "49.99"), refundOf("ORD-124", "20"))}
	for _, c := range s.Calls {
		s.Shown.Shows = append(s.Shown.Shows, store.Shown{Request: c.Request.ID, Digest: c.Request.Digest, Whole: true})
	}
	teo := approvers.Identity{ID: approvers.Who("T0001", "U0002"), Name: "Teo"}
	for name, v := range map[string]slack.ModalViewRequest{
		"modal_typed_step_up": form.Typed(r, testToken(r)), "modal_reject_all": form.RejectAll(s, teo), "modal_reject_all_no": form.RejectAll(s, approvers.Identity{ID: approvers.Who("T0001", "U0003")}),
	} {
		viewWithin(t, v)
		bottest.Golden(t, name, v)
	}
	in := bottest.Request(bottest.RefundArgs)
	step := bundleOf(in)
	step.Message.Kind, step.Calls[0].Queued = store.OutboxStep, true
	bottest.Golden(t, "step_queued", drawn(t, step).Messages[0])
}

// ownWords counts the bot's own words in blocks. It does not count the arguments and the requester's words.
func ownWords(blocks []slack.Block) (n int) {
	for _, block := range blocks {
		switch block := block.(type) {
		case *slack.HeaderBlock:
			n += len(strings.Fields(block.Text.Text))
		case *slack.RichTextBlock:
			for _, e := range block.Elements {
				section, ok := e.(*slack.RichTextSection)
				if !ok {
					continue
				}
				for _, part := range section.Elements {
					switch part := part.(type) {
					case *slack.RichTextSectionTextElement:
						if part.Style == nil || !part.Style.Italic {
							n += len(strings.Fields(part.Text))
						}
					case *slack.RichTextSectionLinkElement:
						n += len(strings.Fields(part.Text))
					default: // a person or a date
						n++
					}
				}
			}
		case *slack.ContextBlock:
			for _, e := range block.ContextElements.Elements {
				if text, ok := e.(*slack.TextBlockObject); ok {
					n += len(strings.Fields(text.Text))
				}
			}
		case *slack.ActionBlock:
			for _, e := range block.Elements.ElementSet {
				if b, ok := e.(*slack.ButtonBlockElement); ok {
					n += len(strings.Fields(b.Text.Text))
				}
			}
		}
	}
	return n
}

// A bundle of three calls, and a row of a Home tab, are short enough to be read.
func TestShortBundlesAndHomeRows(t *testing.T) {
	s := bundleOf(refundOf("ORD-1", "1"), refundOf("ORD-2", "2"), refundOf("ORD-3", "3"))
	if n := ownWords(drawn(t, s).Messages[0].Blocks); n > 110 {
		t.Errorf("a bundle of three calls has %d words", n)
	}
	r := bottest.Request(bottest.RefundArgs)
	v, tab := tabOf(approvers.Identity{ID: teo}, r)
	row := slices.DeleteFunc(homeDrawn(t, v, tab), func(b slack.Block) bool { return !strings.HasPrefix(b.ID(), r.ID+":") })
	if n := ownWords(row); len(row) < 3 || n > 40 {
		t.Errorf("a row of a Home tab has %d words", n)
	}
}

// For any calls, a bundle's headline and buttons fit together on a phone's screen. Only calls that are shown whole can
// be approved on the bundle's card.
func TestBundlesFitAPhone(t *testing.T) {
	words := strings.Fields("order refund broken parcel customer asked twice urgent 2026-03-02 EUR confirmed warehouse")
	f := testkit.Chance(testkit.Seed(t), 3)
	text := func(most int) string {
		var b strings.Builder
		for b.Len() < most {
			b.WriteString(words[f.IntN(len(words))] + " ")
		}
		return strings.TrimSpace(b.String()[:most])
	}
	whole, hidden, together := 0, 0, 0
	for range testkit.Size(t, "COUNTERSIGN_BUNDLES", 120) {
		var rs []approvers.Request
		quorum := 1 + f.IntN(2)
		for range 2 + f.IntN(5) {
			r := bottest.Request(fmt.Sprintf(`{"id":%q,"note":%q,"more":%q}`, text(1+f.IntN(30)), text(1+f.IntN(200)), text(1+f.IntN(90))))
			r.Preview, r.Facts.Quote = text(20+f.IntN(60)), text(150)
			r.Plan.Stages[0].Quorum = quorum
			switch f.IntN(12) {
			case 0:
				r.Plan.Known = false
			case 1:
				r.ExpiresAt = r.ExpiresAt.Add(time.Hour)
			case 2:
				r.StepUp = "because"
			case 3:
				r = bottest.Closed(r, approvers.Rejected, "U0002", "team-lead", text(80))
			case 4:
				r.ToolPreview = &approvers.ToolPreview{State: approvers.ToolPreviewReady, By: "preview_refund", Digest: r.Digest, No: text(80)}
			}
			rs = append(rs, r)
		}
		s := bundleOf(rs...)
		if f.IntN(4) == 0 {
			s.Pause = settings.Pause{On: true, By: teo, At: bottest.Noon, Reason: text(40), Round: 1}
		}
		d, _, err := Draw(wording.View{Model: s, WorkspaceURL: bottest.WorkspaceURL})
		if err != nil {
			t.Fatal(err)
		}
		m := d.Messages[0]
		if h := block.PhoneHeight(m.Blocks); len(d.Shows) > 0 && h > block.MaxPhoneHeight {
			t.Fatalf("it is %d pixels high:\n%s", h, m.Text)
		}
		for _, one := range d.Shows {
			if !one.Whole {
				hidden++
				continue
			}
			whole++
			i := slices.IndexFunc(s.Calls, func(c view.Call) bool { return c.Request.ID == one.Request })
			_, values := argument.Members(s.Calls[i].Request.Args)
			for n, v := range values {
				if !strings.Contains(m.Text, n+": ") || !strings.Contains(m.Text, strings.Trim(string(v), `"`)) {
					t.Fatalf("%s is offered as shown whole, and its %s is not there:\n%s", one.Request, n, m.Text)
				}
			}
		}
		if strings.Contains(string(encode(t, d)), control.ActApproveAll) {
			together++
		}
	}
	if whole == 0 || hidden == 0 || together == 0 {
		t.Errorf("%d calls were whole, %d were not, %d bundles could be approved together", whole, hidden, together)
	}
	t.Logf("%d calls whole, %d not, %d bundles that can be approved together", whole, hidden, together)
}
