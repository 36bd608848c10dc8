package bot

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// reader is how one person reads times: in their zone, as is usual where they are. The zero reader is nobody in particular.
type reader struct {
	zone   *time.Location
	locale string
}

// reader finds out how somebody reads times. Where Slack does not say, nobody is kept from reading: then it is UTC.
func (b *Bot) reader(ctx context.Context, user string) reader {
	u, err := b.user(ctx, user, false)
	if err != nil {
		return reader{}
	}
	return reader{zone: zoneOf(u), locale: u.Locale}
}

// known is how somebody reads times, as far as Slack has said lately: nothing is asked for it.
func (b *Bot) known(user string) reader {
	u, ok := b.people.users.peek(user)
	if !ok {
		return reader{}
	}
	return reader{zone: zoneOf(u), locale: u.Locale}
}

// zoneOf is a person's time zone, as they set it in Slack.
func zoneOf(u slack.User) *time.Location {
	if zone, err := time.LoadLocation(u.TZ); err == nil && u.TZ != "" {
		return zone
	}
	return time.FixedZone(offsetName(u.TZOffset), u.TZOffset)
}

// clockLayouts are how the time of day is written where it is not 15:04: in English-speaking countries with twelve hours.
var clockLayouts = map[string]string{"en-US": "3:04 PM", "en-CA": "3:04 PM", "en-AU": "3:04 PM", "en-NZ": "3:04 PM", "en-IN": "3:04 PM"}

func (r reader) known() bool { return r.zone != nil }

func (r reader) clock() string {
	if layout, ok := clockLayouts[r.locale]; ok {
		return layout
	}
	return "15:04"
}

// moment is a moment in words, for where Slack does not put it into the reader's own.
func (r reader) moment(t time.Time) string {
	if !r.known() {
		return t.UTC().Format("2 Jan 2006 15:04 UTC")
	}
	return t.In(r.zone).Format(r.day("2 Jan 2006", "Jan 2, 2006")+" "+r.clock()) + " " + r.zoneName(t)
}

// spoken is a moment with its weekday and zone, so that whoever wrote it sees how it was understood.
func (r reader) spoken(t time.Time) string {
	if !r.known() {
		r.zone = time.UTC
	}
	return t.In(r.zone).Format("Monday, "+r.day("2 January 2006", "January 2, 2006")+", "+r.clock()) + " (" + r.zone.String() + ")"
}

// day picks the order of day and month.
func (r reader) day(usual, american string) string {
	if r.locale == "en-US" {
		return american
	}
	return usual
}

// zoneName is what people call the zone at that time: CET. Where it has no name but only a number, the zone's own name says more.
func (r reader) zoneName(t time.Time) string {
	short, _ := t.In(r.zone).Zone()
	if short == "" || strings.ContainsAny(short[:1], "+-") {
		return r.zone.String()
	}
	return short
}

var slackDate = regexp.MustCompile(`(<!date\^(\d+)\^[^|<>]*)\|[^<>]*>`)

// localize writes the times of a message, as they stand where Slack does not draw them itself, in the reader's way: in notifications, and for screen readers.
func (r reader) localize(m *message) {
	if !r.known() {
		return
	}
	m.Text = slackDate.ReplaceAllStringFunc(m.Text, func(date string) string {
		parts := slackDate.FindStringSubmatch(date)
		seconds, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil {
			return date
		}
		return parts[1] + "|" + r.moment(time.Unix(seconds, 0)) + ">"
	})
	r.localizeBlocks(m.Blocks)
}

func (r reader) localizeBlocks(blocks []slack.Block) {
	if !r.known() {
		return
	}
	for _, b := range blocks {
		r.localizeBlock(b)
	}
}

func (r reader) localizeBlock(b slack.Block) {
	rich, ok := b.(*slack.RichTextBlock)
	if !ok {
		return
	}
	for _, e := range rich.Elements {
		section, ok := e.(*slack.RichTextSection)
		if !ok {
			continue
		}
		for _, part := range section.Elements {
			if date, ok := part.(*slack.RichTextSectionDateElement); ok {
				words := r.moment(time.Unix(date.Timestamp.Time().Unix(), 0))
				date.Fallback = &words
			}
		}
	}
}
