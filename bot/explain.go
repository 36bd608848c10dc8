package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/directory"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/store"
)

// explainer says who has to approve a call, why, and what has happened. explainer answers the subcommands explain and
// history, and the shortcut on messages. explainer changes no request, and tells people only about requests that
// concern them, or that a message shows to them.
type explainer struct {
	*core
	identities *Identities
	ephemeral  *ephemeral
	modals     *modals
}

// explain answers /countersign explain. For the name of a tool, the answer says who would have to approve a call, and
// why. For a request, the answer says who has to approve the request, why, and what has happened so far.
func (b *explainer) explain(ctx context.Context, c command, text string) (*block.Builder, error) {
	first, rest := firstWord(text)
	if first == "" {
		return nil, notClear("Say what: %s explain issue_refund {\"amount\": 20} for a call as if you asked for it here, or %s explain and the link of a card.", c.Command, c.Command)
	}
	who, err := b.identities.member(ctx, c.User, b.Views.Policy())
	if err != nil {
		return nil, err
	}
	if directory.Barred(who) {
		return block.Paragraph(block.Say("I explain this to full members of this workspace only.")), nil
	}
	words := b.words()
	ids, err := b.requestsNamed(ctx, first)
	switch {
	case err != nil:
		return nil, err
	case len(ids) > 0:
		return b.explainRequests(ctx, words, who, ids, true)
	case strings.HasPrefix(first, "req") || strings.HasPrefix(first, "<http") || strings.HasPrefix(first, "http"):
		return nil, notClear("I don't know that request. %s history lists yours.", c.Command)
	}
	return b.explainCall(ctx, words, c, who, first, rest)
}

// words returns the words that explain calls under the policy in force.
func (b *explainer) words() form.Explainer {
	return form.Explainer{Policy: b.Views.Policy(), Now: b.Now()}
}

// cardLink matches a link to a message in Slack's format.
var cardLink = regexp.MustCompile(`/archives/([A-Z0-9]+)/p([0-9]{10})([0-9]{6})`)

// requestsNamed returns the requests that an id or a link to a message names.
func (b *explainer) requestsNamed(ctx context.Context, named string) ([]string, error) {
	if m := cardLink.FindStringSubmatch(named); m != nil {
		return b.requestsOn(ctx, m[1], m[2]+"."+m[3])
	}
	_, err := b.Views.Request(ctx, named)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return []string{named}, err
}

// requestsOn returns the requests that a message shows. If the message is not from the bot, or is not about a request,
// requestsOn returns no requests.
func (b *explainer) requestsOn(ctx context.Context, channel, ts string) (ids []string, err error) {
	s, _, err := b.Views.Delivery(ctx, channel, ts)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	vm, err := b.Views.Message(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	if vm.Request != nil {
		return []string{vm.Request.ID}, nil
	}
	for _, call := range vm.Calls {
		if call.Request != nil {
			ids = append(ids, call.Request.ID)
		}
	}
	return ids, nil
}

// maxExplained is the number of requests that the bot explains for one message: the first ones.
const maxExplained = 5

// explainRequests draws, for each request, who has to approve the request, why, and what has happened. If byName is
// set, the person gave an id or a link, and explainRequests explains only requests that concern the person. Otherwise
// the person used the shortcut on a message. The message shows the same information, so explainRequests explains all of
// its requests.
func (b *explainer) explainRequests(ctx context.Context, words form.Explainer, who approvers.Identity, ids []string, byName bool) (*block.Builder, error) {
	p := new(block.Builder)
	for i, id := range ids {
		if i == maxExplained {
			p.Para(block.Say("… and " + block.Plural(len(ids)-i, "more call") + " of the same message. Each has a card of its own, or can get one."))
			break
		}
		r, err := b.Views.Request(ctx, id)
		if err != nil {
			return nil, err
		}
		if byName && !concerns(r, who, words.Policy) {
			p.Para(block.Say("That request is between those who asked for it and those who may decide it."))
			continue
		}
		records, err := b.Views.Chain(ctx, id)
		if err != nil {
			return nil, err
		}
		words.Explanation(p, r, records)
	}
	return p, nil
}

// concerns reports whether a request concerns a person. A request concerns its requester, the people who decided it,
// and the people with a role that covers its tool.
func concerns(r approvers.Request, who approvers.Identity, p *approvers.Policy) bool {
	if slices.Contains(r.People(), who.ID) || who.Among(r.Facts.Requesters, r.Facts.Caller != nil) {
		return true
	}
	return slices.ContainsFunc(p.Approvers, func(role approvers.Role) bool { return role.Covers(r.Tool) && role.Holds(who) })
}

// typographic restores the straight quotes that Slack's message input replaces by typographic quotes.
var typographic = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‘", "'", "’", "'")

// explainCall draws who would have to approve a hypothetical call, if the person asked for it in this channel.
func (b *explainer) explainCall(ctx context.Context, words form.Explainer, c command, who approvers.Identity, tool, args string) (*block.Builder, error) {
	channel, err := b.channels.Name(ctx, c.Channel)
	if err != nil {
		return nil, err
	}
	agent := agentOffering(words.Policy, tool, approvers.ChannelRef{Channel: c.Channel, Name: channel, DM: strings.HasPrefix(c.Channel, "D")})
	def, known := b.Tools.Tool(tool)
	if !known {
		return nil, notClear("No tool is called “%s”. The policy names %s.", block.Visible(block.Clip(tool, block.MaxNameShown)), toolsNamed(words.Policy))
	}
	if args == "" {
		args = "{}"
	}
	raw := json.RawMessage(typographic.Replace(unescape.Replace(args)))
	t, _ := words.Policy.Tool(tool, agent)
	values, err := approvers.StrictArgs(raw, t.ReadsNumbers())
	if err != nil {
		return nil, notClear("These are not arguments: %s. Write them as JSON: %s explain %s {\"amount\": 20}", block.OneLine(strings.TrimPrefix(err.Error(), approvers.ErrArgs.Error()+": ")), c.Command, block.Name(tool))
	}
	call := approvers.Call{
		Tool: tool, Effect: def.Effect, Requesters: []approvers.PersonID{who.ID}, Authors: []approvers.PersonID{who.ID},
		Facts: approvers.Facts{
			Args: values, Requester: c.User, Agent: agent, Now: b.Now(), Conversation: approvers.ConversationFacts{ID: "explain", Channel: c.Channel, DM: strings.HasPrefix(c.Channel, "D")},
		},
	}
	plan, steps := words.Policy.Explain(call)
	p := new(block.Builder)
	p.Para(block.Say("If you asked for ").Code(block.Name(tool)).Say(" here, with the arguments that you wrote:"))
	words.PlanOutlook(p, plan)
	var lines []*block.RichText
	for i, step := range steps {
		if i == maxSteps {
			lines = append(lines, block.Say("… and "+block.Plural(len(steps)-i, "more step")))
			break
		}
		lines = append(lines, block.Say(fmt.Sprintf("%d. %s", i+1, block.Clip(block.OneLine(step), block.MaxNote))))
	}
	p.Para(append([]*block.RichText{new(block.RichText).Strong("How the policy decides:")}, lines...)...)
	if fault := checkOf(def, raw); fault != "" {
		p.Para(block.Say("⚠️ ").Strong("With these arguments, the tool would refuse the call before that: ").Say(block.Clip(block.Visible(fault), block.MaxSentence)))
	}
	return p, nil
}

// maxSteps is the maximum number of steps of a plan that are shown.
const maxSteps = 20

// agentOffering returns the channel's agent if this agent offers the tool. Otherwise agentOffering returns the first
// agent that offers the tool.
func agentOffering(p *approvers.Policy, tool string, at approvers.ChannelRef) string {
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
	return argument.List(names)
}

// checkOf returns the errors of the arguments against the schema, or "". The text does not include the values of
// arguments.
func checkOf(tool workflow.Tool, args json.RawMessage) string {
	if tool.Check == nil {
		return ""
	}
	if err := tool.Check(args); err != nil {
		return strings.TrimPrefix(err.Error(), approvers.ErrArgs.Error()+": ")
	}
	return ""
}

// explainMessage answers the shortcut "Explain this approval". explainMessage explains the requests of a message: who
// has to approve them, why, and what has happened. The explanation fills the modal that was opened when the shortcut
// arrived.
func (b *explainer) explainMessage(ctx context.Context, d delivered, i interaction) error {
	v, err := b.messageExplained(ctx, i)
	if err != nil && d.tries < clickTries {
		return err
	}
	if err != nil {
		b.Log.ErrorContext(ctx, "a message could not be explained", "inbox", d.id, "error", err)
		v = form.TextModal(control.ExplainShortcut, block.Say("I could not look this up. Please try again in a moment."))
	}
	err = b.modals.fill(ctx, d.id, d.at, v)
	switch {
	case errors.Is(err, errFormRefused): // the modal shows the refusal
	case errors.Is(err, errNoForm):
		b.Log.InfoContext(ctx, "a form could not be shown", "inbox", d.id, "cause", err)
		channel, _ := i.message()
		b.ephemeral.reply(ctx, ephemeralReply{user: i.User.ID, channel: channel, thread: i.Posted.ThreadTS, responseURL: i.ResponseURL}, formNotOpened(err))
	case err != nil && d.tries < clickTries:
		return err
	case err != nil:
		b.Log.ErrorContext(ctx, "a form could not be shown", "inbox", d.id, "error", err)
	}
	return b.Intake.Done(ctx, d.id, "")
}

func (b *explainer) messageExplained(ctx context.Context, i interaction) (slack.ModalViewRequest, error) {
	if err := b.checkOrigin(ctx, i.origin()); errors.Is(err, errWorkspace) {
		return form.TextModal(control.ExplainShortcut, block.Say("I explain this to members of my own workspace only.")), nil
	} else if err != nil {
		return slack.ModalViewRequest{}, err
	}
	who, err := b.identities.member(ctx, i.User.ID, b.Views.Policy())
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	if directory.Barred(who) {
		return form.TextModal(control.ExplainShortcut, block.Say("I explain this to full members of this workspace only.")), nil
	}
	channel, ts := i.message()
	ids, err := b.requestsOn(ctx, channel, ts)
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	if len(ids) == 0 {
		return form.TextModal(control.ExplainShortcut, block.Say("Nobody is asked for an approval in this message, so there is nothing to explain. Use this on a card of mine, or on a line in a thread that says that something waits.")), nil
	}
	p, err := b.explainRequests(ctx, b.words(), who, ids, false)
	if err != nil {
		return slack.ModalViewRequest{}, err
	}
	b.identities.reader(ctx, i.User.ID).LocalizeBlocks(p.Blocks)
	return form.Modal(form.Titles[control.ExplainShortcut], p), nil
}
