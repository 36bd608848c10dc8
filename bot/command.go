package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"countersign/approvers/workflow"
	"countersign/bot/render/block"
)

// command is a slash command as delivered by Slack.
type command struct {
	Command     string `json:"command"`
	Text        string `json:"text"`
	User        string `json:"user_id"`
	Channel     string `json:"channel_id"`
	ResponseURL string `json:"response_url"`
	App         string `json:"api_app_id"`
	Team        string `json:"team_id"`
	Enterprise  string `json:"enterprise_id"`
	inbox       string
}

// subcommand is one function of the slash command.
type subcommand struct {
	name  string
	usage []string // the forms in which it is typed, each with its effect
	run   func(b *commandHandler) runner
}

// runner runs a subcommand, and returns the answer to the user. text is the input after the subcommand's name. If a
// subcommand must not run twice, the transaction of its change also marks the delivery as handled.
type runner func(ctx context.Context, c command, text string) (*block.Builder, error)

// subcommands returns the subcommands in the order of the help text.
func subcommands() []subcommand {
	return []subcommand{
		{name: "pending", run: func(b *commandHandler) runner { return b.pending.list }, usage: []string{"pending · lists what waits for you and what you asked for; cards that were deleted are posted again"}},
		{name: "explain", run: func(b *commandHandler) runner { return b.explainer.explain }, usage: []string{
			"explain issue_refund {\"amount\": 20} · says who would have to allow it if you asked for it here, and why",
			"explain (link of a card) · says who has to allow it, why, and what has happened",
		}},
		{name: "history", run: func(b *commandHandler) runner { return b.explainer.history }, usage: []string{
			"history · lists what you asked for or had a say in; history 2 is the next page",
			"history (link of a card, or id) · says what has happened to it",
		}},
		{name: "away", run: func(b *commandHandler) runner { return b.absence.asked }, usage: []string{
			"away until monday · says that you are away; also until 17:00, until 2026-12-01, for 3 days",
			"away from 2026-12-24 until 2027-01-02, delegate to @colleague · they are asked in your place, as far as their own roles go",
			"away · shows whether you are",
		}},
		{name: "back", run: func(b *commandHandler) runner { return b.absence.backAsked }, usage: []string{"back · ends your absence"}},
		{name: "pause", run: func(b *commandHandler) runner { return b.pause.asked }, usage: []string{"pause we are looking into wrong refunds · stops all runs and model calls at once, if you may do this; it asks for confirmation first"}},
		{name: "resume", run: func(b *commandHandler) runner { return b.pause.resumeAsked }, usage: []string{"resume · resumes everything"}},
		{name: "grants", run: func(b *commandHandler) runner { return b.grant.list }, usage: []string{"grants · lists the calls that may run without asking for a while, and who allowed them; you can revoke your own grants"}},
	}
}

func readCommand(raw []byte) (c command, err error) {
	if err := json.Unmarshal(raw, &c); err != nil || c.User == "" {
		return c, fmt.Errorf("%w: a slash command without a user", errPayload)
	}
	return c, c.shaped()
}

// commandHandler answers the slash command. commandHandler finds the subcommand, and sends the answer to the person who
// typed the command.
type commandHandler struct {
	*core
	ephemeral *ephemeral
	pending   *pendingItems
	explainer *explainer
	pause     *pauseHandler
	absence   *absenceHandler
	grant     *grantHandler
}

// handle answers a slash command. Commands concern the person who types them, and approvals. To ask the agent
// for something, people write a message instead.
func (b *commandHandler) handle(ctx context.Context, c command) error {
	answer, err := b.run(ctx, c)
	if err != nil {
		return err
	}
	if err := b.Intake.Done(ctx, c.inbox, ""); err != nil && !errors.Is(err, workflow.ErrHandled) {
		return err
	}
	b.ephemeral.send(ctx, ephemeralReply{user: c.User, channel: c.Channel, responseURL: c.ResponseURL, command: true}, answer)
	return nil
}

// run runs a subcommand and returns the answer.
func (b *commandHandler) run(ctx context.Context, c command) (*block.Builder, error) {
	first, rest := firstWord(c.Text)
	first = strings.ToLower(first)
	for _, s := range subcommands() {
		if s.name != first {
			continue
		}
		answer, err := s.run(b)(ctx, c, rest)
		var u unclear
		if errors.As(err, &u) {
			return block.Paragraph(block.Say("Nothing was changed. ").Say(u.Error())), nil
		}
		return answer, err
	}
	if first == "" || first == "help" {
		return block.Paragraph(c.help()...), nil
	}
	return block.Paragraph(append([]*block.RichText{block.Say("I don't know “" + block.Visible(block.Clip(first, block.MaxNameShown)) + "”.")}, c.help()...)...), nil
}

// firstWord returns the first word of a text, and the rest after the white space.
func firstWord(text string) (first, rest string) {
	text = strings.TrimSpace(text)
	end := strings.IndexFunc(text, unicode.IsSpace)
	if end < 0 {
		return text, ""
	}
	return text[:end], strings.TrimSpace(text[end:])
}

// help lists the subcommands.
func (c command) help() []*block.RichText {
	var out []*block.RichText
	for _, s := range subcommands() {
		for _, u := range s.usage {
			typed, does, _ := strings.Cut(u, " · ")
			out = append(out, new(block.RichText).Code(c.Command+" "+typed).Say(" "+does))
		}
	}
	return append(out, block.Say("For everything else mention me in a channel where I answer, or write to me in a direct message, and say what you need in your own words."))
}
