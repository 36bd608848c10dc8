package bot

import (
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// prose is a run of text in two forms that say the same: rich text for the message, where everything is literal, and
// mrkdwn for the message's text, which screen readers and notifications read.
type prose struct {
	parts []slack.RichTextSectionElement
	plain strings.Builder
}

func say(s string) *prose { return new(prose).say(s) }

// say adds text as it stands. What others wrote must have passed through Visible.
func (p *prose) say(s string) *prose { return p.styled(s, nil) }

func (p *prose) strong(s string) *prose {
	return p.styled(s, &slack.RichTextSectionTextStyle{Bold: true})
}

func (p *prose) soft(s string) *prose {
	return p.styled(s, &slack.RichTextSectionTextStyle{Italic: true})
}

func (p *prose) code(s string) *prose {
	return p.styled(s, &slack.RichTextSectionTextStyle{Code: true})
}

func (p *prose) styled(s string, style *slack.RichTextSectionTextStyle) *prose {
	if s == "" { // Slack refuses empty text elements
		return p
	}
	p.parts = append(p.parts, slack.NewRichTextSectionTextElement(s, style))
	p.plain.WriteString(escape(s))
	return p
}

// person names somebody: Slack's own account where there is one, because a name can be chosen freely and an account can't.
func (p *prose) person(id approvers.PersonID, called string) *prose {
	user := id.User()
	if !slackUser(user) {
		if login := id.Login(); login != "" {
			called = approvers.Operates(id).Name
		} else if called == "" {
			called = string(id)
		}
		return p.strong(name(called))
	}
	p.parts = append(p.parts, slack.NewRichTextSectionUserElement(user, nil))
	p.plain.WriteString("<@" + user + ">")
	return p
}

// group names a user group.
func (p *prose) group(id string) *prose {
	p.parts = append(p.parts, slack.NewRichTextSectionUserGroupElement(id))
	p.plain.WriteString("<!subteam^" + id + ">")
	return p
}

// slackUser reports whether s has the form of a Slack user id.
func slackUser(s string) bool {
	return len(s) > 1 && (s[0] == 'U' || s[0] == 'W') && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// Formats of Slack's dates, shown in each reader's own time zone.
const (
	clock   = "{time}"
	dayTime = "{date_short_pretty} at {time}"
	// longTime says the weekday too, for days that are further off.
	longTime = "{date_long} at {time}"
)

// at adds a moment in the reader's time zone.
func (p *prose) at(t time.Time, format string) *prose {
	fallback := t.UTC().Format("2 Jan 2006 15:04 UTC")
	p.parts = append(p.parts, slack.NewRichTextSectionDateElement(t.Unix(), format, nil, &fallback))
	p.plain.WriteString("<!date^" + strconv.FormatInt(t.Unix(), 10) + "^" + format + "|" + fallback + ">")
	return p
}

// link adds a link of our own. Links that others wrote are text.
func (p *prose) link(url, words string) *prose {
	if url == "" {
		return p.say(words)
	}
	p.parts = append(p.parts, slack.NewRichTextSectionLinkElement(url, words, nil))
	p.plain.WriteString("<" + escape(url) + "|" + escape(words) + ">")
	return p
}

// also appends another run.
func (p *prose) also(q *prose) *prose {
	p.parts = append(p.parts, q.parts...)
	p.plain.WriteString(q.plain.String())
	return p
}

func (p *prose) empty() bool { return len(p.parts) == 0 }
