package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"countersign/approvers/desk"
	"countersign/store"
)

// command is a slash command as Slack delivers it.
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

// subcommand is one thing that the slash command does. run answers whoever typed it: text is what follows the subcommand's name. What changes
// something closes the delivery in the transaction that changes it.
type subcommand struct {
	name  string
	usage []string // as typed, each with what it does
	run   func(b *Bot, ctx context.Context, c command, text string) (*page, error)
}

// subcommands in the order in which help lists them.
func subcommands() []subcommand {
	return []subcommand{
		{name: "pending", run: (*Bot).pending, usage: []string{"pending · lists what waits for you and what you asked for; cards that were deleted are posted again"}},
		{name: "explain", run: (*Bot).explain, usage: []string{
			"explain issue_refund {\"amount\": 20} · says who would have to allow it if you asked for it here, and why",
			"explain (link of a card) · says who has to allow it, why, and what has happened",
		}},
		{name: "history", run: (*Bot).history, usage: []string{
			"history · lists what you asked for or had a say in; history 2 is the next page",
			"history (link of a card, or id) · says what has happened to it",
		}},
		{name: "away", run: (*Bot).away, usage: []string{
			"away until monday · says that you are away; also until 17:00, until 2026-12-01, for 3 days",
			"away from 2026-12-24 until 2027-01-02, delegate to @colleague · they are asked in your place, as far as their own roles go",
			"away · shows whether you are",
		}},
		{name: "back", run: (*Bot).back, usage: []string{"back · ends it"}},
		{name: "pause", run: (*Bot).pauseAsked, usage: []string{"pause we are looking into wrong refunds · stops every run and every call of the model at once, if you may; it asks first"}},
		{name: "resume", run: (*Bot).resumeAsked, usage: []string{"resume · lets everything go on"}},
		{name: "grants", run: (*Bot).grants, usage: []string{"grants · lists what may run without asking for a while, by whose permission, and lets you take yours back"}},
	}
}

func readCommand(raw []byte) (c command, err error) {
	if err := json.Unmarshal(raw, &c); err != nil || c.User == "" {
		return c, fmt.Errorf("%w: a slash command without its person", errPayload)
	}
	return c, nil
}

// lane keeps what one person does in order: their commands among their clicks.
func (c command) lane() string { return personLane(c.User) }

// commanded answers a slash command: what somebody can tell the bot about themselves. What they want done they say in their own words.
func (b *Bot) commanded(ctx context.Context, row store.Inbox) error {
	c, err := readCommand(row.Payload)
	if err != nil {
		return err
	}
	if err := b.here(ctx, c.origin()); err != nil {
		return b.elsewhere(ctx, row, err)
	}
	c.inbox = row.ID
	answer, err := b.obey(ctx, c)
	if err != nil {
		return err
	}
	if err := b.Desk.Done(ctx, row.ID, ""); err != nil && !errors.Is(err, desk.ErrHandled) {
		return err
	}
	b.whisper(ctx, whisper{user: c.User, channel: c.Channel, responseURL: c.ResponseURL, command: true}, answer)
	return nil
}

// obey runs the subcommand that was typed, and returns what to answer.
func (b *Bot) obey(ctx context.Context, c command) (*page, error) {
	first, rest, _ := strings.Cut(strings.TrimSpace(c.Text), " ")
	first = strings.ToLower(first)
	for _, s := range subcommands() {
		if s.name != first {
			continue
		}
		answer, err := s.run(b, ctx, c, strings.TrimSpace(rest))
		var u unclear
		if errors.As(err, &u) {
			return paragraph(say("Nothing was changed. ").say(u.Error())), nil
		}
		return answer, err
	}
	if first == "" || first == "help" {
		return paragraph(c.help()...), nil
	}
	return paragraph(append([]*prose{say("I don't know “" + Visible(clip(first, maxNameShown)) + "”.")}, c.help()...)...), nil
}

// help lists what can be typed.
func (c command) help() []*prose {
	var out []*prose
	for _, s := range subcommands() {
		for _, u := range s.usage {
			typed, does, _ := strings.Cut(u, " · ")
			out = append(out, new(prose).code(c.Command+" "+typed).say(" "+does))
		}
	}
	return append(out, say("For everything else mention me in a channel where I answer, or write to me in a direct message, and say what you need in your own words."))
}
