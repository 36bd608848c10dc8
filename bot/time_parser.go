package bot

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"countersign/bot/render"
)

// unclear is the error for a text that can't be understood. It quotes the text and says what to write instead.
type unclear string

func (u unclear) Error() string { return string(u) }

func notClear(format string, args ...any) error { return unclear(fmt.Sprintf(format, args...)) }

// words is the rest of a text.
type words []string

func (w *words) next() string {
	if len(*w) == 0 {
		return ""
	}
	first := (*w)[0]
	*w = (*w)[1:]
	return first
}

func (w words) peek() string {
	if len(w) == 0 {
		return ""
	}
	return w[0]
}

// skip consumes a word if it is next.
func (w *words) skip(one string) {
	if w.peek() == one {
		w.next()
	}
}

// timeParser parses times as people write them, in their time zone.
type timeParser struct{ now time.Time }

// midnight returns the start of the day that is days after t.
func midnight(t time.Time, days int) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d+days, 0, 0, 0, 0, t.Location())
}

var weekdays = map[string]time.Weekday{
	"sunday": 0, "sun": 0, "monday": 1, "mon": 1, "tuesday": 2, "tue": 2, "tues": 2, "wednesday": 3, "wed": 3,
	"thursday": 4, "thu": 4, "thur": 4, "thurs": 4, "friday": 5, "fri": 5, "saturday": 6, "sat": 6,
}

// point parses one moment: a day, a time, or both. A weekday is the next one after base, and a time alone is on base's
// day. exact says whether a time of day was given.
func (w timeParser) point(in *words, base time.Time) (at time.Time, exact bool, err error) {
	word := in.peek()
	if word == "" {
		return at, false, notClear("A day or a time is missing at the end. Write, for example, “until monday” or “until 2026-12-01 12:00”.")
	}
	if word == "now" {
		in.next()
		return w.now, true, nil
	}
	day := midnight(base, 0)
	if _, isTime := timeOfDay(word); !isTime {
		if day, err = w.day(in, base); err != nil {
			return at, false, err
		}
	}
	in.skip("at")
	since, isTime := timeOfDay(in.peek())
	if !isTime {
		return day, false, nil
	}
	in.next()
	y, m, d := day.Date()
	return time.Date(y, m, d, 0, int(since/time.Minute), 0, 0, day.Location()), true, nil
}

func (w timeParser) day(in *words, base time.Time) (time.Time, error) {
	word := in.next()
	if weekday, ok := weekdays[word]; ok {
		return midnight(base, daysTo(base, weekday)), nil
	}
	switch word {
	case "today":
		return midnight(w.now, 0), nil
	case "tomorrow":
		return midnight(w.now, 1), nil
	case "next":
		return w.nextWeek(in.next())
	}
	date, err := time.ParseInLocation(time.DateOnly, word, w.now.Location())
	if err != nil {
		return time.Time{}, notClear("“%s” is no day or time that I know. Write a date as %s, a weekday, “tomorrow”, “next week”, or a time as 17:00.",
			render.Visible(render.Clip(word, 40)), w.now.AddDate(0, 0, 7).Format(time.DateOnly))
	}
	return date, nil
}

// daysTo returns the number of days from t to the next given weekday: one to seven.
func daysTo(t time.Time, day time.Weekday) int { return (int(day)-int(t.Weekday())+6)%7 + 1 }

// nextWeek returns Monday of next week, or another day of it.
func (w timeParser) nextWeek(word string) (time.Time, error) {
	monday := midnight(w.now, daysTo(w.now, time.Monday))
	if word == "week" {
		return monday, nil
	}
	if weekday, ok := weekdays[word]; ok {
		return midnight(monday, (int(weekday)+6)%7), nil // weeks begin on Monday
	}
	return time.Time{}, notClear("“next %s” is not clear. Write “next week”, “next friday”, or a date such as %s.", render.Visible(render.Clip(word, 40)), monday.Format(time.DateOnly))
}

// timeOfDay parses 17:00, 9:30, 5pm and 5:30pm. It returns the time since midnight.
func timeOfDay(s string) (time.Duration, bool) {
	for _, layout := range []string{"15:04", "3pm", "3:04pm"} {
		if t, err := time.Parse(layout, s); err == nil {
			return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, true
		}
	}
	return 0, false
}

// span parses a duration such as "3 days", and returns its end. Days and weeks end at the start of a day, unless from
// was given with a time.
func (w timeParser) span(in *words, from time.Time, exact bool) (time.Time, error) {
	count, word := in.next(), in.next()
	unit := strings.TrimSuffix(word, "s")
	n, err := strconv.Atoi(count)
	if count == "a" || count == "an" || count == "one" {
		n, err = 1, nil
	}
	if err == nil && n > 0 && n < 10_000 {
		switch unit {
		case "minute", "min":
			return from.Add(time.Duration(n) * time.Minute), nil
		case "hour", "h":
			return from.Add(time.Duration(n) * time.Hour), nil
		case "week":
			n, unit = 7*n, "day"
		}
		if unit == "day" && exact {
			return from.AddDate(0, 0, n), nil
		} else if unit == "day" {
			return midnight(from, n), nil
		}
	}
	return time.Time{}, notClear("I don't understand how long “for %s” is. Write “for 3 days”, “for 2 weeks” or “for 4 hours”.",
		render.Visible(render.Clip(strings.TrimSpace(count+" "+word), 40)))
}

// spoken formats a time in its own zone.
func spoken(t time.Time) string { return render.Reader{Zone: t.Location()}.Spoken(t) }
