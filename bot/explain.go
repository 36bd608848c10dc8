package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// explain answers /countersign explain: who would have to allow a call, and why; or of a request who has to, and what has happened.
func (b *Bot) explain(ctx context.Context, c command, text string) (*page, error) {
	first, rest, _ := strings.Cut(text, " ")
	if first == "" {
		return nil, notClear("Say what: %s explain issue_refund {\"amount\": 20} for a call as if you asked for it here, or %s explain and the link of a card.", c.Command, c.Command)
	}
	who, err := b.member(ctx, c.User, b.Desk.Policy())
	if err != nil {
		return nil, err
	}
	if barred(who) {
		return paragraph(say("I explain this to full members of this workspace only.")), nil
	}
	view, err := b.sceneFor(ctx, c.User)
	if err != nil {
		return nil, err
	}
	ids, err := b.requestsNamed(ctx, first)
	switch {
	case err != nil:
		return nil, err
	case len(ids) > 0:
		return b.explainRequests(ctx, view, who, ids, true)
	case strings.HasPrefix(first, "req") || strings.HasPrefix(first, "<http") || strings.HasPrefix(first, "http"):
		return nil, notClear("I don't know that request. %s history lists yours.", c.Command)
	}
	return b.explainCall(ctx, view, c, who, first, strings.TrimSpace(rest))
}

// sceneFor is what is drawn for one person from the policy alone.
func (b *Bot) sceneFor(ctx context.Context, user string) (scene, error) {
	me, err := b.whoAmI(ctx)
	return scene{Sight: desk.Sight{Policy: b.Desk.Policy(), Now: b.Now()}, url: me.URL, reader: b.reader(ctx, user)}, err
}

// cardLink is a link to a message as Slack writes it.
var cardLink = regexp.MustCompile(`/archives/([A-Z0-9]+)/p([0-9]{10})([0-9]{6})`)

// requestsNamed finds the requests that an id or a link to a message names.
func (b *Bot) requestsNamed(ctx context.Context, named string) ([]string, error) {
	if m := cardLink.FindStringSubmatch(named); m != nil {
		return b.requestsOn(ctx, m[1], m[2]+"."+m[3])
	}
	_, err := b.Desk.Request(ctx, named)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return []string{named}, err
}

// requestsOn lists the requests that a message is about; none for what is no message of the bot's about one.
func (b *Bot) requestsOn(ctx context.Context, channel, ts string) (ids []string, err error) {
	s, _, err := b.Desk.Showing(ctx, channel, ts)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sight, err := b.Desk.See(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	if sight.Request != nil {
		return []string{sight.Request.ID}, nil
	}
	for _, call := range sight.Calls {
		if call.Request != nil {
			ids = append(ids, call.Request.ID)
		}
	}
	return ids, nil
}

// maxExplained bounds how many requests of one message are explained.
const maxExplained = 5

// explainRequests says of each request who has to allow it, why, and what has happened. By name, only those whom it concerns are told: whoever sees a card sees
// it all there.
func (b *Bot) explainRequests(ctx context.Context, view scene, who approvers.Identity, ids []string, byName bool) (*page, error) {
	p := new(page)
	for i, id := range ids {
		if i == maxExplained {
			p.para(say("… and " + plural(len(ids)-i, "more call") + " of the same message. Each has a card of its own, or can be put on one."))
			break
		}
		r, err := b.Desk.Request(ctx, id)
		if err != nil {
			return nil, err
		}
		if byName && !concerns(r, who, view.Policy) {
			p.para(say("That request is between those who asked for it and those who may decide it."))
			continue
		}
		records, err := b.Desk.Chain(ctx, id)
		if err != nil {
			return nil, err
		}
		view.explanation(p, r, records)
	}
	return p, nil
}

// concerns reports whether a request is somebody's business: they asked for it, had a say in it, or hold a role that decides about its tool.
func concerns(r approvers.Request, who approvers.Identity, p *approvers.Policy) bool {
	if slices.Contains(r.People(), who.ID) || slices.Contains(r.Facts.Requesters, who.ID) {
		return true
	}
	return slices.ContainsFunc(p.Approvers, func(role approvers.Role) bool { return role.Covers(r.Tool) && role.Holds(who) })
}

// explanation draws who has to allow a request, why, and what has happened.
func (s scene) explanation(p *page, r approvers.Request, records []approvers.AuditRecord) {
	sign, risk := riskWords(r.Plan.Risk, r.Effect)
	p.para(new(prose).strong(clip(whatHappens(r.Preview, r.Tool), maxHeadline)), say(sign+" "+risk+" · ").code(name(r.Tool)), new(prose).soft("Request "+r.ID))
	p.para(say("🧭 Why people are asked: " + inWords(r.Plan.Why) + "."))
	var who []*prose
	for i, st := range r.Plan.Stages {
		if i == maxStagesTold {
			who = append(who, say("… and "+plural(len(r.Plan.Stages)-i, "more stage")))
			break
		}
		line := say(fmt.Sprintf("👥 Stage %d of %d: %s · ", i+1, len(r.Plan.Stages), howMany(st.Quorum))).also(s.deciders(st))
		if i == r.Stage && r.State == approvers.Pending {
			line.say(s.joined(r)).also(s.invited(r)).strong(" · here it waits").say(fmt.Sprintf(", %d agreed", r.At(i)))
		}
		who = append(who, line)
	}
	p.para(who...)
	if !r.Plan.SelfOK {
		p.para(say("Those who asked for it can't decide it."))
	}
	if r.State == approvers.Pending {
		p.para(s.otherwise(r)...)
	} else {
		p.para(say(endSign[r.State] + " ").also(s.ending(r)))
	}
	lines, _ := newest(s.happened(records), 0)
	p.para(append([]*prose{new(prose).strong("What has happened so far:")}, lines...)...)
}

// howMany says how many people a stage takes.
func howMany(quorum int) string {
	if quorum < 2 {
		return "1 person"
	}
	return fmt.Sprintf("%d people", quorum)
}

// deciders names whom a stage is for: each role with its members, as the policy has them.
func (s scene) deciders(st approvers.Stage) *prose {
	out := new(prose)
	for i, named := range st.Roles() {
		if i > 0 {
			out.say(" or ")
		}
		out.strong(s.title(named))
		role, ok := s.Policy.Role(named)
		if !ok {
			continue
		}
		for j, m := range role.Members {
			if j == maxPeopleTold {
				out.say(fmt.Sprintf(" and %d more", len(role.Members)-j))
				break
			}
			out.say(map[bool]string{true: ": ", false: ", "}[j == 0])
			switch m.Kind {
			case approvers.MemberUser:
				out.person(approvers.PersonID(m.Value), "")
			case approvers.MemberGroup:
				out.say("the user group @" + name(m.Value))
			default:
				out.say(name(m.Value))
			}
		}
	}
	if st.Group != "" {
		out.say(", of the user group @" + name(st.Group))
	}
	return out
}

// typographic are the quotes that Slack's input makes of straight ones.
var typographic = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‘", "'", "’", "'")

// explainCall says who would have to allow a call that nobody has asked for, as if the person asked for it here.
func (b *Bot) explainCall(ctx context.Context, view scene, c command, who approvers.Identity, tool, args string) (*page, error) {
	channel, err := b.places.name(ctx, c.Channel)
	if err != nil {
		return nil, err
	}
	agent := agentOffering(view.Policy, tool, approvers.Place{Channel: c.Channel, Name: channel, DM: strings.HasPrefix(c.Channel, "D")})
	def, known := b.Tools.Tool(tool)
	if !known {
		return nil, notClear("No tool is called “%s”. The policy names %s.", Visible(clip(tool, maxNameShown)), toolsNamed(view.Policy))
	}
	if args == "" {
		args = "{}"
	}
	raw := json.RawMessage(typographic.Replace(unescape.Replace(args)))
	t, _ := view.Policy.Tool(tool, agent)
	values, err := approvers.StrictArgs(raw, t.ReadsNumbers())
	if err != nil {
		return nil, notClear("These are no arguments: %s. Write them as JSON: %s explain %s {\"amount\": 20}", oneLine(strings.TrimPrefix(err.Error(), approvers.ErrArgs.Error()+": ")), c.Command, name(tool))
	}
	call := approvers.Call{
		Tool: tool, Effect: def.Effect, Requesters: []approvers.PersonID{who.ID}, Authors: []approvers.PersonID{who.ID},
		Facts: approvers.Facts{
			Args: values, Requester: c.User, Agent: agent, Now: b.Now(), Conversation: approvers.ConversationFacts{ID: "explain", Channel: c.Channel, DM: strings.HasPrefix(c.Channel, "D")},
		},
	}
	plan, steps := view.Policy.Explain(call)
	p := new(page)
	p.para(say("If you asked for ").code(name(tool)).say(" here, with the arguments that you wrote:"))
	view.outlook(p, plan)
	var lines []*prose
	for i, step := range steps {
		if i == maxSteps {
			lines = append(lines, say("… and "+plural(len(steps)-i, "more step")))
			break
		}
		lines = append(lines, say(fmt.Sprintf("%d. %s", i+1, clip(oneLine(step), maxNote))))
	}
	p.para(append([]*prose{new(prose).strong("How the policy comes to that:")}, lines...)...)
	if fault := checkOf(def, raw); fault != "" {
		p.para(say("⚠️ ").strong("With these arguments it would not get that far: ").say(clip(Visible(fault), maxSentence)))
	}
	return p, nil
}

// maxSteps bounds how many steps of a plan are told.
const maxSteps = 20

// outlook says what would become of a call.
func (s scene) outlook(p *page, plan approvers.Plan) {
	switch plan.Verdict {
	case approvers.Auto:
		p.para(say("✅ ").strong("It would run without asking anybody."))
	case approvers.Refuse:
		p.para(say("🚫 ").strong("It would be refused: nobody could allow it.").say(" Whoever runs me can change the policy."))
	case approvers.Observed:
		p.para(say("👁️ ").strong("It would not be run: the policy only observes it for now."))
	default:
		lines := []*prose{say("✋ ").strong("It would wait for people.")}
		for i, st := range plan.Stages {
			lines = append(lines, say(fmt.Sprintf("👥 Stage %d of %d: %s · ", i+1, len(plan.Stages), howMany(st.Quorum))).also(s.deciders(st)))
		}
		if !plan.SelfOK {
			lines = append(lines, say("You could not allow it yourself."))
		}
		p.para(lines...)
	}
}

// agentOffering is the agent that would be asked: the one of the place, or else the first that offers the tool.
func agentOffering(p *approvers.Policy, tool string, at approvers.Place) string {
	if a, ok := p.AgentFor(at); ok && a.Offers(tool) {
		return a.Name
	}
	for _, a := range p.Agents {
		if a.Offers(tool) {
			return a.Name
		}
	}
	return ""
}

// toolsNamed lists the tools that the policy names.
func toolsNamed(p *approvers.Policy) string {
	var names []string
	for _, t := range p.Tools {
		names = append(names, t.Name)
	}
	return argumentList(names)
}

// checkOf is what a tool's schema has against arguments, or "". Values are not repeated.
func checkOf(tool desk.Tool, args json.RawMessage) string {
	if tool.Check == nil {
		return ""
	}
	if err := tool.Check(args); err != nil {
		return strings.TrimPrefix(err.Error(), approvers.ErrArgs.Error()+": ")
	}
	return ""
}
