package form

import (
	"fmt"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
)

// Explainer explains requests and calls under a policy. It says who has to approve them, why, and what has happened.
type Explainer struct {
	Policy *approvers.Policy
	Now    time.Time
	tool   wording.ToolDescription // the description of the request's tool
}

// Explanation draws the subject of a request, who has to approve it and why, and what has happened so far.
func (x Explainer) Explanation(p *block.Builder, r approvers.Request, records []approvers.AuditRecord) {
	p.Para(new(block.RichText).Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxHeadline)), new(block.RichText).Soft("Request "+r.ID))
	x.explain(p, r, records)
}

// explain draws who has to approve a request and why, and what has happened so far.
func (x Explainer) explain(p *block.Builder, r approvers.Request, records []approvers.AuditRecord) {
	w := wording.Under(x.Policy)
	tool := block.Say("Tool: ").Code(block.Name(r.Tool))
	if x.tool.Text != "" {
		tool.Say(" · " + x.tool.Text)
	}
	p.Para(wording.RiskLine(r).Say(". "+riskMeaning[r.Plan.Risk]), tool.Say(" "+effectWords[r.Effect]), sourceClaims(x.tool))
	p.Para(block.Say("🧭 Why people are asked: " + wording.InWords(r.Plan.Why) + "."))
	var who []*block.RichText
	for i, st := range r.Plan.Stages {
		if i == block.MaxStagesTold {
			who = append(who, block.Say("… and "+block.Plural(len(r.Plan.Stages)-i, "more stage")))
			break
		}
		line := stageLine(w.Titles, i, len(r.Plan.Stages), st)
		if i == r.Stage && r.State == approvers.Pending {
			line.Say(w.EscalatedRoles(r)).Add(wording.InvitedPeople(r)).Strong(" · it waits here").Say(fmt.Sprintf(", %d agreed", r.At(i)))
		}
		who = append(who, line)
	}
	p.Para(who...)
	if !r.Plan.SelfOK {
		p.Para(block.Say("Those who asked for it can't decide it."))
	}
	p.Para(w.DecisionLines(r)...)
	if r.State == approvers.Pending {
		p.Para(w.IfNobodyActs(r, x.Now)...)
	} else {
		p.Para(block.Say(wording.EndSign(r) + " ").Add(w.Ending(r)))
	}
	if lines, _ := Newest(x.Timeline(records), 0); len(lines) > 0 {
		p.Para(append([]*block.RichText{new(block.RichText).Strong("What has happened so far:")}, lines...)...)
	}
}

// riskMeaning explains the risk levels of the policy.
var riskMeaning = map[approvers.Risk]string{
	approvers.Low: "By the policy it only reads.", approvers.Medium: "By the policy it changes something that can be changed back.",
	approvers.High: "By the policy it is hard or impossible to undo, or sensitive.", approvers.Critical: "By the policy it is about money, law or the public.",
}

// effectWords explains what the operator has declared about a second run of a tool.
var effectWords = map[approvers.Effect]string{
	approvers.ReadOnly:    "(it only reads)",
	approvers.Idempotent:  "(if it is interrupted, it is run again, and acts only once)",
	approvers.Unprotected: "(if it is interrupted, people are asked whether it happened)",
}

// sourceClaims lists what the tool's source declares about the tool.
func sourceClaims(t wording.ToolDescription) *block.RichText {
	if len(t.Claims) == 0 {
		return new(block.RichText)
	}
	return new(block.RichText).Soft("Declared by the tool's server, not verified: " + strings.Join(t.Claims, ", ") + ".")
}

// stageLine names the people of one of several stages.
func stageLine(t wording.Titles, i, stages int, st approvers.Stage) *block.RichText {
	line := block.Say("👥 ")
	if stages > 1 {
		line.Say(fmt.Sprintf("Stage %d of %d: ", i+1, stages))
	}
	return line.Say(howMany(st.Quorum) + " · ").Add(deciders(t, st))
}

// howMany returns, in words, how many people a stage requires.
func howMany(quorum int) string {
	if quorum < 2 {
		return "1 person"
	}
	return fmt.Sprintf("%d people", quorum)
}

// deciders names the people of a stage: each role with its members in the policy.
func deciders(t wording.Titles, st approvers.Stage) *block.RichText {
	out := new(block.RichText)
	for i, named := range st.Roles() {
		if i > 0 {
			out.Say(" or ")
		}
		out.Strong(t.Title(named))
		role, ok := t.Policy.Role(named)
		if !ok {
			continue
		}
		for j, m := range role.Members {
			if j == block.MaxPeopleTold {
				out.Say(fmt.Sprintf(" and %d more", len(role.Members)-j))
				break
			}
			out.Say(map[bool]string{true: ": ", false: ", "}[j == 0])
			switch m.Kind {
			case approvers.MemberUser:
				out.Person(approvers.PersonID(m.Value), "")
			case approvers.MemberGroup:
				out.Say("the user group @" + block.Name(m.Value))
			default:
				out.Say(block.Name(m.Value))
			}
		}
	}
	if st.Group != "" {
		out.Say(", of the user group @" + block.Name(st.Group))
	}
	return out
}

// PlanOutlook draws how a hypothetical call would be handled.
func (x Explainer) PlanOutlook(p *block.Builder, plan approvers.Plan) {
	switch plan.Verdict {
	case approvers.Auto:
		p.Para(block.Say("✅ ").Strong("It would run without asking anybody."))
	case approvers.Refuse:
		p.Para(block.Say("🚫 ").Strong("It would be refused: nobody could allow it.").Say(" The operator of this bot can change the policy."))
	case approvers.Observed:
		p.Para(block.Say("👁️ ").Strong("It would not be run: the policy only observes it for now."))
	default:
		lines := []*block.RichText{block.Say("✋ ").Strong("It would wait for people.")}
		for i, st := range plan.Stages {
			lines = append(lines, stageLine(wording.Titles{Policy: x.Policy}, i, len(plan.Stages), st))
		}
		if !plan.SelfOK {
			lines = append(lines, block.Say("You could not allow it yourself."))
		}
		p.Para(lines...)
	}
}

// Timeline describes a request's history from its audit records, oldest first. A message that was sent to Slack several
// times is mentioned once. The lines contain no secrets and no reasons, because the facts of audit records contain
// none.
func (x Explainer) Timeline(records []approvers.AuditRecord) (lines []*block.RichText) {
	shown, broken := false, false
	for _, a := range records {
		if a.Kind == approvers.AuditDecided {
			broken = a.Facts["break_glass"] != ""
		}
		if a.Kind == approvers.AuditShown && a.Facts["to"] != "" && a.Actor == "" {
			if shown {
				continue
			}
			shown = true
		}
		line := x.event(a)
		if a.Kind == approvers.AuditApproved && broken {
			line = block.Say("That replaced the approvals that were missing.")
		}
		if line.Empty() {
			continue
		}
		lines = append(lines, new(block.RichText).At(a.At, block.DayTime).Say(" · ").Add(line))
	}
	return lines
}

// event describes one record in words. For a record that people do not need, event returns an empty text.
func (x Explainer) event(a approvers.AuditRecord) *block.RichText { //nolint:cyclop // one case for each kind of record
	t, f := wording.Titles{Policy: x.Policy}, a.Facts
	by := func(words string) *block.RichText { return new(block.RichText).Person(a.Actor, "").Say(" " + words) }
	switch a.Kind {
	case approvers.AuditProposed:
		if asker := approvers.PersonID(f["asker"]); asker.Caller() != "" {
			return new(block.RichText).Say("The client ").Code(block.Name(asker.Caller())).Say(" asked for it.")
		}
		return block.Say("The agent asked for it.")
	case approvers.AuditShown:
		switch f[approvers.FactShownAs] {
		case "view":
			return by("read all of its arguments.")
		case control.ActReveal:
			return by("was shown the masked values.")
		}
		if a.Actor != "" {
			return new(block.RichText) // already described by the line about the decision
		}
		return block.Say("Shown to those who decide.")
	case approvers.AuditDenied:
		return by("tried to " + deniedAction(f["kind"]) + ", but may not.")
	case approvers.AuditDecided:
		return by(did[approvers.DecisionKind(f["kind"])] + t.InRole(f["role"]) + ".")
	case approvers.AuditAdvanced:
		if f["stage"] == "1" {
			return block.Say("The first stage began again, with " + f["risk"] + " risk.")
		}
		return block.Say("The next stage began, with " + f["risk"] + " risk.")
	case approvers.AuditApproved:
		return block.Say("All who were needed have agreed.")
	case approvers.AuditReplanned:
		return block.Say("The policy became stricter while it waited.")
	case approvers.AuditReopened:
		return block.Say("The policy became stricter, so it waits again.")
	case approvers.AuditEscalated:
		if f["again"] != "" {
			return block.Say("It was not decided yet: everybody was told once more.")
		}
		switch f["why"] {
		case "deactivated":
			return block.Say("The account of ").Person(approvers.PersonID(f["person"]), "").Say(" is deactivated: " + t.Title(f["role"]) + " was asked.")
		case "nobody":
			return block.Say("Nobody else could decide it: " + t.Title(f["role"]) + " was asked.")
		case "too_few":
			return block.Say("Fewer people could decide it than the stage needs: " + t.Title(f["role"]) + " was asked.")
		}
		return block.Say("It was not decided yet: " + t.Title(f["role"]) + " was asked as well.")
	case approvers.AuditReminded:
		return block.Say("Those who had not decided were reminded.")
	case approvers.AuditPreviewed:
		if f["says"] == "no" {
			return new(block.RichText).Code(block.Name(f["by"])).Say(" said that it would not succeed.")
		}
		return new(block.RichText).Code(block.Name(f["by"])).Say(previewedWords[f["state"]])
	case approvers.AuditMessageEdited:
		if f["remark"] != "" {
			return block.Say("An answer to a question about it was " + f["what"] + " later. The original answer counts.")
		}
		return block.Say("The message that asked for it was edited or deleted.")
	case approvers.AuditInvited:
		return new(block.RichText).Person(approvers.PersonID(f["person"]), "").Say(" was asked too" + t.InRole(f["role"]) + ".")
	case approvers.AuditRemarked:
		return by("left " + remarkWords[f["kind"]] + ".")
	case approvers.AuditGranted:
		return block.Say("A grant for calls like it was " + f["what"] + ".")
	case approvers.AuditClosed:
		return new(block.RichText).Strong(closedWords(approvers.State(f["state"]))).Add(ender(a.Actor)).Say(".")
	case approvers.AuditExecuting:
		return block.Say("It was started.")
	case approvers.AuditExecuted:
		if f["unrun"] != "" {
			return block.Say("It was not run.")
		}
		return block.Say("It ran: " + f["state"] + ".")
	case approvers.AuditUnknown:
		return block.Say("It was started, and its outcome is unknown. People are asked.")
	case approvers.AuditReported:
		return by("reported the outcome.")
	case approvers.AuditReturned:
		return block.Say("The agent was told.")
	case approvers.AuditErased:
		return block.Say("Its texts were erased.")
	}
	return new(block.RichText)
}

// The map "did" has the words for each kind of decision.
var did = map[approvers.DecisionKind]string{approvers.Approve: "approved it", approvers.Reject: "was against it", approvers.Modify: "changed its arguments"}

// deniedAction describes an action that was denied.
func deniedAction(kind string) string {
	if words := map[string]string{"approve": "approve it", "reject": "reject it", "modify": "change it", "withdraw": "withdraw it"}[kind]; words != "" {
		return words
	}
	return "do something with it"
}

var remarkWords = map[string]string{"question": "a question", "answer": "an answer", "comment": "a comment"}

// closedWords describes how a request ended.
func closedWords(s approvers.State) string {
	words := map[approvers.State]string{
		approvers.Rejected: "Rejected", approvers.Expired: "Expired", approvers.Withdrawn: "Withdrawn", approvers.Revoked: "Approval taken back",
		approvers.Voided: "Voided", approvers.Refused: "Refused by the policy",
	}[s]
	if words == "" {
		return "Ended"
	}
	return words
}

func ender(who approvers.PersonID) *block.RichText {
	if who == "" {
		return new(block.RichText)
	}
	return block.Say(" by ").Person(who, "")
}

// maxHappened is the number of history lines on a page. The page says how many lines it leaves out.
const maxHappened = 15

// Newest returns a page of lines; the first page has the newest lines. If there are lines older than those on the page,
// the page begins with a line that says how many.
func Newest(lines []*block.RichText, page int) (kept []*block.RichText, pages int) {
	pages = max(1, (len(lines)+maxHappened-1)/maxHappened)
	page = min(max(0, page), pages-1)
	end := len(lines) - page*maxHappened
	begin := max(0, end-maxHappened)
	kept = lines[begin:end]
	if begin > 0 {
		kept = append([]*block.RichText{block.Say(fmt.Sprintf("… %s before that.", block.Plural(begin, "line")))}, kept...)
	}
	return kept, pages
}

// previewedWords describes the states of a tool preview.
var previewedWords = map[string]string{
	"asked": " was asked, by a dry run, what it would do.", "made": " said what it would do.", "failed": " was asked what it would do, and there was no answer.",
}
