package block

import (
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// RichText is a text in two equivalent forms. The first form is rich text for the message, in which everything is
// literal. The second form is mrkdwn for the message's text, which screen readers and notifications use.
type RichText struct {
	parts []slack.RichTextSectionElement
	plain strings.Builder
}

// Say returns a text that begins with s.
func Say(s string) *RichText { return new(RichText).Say(s) }

// Say adds text unchanged. Text of people, models and tools must have passed through Visible.
func (p *RichText) Say(s string) *RichText { return p.styled(s, nil) }

// Strong adds bold text.
func (p *RichText) Strong(s string) *RichText {
	return p.styled(s, &slack.RichTextSectionTextStyle{Bold: true})
}

// Soft adds text in italics.
func (p *RichText) Soft(s string) *RichText {
	return p.styled(s, &slack.RichTextSectionTextStyle{Italic: true})
}

// Reason ends a sentence with a person's reason, if there is one. The sentence gets exactly one punctuation mark at its
// end.
func (p *RichText) Reason(s string, most int) *RichText {
	s = Clip(strings.TrimRight(OneLine(s), ". "), most)
	if s != "" {
		p.Say(": ").Soft(s)
	}
	for _, end := range []string{"!", "?", "…"} {
		if strings.HasSuffix(s, end) {
			return p
		}
	}
	return p.Say(".")
}

// Code adds text in a fixed-width font.
func (p *RichText) Code(s string) *RichText {
	return p.styled(s, &slack.RichTextSectionTextStyle{Code: true})
}

func (p *RichText) styled(s string, style *slack.RichTextSectionTextStyle) *RichText {
	if s == "" { // Slack rejects empty text elements
		return p
	}
	p.parts = append(p.parts, slack.NewRichTextSectionTextElement(s, style))
	p.plain.WriteString(Escape(s))
	return p
}

// Person mentions a person's Slack account, because people can choose their names freely, but not their accounts. A
// person without an account is named by the login or, without a login, by the parameter called.
func (p *RichText) Person(id approvers.PersonID, called string) *RichText {
	user := id.User()
	if !slackUser(user) {
		if login := id.Login(); login != "" {
			called = approvers.Operates(id).Name
		} else if called == "" {
			called = string(id)
		}
		return p.Strong(Name(called))
	}
	p.parts = append(p.parts, slack.NewRichTextSectionUserElement(user, nil))
	p.plain.WriteString("<@" + user + ">")
	return p
}

// Group mentions a user group.
func (p *RichText) Group(id string) *RichText {
	p.parts = append(p.parts, slack.NewRichTextSectionUserGroupElement(id))
	p.plain.WriteString("<!subteam^" + id + ">")
	return p
}

// slackUser reports whether s has the form of a Slack user ID.
func slackUser(s string) bool {
	return len(s) > 1 && (s[0] == 'U' || s[0] == 'W') && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// These are formats of Slack's dates. Slack shows a date in each reader's own time zone.
const (
	Clock   = "{time}"
	DayTime = "{date_short_pretty} at {time}"
	// LongTime includes the weekday, for days that are further away.
	LongTime = "{date_long} at {time}"
)

// At adds a time in the reader's time zone.
func (p *RichText) At(t time.Time, format string) *RichText {
	fallback := t.UTC().Format("2 Jan 2006 15:04 UTC")
	p.parts = append(p.parts, slack.NewRichTextSectionDateElement(t.Unix(), format, nil, &fallback))
	p.plain.WriteString("<!date^" + strconv.FormatInt(t.Unix(), 10) + "^" + format + "|" + fallback + ">")
	return p
}

// Link adds a link of the bot itself. A link in the text of a person, a model or a tool stays plain text.
func (p *RichText) Link(url, words string) *RichText {
	if url == "" {
		return p.Say(words)
	}
	p.parts = append(p.parts, slack.NewRichTextSectionLinkElement(url, words, nil))
	p.plain.WriteString("<" + Escape(url) + "|" + Escape(words) + ">")
	return p
}

// Add appends another text.
func (p *RichText) Add(q *RichText) *RichText {
	p.parts = append(p.parts, q.parts...)
	p.plain.WriteString(q.plain.String())
	return p
}

// Mrkdwn returns the text as mrkdwn.
func (p *RichText) Mrkdwn() string { return p.plain.String() }

// Elements returns the text as elements of a rich text section.
func (p *RichText) Elements() []slack.RichTextSectionElement { return p.parts }

// Empty reports whether there is no text.
func (p *RichText) Empty() bool { return len(p.parts) == 0 }

// PlainWords returns rich text without styles, for places that accept only plain text.
func PlainWords(p *RichText) string {
	var b strings.Builder
	for _, part := range p.parts {
		if text, ok := part.(*slack.RichTextSectionTextElement); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}
