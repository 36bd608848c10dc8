package block

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// Reader has a person's time zone and locale. Times are shown to the person in this time zone and format. In messages
// to several people, use the zero Reader.
type Reader struct {
	Zone   *time.Location
	Locale string
}

// ZoneOf returns the time zone that a person has set in Slack.
func ZoneOf(u slack.User) *time.Location {
	if zone, err := time.LoadLocation(u.TZ); err == nil && u.TZ != "" {
		return zone
	}
	return time.FixedZone(offsetName(u.TZOffset), u.TZOffset)
}

// clockLayouts maps locales with a twelve-hour clock to the layout of this clock. Other locales use 15:04.
var clockLayouts = map[string]string{"en-US": "3:04 PM", "en-CA": "3:04 PM", "en-AU": "3:04 PM", "en-NZ": "3:04 PM", "en-IN": "3:04 PM"}

func (r Reader) known() bool { return r.Zone != nil }

func (r Reader) clock() string {
	if layout, ok := clockLayouts[r.Locale]; ok {
		return layout
	}
	return "15:04"
}

// moment formats a time in the reader's zone, for texts in which Slack does not convert times.
func (r Reader) moment(t time.Time) string {
	if !r.known() {
		return t.UTC().Format("2 Jan 2006 15:04 UTC")
	}
	return t.In(r.Zone).Format(r.day("2 Jan 2006", "Jan 2, 2006")+" "+r.clock()) + " " + r.zoneName(t)
}

// Spoken formats a time with its weekday and zone. With this text, a person who typed a time sees how the bot
// understood it.
func (r Reader) Spoken(t time.Time) string {
	if !r.known() {
		r.Zone = time.UTC
	}
	return t.In(r.Zone).Format("Monday, "+r.day("2 January 2006", "January 2, 2006")+", "+r.clock()) + " (" + r.Zone.String() + ")"
}

// If the reader's locale puts the month before the day, day returns the parameter american. Otherwise day returns the
// parameter usual.
func (r Reader) day(usual, american string) string {
	if r.Locale == "en-US" {
		return american
	}
	return usual
}

// zoneName returns the common abbreviation of the zone at that time, such as CET. If the zone has only a numeric
// abbreviation, zoneName returns the zone's full name.
func (r Reader) zoneName(t time.Time) string {
	short, _ := t.In(r.Zone).Zone()
	if short == "" || strings.ContainsAny(short[:1], "+-") {
		return r.Zone.String()
	}
	return short
}

var slackDate = regexp.MustCompile(`(<!date\^(\d+)\^[^|<>]*)\|[^<>]*>`)

// Localize rewrites the fallback texts of a message's times for the reader. Notifications and screen readers use these
// texts.
func (r Reader) Localize(m *Message) {
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
	r.LocalizeBlocks(m.Blocks)
}

// LocalizeBlocks is like Localize, for the blocks of a form.
func (r Reader) LocalizeBlocks(blocks []slack.Block) {
	if !r.known() {
		return
	}
	for _, b := range blocks {
		r.localizeBlock(b)
	}
}

func (r Reader) localizeBlock(b slack.Block) {
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

// offsetName names a zone by its distance from UTC in seconds.
func offsetName(seconds int) string {
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	return fmt.Sprintf("UTC%c%02d:%02d", sign, seconds/3600, seconds/60%60)
}
