package bot

import (
	"context"
	"fmt"

	"github.com/slack-go/slack"
)

// whisper says to whom something is told, and where they are: only they see it.
type whisper struct {
	user        string
	channel     string // empty: by direct message
	thread      string
	responseURL string // of a click, good for answers in direct messages; of a slash command, good everywhere
	command     bool   // a slash command, which can be typed where the bot is no member
	replace     bool   // the answer takes the place of what was clicked, which only they see
}

// tell says something to one person. What it says is help, not state, so it is not tried again for ever; but an
// ephemeral message that Slack refuses goes out as a direct message.
func (b *Bot) tell(ctx context.Context, w whisper, p ...*prose) { b.whisper(ctx, w, paragraph(p...)) }

// whisper is tell for what has buttons, too.
func (b *Bot) whisper(ctx context.Context, w whisper, p *page) {
	ctx = withErrand(ctx, errand{precedence: urgent})
	if err := b.tellThere(ctx, w, p); err == nil {
		return
	} else if w.channel != "" {
		b.Log.Debug("an ephemeral message was refused; sending a direct one", "error", err)
	}
	dm, err := b.places.dm(ctx, w.user)
	if err == nil {
		_, _, err = b.api.PostMessageContext(ctx, dm, told(p, b.known(w.user))...)
	}
	if err != nil {
		b.Log.Warn("a person could not be told something", "user", w.user, "error", err)
	}
}

var errElsewhere = fmt.Errorf("told by direct message")

// tellThere says it where the person acted, in a way that only they see.
func (b *Bot) tellThere(ctx context.Context, w whisper, p *page) error {
	switch {
	case w.channel == "":
		return errElsewhere
	case w.responseURL != "" && w.replace:
		_, _, err := b.api.PostMessageContext(ctx, w.channel, append(told(p, b.known(w.user)), slack.MsgOptionReplaceOriginal(w.responseURL))...)
		return err
	case w.responseURL != "" && (w.command || w.channel[0] == 'D'):
		_, _, err := b.api.PostMessageContext(ctx, w.channel, append(told(p, b.known(w.user)), slack.MsgOptionResponseURL(w.responseURL, slack.ResponseTypeEphemeral))...)
		return err
	case w.channel[0] == 'D':
		return errElsewhere
	}
	options := told(p, b.known(w.user))
	if w.thread != "" {
		options = append(options, slack.MsgOptionTS(w.thread))
	}
	_, err := b.api.PostEphemeralContext(ctx, w.channel, w.user, options...)
	return err
}

// paragraph is a page with one paragraph.
func paragraph(p ...*prose) *page {
	out := new(page)
	out.para(p...)
	return out
}

// told makes a message of a page, for one reader. It leaves out what response URLs don't take.
func told(p *page, by reader) []slack.MsgOption {
	m := p.message()
	by.localize(&m)
	return []slack.MsgOption{
		slack.MsgOptionText(m.Text, false), slack.MsgOptionBlocks(m.Blocks...),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
}
