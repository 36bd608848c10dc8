package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/argument"
	"countersign/bot/render/form"
	"countersign/bot/render/wording"
	"countersign/store"
)

var (
	teo    = approvers.Who("T0001", "U0002")
	ingrid = approvers.Who("T0001", "U0003")
	kenji  = approvers.Who("T0001", "U0004")
	sam    = approvers.Who("T0001", "U0100")
)

// discussed returns a request with remarks.
func discussed() approvers.Request {
	r := bottest.Request(bottest.RefundArgs)
	r.Remarks = []approvers.Remark{
		{Kind: approvers.Question, By: teo, Name: "Teo", Role: "team-lead", Text: "Why not 39.99?\nShipping is not refunded.", At: bottest.Noon.Add(time.Minute)},
		{Kind: approvers.Comment, By: ingrid, Name: "Ingrid", Role: "finance-director", Text: "third one this week — 💬 Sam: <!channel> it is fine \u202e", At: bottest.Noon.Add(2 * time.Minute)},
		{Kind: approvers.Answer, To: 0, By: sam, Name: "Sam", Text: "it arrived broken, so shipping too", At: bottest.Noon.Add(3 * time.Minute)},
		{Kind: approvers.Question, By: ingrid, Name: "Ingrid", Role: "finance-director", Text: "is there a photo?", At: bottest.Noon.Add(4 * time.Minute)},
	}
	return r
}

// editedAnswer returns a request with remarks. The answer among the remarks was edited or deleted later.
func editedAnswer(deleted bool) approvers.Request {
	r := discussed()
	r.Remarks[2].MessageTS = "1772452900.000100"
	r.Remarks[2].MessageEdit = &approvers.MessageEdit{At: bottest.Noon.Add(5 * time.Minute), Deleted: deleted}
	if !deleted {
		r.Remarks[2].MessageEdit.Text = "it arrived late, so shipping too"
	}
	return r
}

// manyRoles returns a request that waits for two people of several roles. One person has rejected, and another person
// was added.
func manyRoles() approvers.Request {
	r := bottest.Request(bottest.RefundArgs)
	r.Plan.Routed = false
	r.Plan.Stages = []approvers.Stage{
		{Approver: "team-lead", Or: []string{"finance-director"}, Quorum: 2, Rejects: 2},
		{Approver: "finance-director", Group: "emea-finance", Quorum: 1},
	}
	r = bottest.ApprovedBy(r, "U0002", "Teo", "team-lead", 0)
	r.Decisions = append(r.Decisions, approvers.Decision{Kind: approvers.Reject, By: ingrid, Name: "Ingrid", Role: "finance-director",
		Digest: r.Digest, Reason: "no photo\nof it", At: bottest.Noon.Add(3 * time.Minute)})
	r.Invited = []approvers.Invite{{Who: kenji, Name: "Kenji", Role: "finance-director", By: teo, ByName: "Teo", At: bottest.Noon}}
	return r
}

// fallenTwice returns a request whose approval and rejection no longer count, because a director changed the amount.
func fallenTwice() approvers.Request {
	r := bottest.Request(bottest.RefundArgs)
	r.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2, Rejects: 2}}
	r = bottest.ApprovedBy(r, "U0002", "Teo", "team-lead", 0)
	r.Decisions = append(r.Decisions, approvers.Decision{Kind: approvers.Reject, By: ingrid, Name: "Ingrid", Role: "finance-director", Stage: 1, Digest: r.Digest, At: bottest.Noon})
	for i := range r.Decisions {
		r.Decisions[i].Fallen, r.Decisions[i].Digest = true, "of the first arguments"
	}
	r.Args = json.RawMessage(strings.Replace(bottest.RefundArgs, "49.990", "39.99", 1))
	r.Edits = []approvers.Edit{{By: kenji, Name: "Kenji", Role: "finance-director", At: bottest.Noon.Add(4 * time.Minute), Before: json.RawMessage(bottest.RefundArgs), After: r.Args, Reason: "no shipping"}}
	return r
}

func copyFor(r approvers.Request, to approvers.PersonID) view.Model {
	s := bottest.ViewModel(r)
	s.Message.To = "user:" + to.User()
	return s
}

// The function "as" returns an outbox message of another kind about the same request. The request's card is
// already in a channel.
func as(s view.Model, kind store.OutboxKind, note store.Note, step int) view.Model {
	s.Message.Kind, s.Message.Note, s.Message.Step = kind, note, step
	s.Cards = []store.OutboxMessage{{Kind: store.OutboxCard, To: "channel:#support-approvals", Channel: "C0002", TS: "1772452801.000200"},
		{Kind: store.OutboxCard, To: "user:U0004", Channel: "D0004", TS: "1772452802.000200"}}
	return s
}

func TestPeoplesActionsOnCards(t *testing.T) {
	alone := editedAnswer(false)
	alone.Remarks = []approvers.Remark{alone.Remarks[0], alone.Remarks[2]}
	waiting := discussed()
	waiting.Remarks = waiting.Remarks[:1]
	asked := as(bottest.ViewModel(waiting), store.OutboxQuestion, "", 0)
	asked.Message.To, asked.Request.Facts.Requesters = "conversation:conv_1", []approvers.PersonID{sam, approvers.Who("T0001", "U0101")}
	over := as(bottest.ViewModel(bottest.Closed(waiting, approvers.Rejected, "U0002", "team-lead", "too late to ask")), store.OutboxQuestion, "", 0)
	agreed := bottest.ApprovedBy(manyRoles(), "U0004", "Kenji", "finance-director", 0)
	policy := fallenTwice()
	policy.Edits = nil
	policy.Plan.Why = append(policy.Plan.Why, approvers.ChangedMeanwhile, "issue_refund is critical risk")
	again := bottest.ApprovedBy(fallenTwice(), "U0002", "Teo", "team-lead", 0)
	again.Stage = 1
	for name, s := range map[string]view.Model{
		"card_remarks":       bottest.ViewModel(discussed()),
		"card_answer_edited": bottest.ViewModel(alone),
		"card_roles":         bottest.ViewModel(manyRoles()),
		"card_handed_on":     copyFor(manyRoles(), kenji),
		"card_own_agreed":    copyFor(manyRoles(), teo),
		"card_revoked":       bottest.ViewModel(bottest.Closed(bottest.ApprovedBy(bottest.Request(bottest.RefundArgs), "U0002", "Teo", "team-lead", 0), approvers.Revoked, "U0002", "team-lead", "the wrong order")),
		"card_all_agreed":    bottest.ViewModel(bottest.Closed(agreed, approvers.Consumed, "U0004", "finance-director", "")),

		"question":          asked,
		"question_answered": as(bottest.ViewModel(discussed()), store.OutboxQuestion, "", 0),
		"question_over":     over,
		"question_deleted":  as(bottest.ViewModel(editedAnswer(true)), store.OutboxQuestion, "", 0),

		"notice_answered":      as(copyFor(discussed(), teo), store.OutboxNotice, store.NoteAnswered, 0),
		"notice_answer_edited": as(copyFor(editedAnswer(false), teo), store.OutboxNotice, store.NoteAnswerEdited, 0),
		"notice_answer_gone":   as(copyFor(editedAnswer(true), teo), store.OutboxNotice, store.NoteAnswerEdited, 0),
		"notice_invited":       as(copyFor(manyRoles(), kenji), store.OutboxNotice, store.NoteInvited, 0),
		"notice_fallen":        as(copyFor(fallenTwice(), teo), store.OutboxNotice, store.NoteFallen, 1),
		"notice_fallen_no":     as(copyFor(fallenTwice(), ingrid), store.OutboxNotice, store.NoteFallen, 1),
		"notice_fallen_again":  as(copyFor(again, teo), store.OutboxNotice, store.NoteFallen, 1),
		"notice_fallen_policy": as(copyFor(policy, teo), store.OutboxNotice, store.NoteFallen, 0),
		"notice_fallen_over":   as(copyFor(bottest.Closed(fallenTwice(), approvers.Approved, "U0004", "finance-director", ""), teo), store.OutboxNotice, store.NoteFallen, 1),
	} {
		t.Run(name, func(t *testing.T) { bottest.Golden(t, name, drawn(t, s).Messages[0]) })
	}
}

// One person's copy of a card offers only the actions that this person can take now. A card in a channel offers all
// actions to everybody.
func TestButtonsBesideDeciding(t *testing.T) {
	for name, c := range map[string]struct {
		s    view.Model
		want string
	}{
		"nobody has agreed":                    {bottest.ViewModel(bottest.Request(bottest.RefundArgs)), "approve reject modify arguments"},
		"somebody has, in a channel":           {bottest.ViewModel(manyRoles()), "approve reject modify arguments"},
		"a copy of somebody who has":           {copyFor(manyRoles(), teo), "take_back arguments"},
		"a copy of somebody who has not":       {copyFor(manyRoles(), kenji), "approve reject modify arguments"},
		"a copy of somebody who is against":    {copyFor(manyRoles(), ingrid), "approve reject modify arguments"},
		"approved, not started":                {bottest.ViewModel(bottest.Closed(bottest.Request(bottest.RefundArgs), approvers.Approved, "U0002", "team-lead", "")), "arguments take_back"},
		"started":                              {bottest.ViewModel(bottest.Closed(bottest.Request(bottest.RefundArgs), approvers.Consumed, "U0002", "team-lead", "")), "arguments"},
		"an answered question":                 {as(bottest.ViewModel(discussed()), store.OutboxQuestion, "", 0), ""},
		"an open one":                          {as(bottest.ViewModel(discussed()), store.OutboxQuestion, "", 3), "answer"},
		"an open one of what was decided":      {as(bottest.ViewModel(bottest.Closed(discussed(), approvers.Expired, "", "", "")), store.OutboxQuestion, "", 3), ""},
		"a notice, which leads to the card":    {as(copyFor(discussed(), teo), store.OutboxNotice, store.NoteAnswered, 0), ""},
		"what asks for typing, in a channel":   {bottest.ViewModel(critical(manyRoles())), "approve_typed reject modify arguments"},
		"somebody else's approval fell, alone": {bottest.ViewModel(fallenTwice()), "approve reject modify arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(actionsOf(drawn(t, c.s)), " "); got != c.want {
				t.Errorf("%s; want %s", got, c.want)
			}
		})
	}
}

// The requester's thread says who has to decide a call, and whether somebody has rejected it.
func TestStepOfSeveralRoles(t *testing.T) {
	one, none := manyRoles(), manyRoles()
	none.Decisions = none.Decisions[:1]
	for want, r := range map[string]approvers.Request{
		"Waits for Team Lead or Finance Director or <@U0004> (stage 1 of 2), 1 of 2 agreed, 1 of 2 against. Rejected": one,
		"Waits for Team Lead or Finance Director or <@U0004> (stage 1 of 2), 1 of 2 agreed. Rejected":                 none,
	} {
		if got := wording.Under(bottest.ViewModel(r).Policy).Waiting(r).Mrkdwn(); !strings.HasPrefix(got, want) {
			t.Errorf("%q; want it to begin with %q", got, want)
		}
	}
}

func critical(r approvers.Request) approvers.Request {
	r.Plan.Risk = approvers.Critical
	return r
}

// No text can imitate another person's answer. Each remark begins a line with one of the bot's signs, and contains no
// line breaks.
func TestRemarksCannotBeFaked(t *testing.T) {
	r := bottest.Request(bottest.RefundArgs)
	r.Remarks = []approvers.Remark{{Kind: approvers.Comment, By: teo, Role: "team-lead", Text: "ok\n   💬 <@U0100>: approve it\n❓ x"}}
	lines := wording.Under(bottest.ViewModel(r).Policy).Remarks(r)
	if len(lines) != 1 || strings.Contains(lines[0].Mrkdwn(), "\n") || strings.Contains(lines[0].Mrkdwn(), "<@U0100>") {
		t.Errorf("%d lines: %q", len(lines), lines[0].Mrkdwn())
	}
}

// Notices and questions at maximum size are within Slack's limits.
func TestLargestNotices(t *testing.T) {
	big := func(n int) string { return strings.Repeat("𝕏", n) }
	r := fallenTwice()
	r.Preview, r.Facts.AskerName, r.Edits[0].Reason, r.Edits[0].Name, r.Edits[0].Role = big(9000), big(300), big(3000), big(300), big(300)
	r.Edits[0].Before, r.Edits[0].After = json.RawMessage(`{"a":"`+big(argument.MaxDiff/2-50)+`"}`), json.RawMessage(`{"a":"`+big(argument.MaxDiff/2-50)+`y"}`)
	for i := range 30 {
		r.Plan.Why = append(r.Plan.Why, big(200))
		r.Facts.Requesters = append(r.Facts.Requesters, approvers.Who("T0001", fmt.Sprintf("U9%03d", i)))
	}
	r.Plan.Stages[0] = approvers.Stage{Approver: big(200), Or: []string{big(200), big(201), big(202), big(203)}, Group: big(100), Quorum: 9, Rejects: 9}
	r.Remarks = []approvers.Remark{{Kind: approvers.Question, By: teo, Role: big(200), Text: big(3000)}, {Kind: approvers.Answer, By: sam, Text: big(3000), MessageEdit: &approvers.MessageEdit{Text: big(9000)}}}
	for _, note := range []store.Note{store.NoteFallen, store.NoteAnswered, store.NoteAnswerEdited, store.NoteInvited} {
		for step := range 2 {
			drawn(t, as(copyFor(r, teo), store.OutboxNotice, note, step))
		}
	}
	drawn(t, as(bottest.ViewModel(r), store.OutboxQuestion, "", 0))
	r.Remarks = r.Remarks[:1]
	drawn(t, as(bottest.ViewModel(r), store.OutboxQuestion, "", 0))
}

// If one rejection does not end a request, no form says that it does.
func TestRejectFormOfOneOfSeveral(t *testing.T) {
	one, other := refundOf("ORD-123", "49.99"), refundOf("ORD-124", "20")
	one.Plan.Stages[0].Rejects = 2
	s := form.ClickTarget{Token: testToken(one).ButtonToken, Model: bundleOf(one, other)}
	for _, c := range s.Calls {
		s.Shown.Shows = append(s.Shown.Shows, store.Shown{Request: c.Request.ID, Digest: c.Request.Digest, Whole: true})
	}
	for name, c := range map[string]struct {
		form slack.ModalViewRequest
		want string
	}{
		"one call":  {form.Reject(one, testToken(one), form.ClickTarget{}), "When 2 people have rejected it, it will not run"},
		"all calls": {form.RejectAll(s, approvers.Identity{ID: approvers.Who("T0001", "U0002"), Name: "Teo"}), "(will not run when 2 people have rejected it)"},
	} {
		form, err := json.Marshal(c.form.Blocks)
		if text := string(form); err != nil || strings.Count(text, c.want) != 1 || strings.Contains(text, "none of them will run") {
			t.Errorf("%s: %s, %v", name, form, err)
		}
	}
}
