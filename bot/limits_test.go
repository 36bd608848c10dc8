package bot

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// withinLimits holds a message against every size of SLACK.md.
func withinLimits(t *testing.T, m message) {
	t.Helper()
	if n := width(m.Text); n == 0 || n > maxUpdateText {
		t.Errorf("the message's text has %d characters", n)
	}
	raw, err := json.Marshal(m.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	blocksWithin(t, raw, 50)
	if n := textOf(t, raw); n > 12000 {
		t.Errorf("all text of the blocks has %d characters", n)
	}
}

func viewWithin(t *testing.T, v slack.ModalViewRequest) {
	t.Helper()
	raw, err := json.Marshal(v.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Blocks json.RawMessage }
	if json.Unmarshal(raw, &list) != nil || list.Blocks == nil {
		list.Blocks = raw
	}
	blocksWithin(t, list.Blocks, 100)
	if len(v.PrivateMetadata) > 3000 || width(v.Title.Text) > 24 || v.Submit != nil && width(v.Submit.Text) > 24 {
		t.Error("the view's title, submit or metadata is too long")
	}
}

func blocksWithin(t *testing.T, raw json.RawMessage, most int) {
	t.Helper()
	if !utf8.Valid(raw) {
		t.Error("not valid UTF-8")
	}
	var blocks []map[string]any
	if err := json.Unmarshal(raw, &blocks); err != nil {
		t.Fatal(err)
	}
	if len(blocks) == 0 || len(blocks) > most {
		t.Errorf("%d blocks", len(blocks))
	}
	ids := map[string]bool{}
	for i, b := range blocks {
		if id, _ := b["block_id"].(string); id != "" {
			if ids[id] || width(id) > 255 {
				t.Errorf("block_id %q is used twice or too long", id)
			}
			ids[id] = true
		}
		within(t, fmt.Sprintf("/%d", i), b)
	}
}

// within walks one block.
func within(t *testing.T, at string, v any) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		actions := map[string]bool{}
		for i, item := range v {
			within(t, fmt.Sprintf("%s/%d", at, i), item)
			if o, ok := item.(map[string]any); ok {
				if id, _ := o["action_id"].(string); id != "" && actions[id] {
					t.Errorf("%s: action_id %q is used twice", at, id)
				} else if id != "" {
					actions[id] = true
				}
			}
		}
	case map[string]any:
		limit := map[string]int{"value": 2000, "url": 3000, "action_id": 255, "initial_value": 3000, "text": 3000}
		text := func(key string) string {
			o, _ := v[key].(map[string]any)
			s, _ := o["text"].(string)
			return s
		}
		sizes := map[string]map[string]int{
			"header": {"text": 150}, "button": {"text": 75}, "input": {"label": 2000, "hint": 2000}, "section": {"text": 3000},
		}[fmt.Sprint(v["type"])]
		if v["confirm"] != nil && v["deny"] != nil {
			sizes = map[string]int{"title": 100, "text": 300, "confirm": 30, "deny": 30}
		}
		for key, most := range sizes {
			if n := width(text(key)); n > most {
				t.Errorf("%s/%s has %d characters, more than %d", at, key, n, most)
			}
		}
		for key, item := range v {
			if s, ok := item.(string); ok {
				if key == "text" && s == "" {
					t.Errorf("%s: empty text", at)
				}
				if most := limit[key]; most > 0 && width(s) > most {
					t.Errorf("%s/%s has %d characters", at, key, width(s))
				}
				continue
			}
			within(t, at+"/"+key, item)
		}
	}
}

func textOf(t *testing.T, raw []byte) int {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	total := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for key, item := range v {
				if s, ok := item.(string); ok && key == "text" {
					total += width(s)
				}
				walk(item)
			}
		}
	}
	walk(v)
	return total
}

// Everything at its largest at once, in characters of four bytes, still is a message that Slack takes.
func TestLargestCard(t *testing.T) {
	big := func(n int) string { return strings.Repeat("𝕏", n) }
	r := testRequest(`{"body":"` + big(maxCardArgs-20) + `"}`)
	r.Preview, r.Facts.Quote, r.PreviewFault, r.Tool = big(9000), big(9000), big(5000), big(500)
	r.Facts.AskerName, r.Plan.Known = big(500), false
	for range 30 {
		r.Plan.Why = append(r.Plan.Why, big(200))
		r.Plan.Stages = append(r.Plan.Stages, approvers.Stage{Approver: big(100), Quorum: 9})
	}
	for i := range 40 {
		r = approvedBy(r, fmt.Sprintf("U%04d", i), big(100), big(100), 0)
	}
	r.Plan.Stages[0].Or, r.Plan.Stages[0].Group, r.Plan.Stages[0].Rejects = []string{big(100), big(101), big(102), big(103)}, big(100), 9
	for i := range 20 {
		r.Invited = append(r.Invited, approvers.Invite{Who: "operator:" + approvers.PersonID(big(100)), By: "operator:x", ByName: big(200), Role: big(200)})
		r.Decisions = append(r.Decisions, approvers.Decision{Kind: approvers.Reject, By: "operator:" + approvers.PersonID(big(100)), Role: big(100), Reason: big(3000), Digest: r.Digest, Fallen: i > 3})
	}
	for i := range approvers.MaxRemarks {
		m := approvers.Remark{Kind: approvers.Question, By: "operator:x", Name: big(200), Role: big(200), Text: big(3000)}
		if i%2 == 1 {
			m.Kind, m.To = approvers.Answer, i-1
		}
		r.Remarks = append(r.Remarks, m)
	}
	r.Edits = []approvers.Edit{{By: "operator:" + approvers.PersonID(big(200)), Name: big(200), Role: big(200), At: noon, Reason: big(3000), Before: json.RawMessage(`{"body":"` + big(maxDiff/2-100) + `"}`), After: r.Args}}
	for _, kind := range []store.SurfaceKind{store.SurfaceCard, store.SurfaceEscalation} {
		s := sightOf(r)
		s.Surface.Kind, s.Conversation.Name = kind, big(300)
		if kind == store.SurfaceEscalation {
			s.Surface.To, s.Request.Invited[0].Who = "user:U0004", kenji
		}
		s.Request.Joined = []string{big(100), big(100)}
		drawn(t, s)
		over := closed(r, approvers.Consumed, "", "", big(5000))
		over.ClosedBy, over.ClosedName, over.ClosedRole = "operator:x", big(200), big(200)
		s.Request = &over
		s.Execution.State, s.Execution.Result = approvers.ExecutionSucceeded, big(90000)
		drawn(t, s)
	}
}

func TestLargestStep(t *testing.T) {
	big := func(n int) string { return strings.Repeat("界", n) }
	s := sightOf(testRequest(refundArgs))
	s.Surface.Kind = store.SurfaceStep
	s.Text = big(50000)
	for i := range 128 {
		r := testRequest(refundArgs)
		r.ID = fmt.Sprint("req_", i)
		r.Plan.Stages = []approvers.Stage{{Approver: big(200), Quorum: 3}, {Approver: "team-lead", Quorum: 1}}
		r.Joined = []string{big(200), big(200), big(200)}
		s.Calls = append(s.Calls, desk.CallSight{Call: store.Call{Tool: big(200), Preview: big(5000), Args: `{"x":"` + big(500) + `"}`}, Request: &r})
	}
	drawn(t, s)
	for i := range s.Calls {
		s.Calls[i].Call.Outcome, s.Calls[i].Call.Result = approvers.OutcomeError, big(20000)
	}
	drawn(t, s)
}

// A long answer is several messages, and none of it is lost.
func TestLongAnswersAreWhole(t *testing.T) {
	s := sightOf(testRequest(refundArgs))
	s.Surface.Kind = store.SurfaceAnswer
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "Paragraph %d %s\n\n- item %d\n\n", i, strings.Repeat("words ", 30), i)
	}
	fmt.Fprintf(&b, "```\n%s\n```\n", strings.Repeat("code line\n", 3000))
	s.Text = b.String()
	d := drawn(t, s)
	if len(d.messages) < 3 {
		t.Fatalf("%d messages", len(d.messages))
	}
	all := string(encode(t, d))
	for i := range 400 {
		for _, want := range []string{fmt.Sprintf("Paragraph %d ", i), fmt.Sprintf(`"item %d"`, i)} {
			if !strings.Contains(all, want) {
				t.Fatalf("%q is lost", want)
			}
		}
	}
	if n := strings.Count(all, "code line"); n < 3000 {
		t.Errorf("%d of 3000 lines of code are there", n)
	}
}

// What people are told of time is readable at its largest too.
func TestLargestReminder(t *testing.T) {
	big := func(n int) string { return strings.Repeat("𝕏", n) }
	r := testRequest(refundArgs)
	r.Preview, r.Facts.AskerName, r.Facts.Asker = big(9000), big(500), "operator:x"
	r.Plan.Stages[0].Approver, r.Joined = big(500), []string{big(500), big(500), big(500)}
	s := sightOf(r)
	s.Surface.Kind, s.Surface.Note, s.Surface.To = store.SurfaceNotice, store.NoteReminder, "user:U0002"
	drawn(t, s)
	over := closed(r, approvers.Rejected, "", "", big(5000))
	over.ClosedBy, over.ClosedName, over.ClosedRole = "operator:x", big(200), big(200)
	s.Request = &over
	drawn(t, s)
}

func TestLargestStandIn(t *testing.T) {
	big := func(n int) string { return strings.Repeat("𝕏", n) }
	a := approvers.Absence{Who: "operator:x", Version: 1, Name: big(500), From: noon, Until: noon.Add(time.Hour), Delegate: "T0001/U0002"}
	for range 100 {
		c := approvers.Cover{Role: big(500)}
		for range 100 {
			c.Lacks = append(c.Lacks, big(200))
		}
		a.Covers = append(a.Covers, c)
	}
	s := sightOf(testRequest(refundArgs))
	s.Surface = store.Surface{ID: "s_1", Kind: store.SurfaceStandIn, Ref: "operator:x", Step: 1, To: "user:U0002"}
	s.Request, s.Execution, s.Absence = nil, nil, &a
	drawn(t, s)
}
