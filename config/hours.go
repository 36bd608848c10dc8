package config

import (
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

var outsides = []string{string(approvers.OutsideWaits), string(approvers.OutsideEscalates)}

// readHours reads a role's working hours: time zone, days, start and end. If the hours are invalid, the result is nil.
func readHours(v yamldoc.Value) *approvers.Hours {
	h := &approvers.Hours{Days: [7]bool{1: true, 2: true, 3: true, 4: true, 5: true}, Outside: approvers.OutsideWaits}
	f := v.Fields("zone", "days", "from", "to", "holidays", "outside")
	for _, need := range [][2]string{{"zone", "zone: Europe/Berlin"}, {"from", `from: "09:00"`}, {"to", `to: "17:00"`}} {
		if v.IsMapping() && !f.Has(need[0]) {
			v.Wrong(need[0]+" is missing", "add "+need[1])
		}
	}
	before := v.ProblemCount()
	if z, ok := f["zone"]; ok {
		h.Zone = readZone(z)
	}
	if d, ok := f["days"]; ok {
		h.Days = readDays(d)
	}
	from, okFrom := readClock(f, "from", &h.From)
	to, okTo := readClock(f, "to", &h.To)
	if okFrom && okTo && h.From >= h.To {
		to.Wrongf("write the earlier time as from; for a shift past midnight write two approvers, one until 24:00 and one from 00:00",
			"the working day ends at %s, and it begins at %s", to.Shown(), from.Shown())
	}
	if d, ok := f["holidays"]; ok {
		h.Holidays = readDates(d)
	}
	if outside, ok := f.Choice("outside", outsides); ok {
		h.Outside = approvers.Outside(outside)
	}
	if v.ProblemCount() > before || h.Zone == nil {
		return nil
	}
	return h
}

var Weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} // by time.Weekday

// readDays reads days such as mon-fri, or a list of days and ranges.
func readDays(v yamldoc.Value) (out [7]bool) {
	const like = "days such as mon-fri, or [mon, wed]"
	items := []yamldoc.Value{v}
	if v.IsList() {
		items, _ = v.List("[mon, wed]")
		if len(items) == 0 {
			v.Wrong("names no day, so nobody would ever work", "write "+like)
		}
	}
	for _, item := range items {
		text, ok := item.Text(like)
		if !ok {
			continue
		}
		first, last, span := strings.Cut(strings.ToLower(text), "-")
		if !span {
			last = first
		}
		from, to := slices.Index(Weekdays, strings.TrimSpace(first)), slices.Index(Weekdays, strings.TrimSpace(last))
		if from < 0 || to < 0 {
			item.Wrong(yamldoc.Quote(text)+" is not a day", "the days are "+strings.Join(append(Weekdays[1:len(Weekdays):len(Weekdays)], Weekdays[0]), ", ")+"; several are written mon-fri")
			continue
		}
		for day := from; ; day = (day + 1) % len(Weekdays) {
			out[day] = true
			if day == to {
				break
			}
		}
	}
	return out
}

// readClock converts a time of day to a duration since midnight.
func readClock(f yamldoc.Fields, key string, to *time.Duration) (yamldoc.Value, bool) {
	v, ok := f[key]
	if !ok {
		return v, false
	}
	const hint = `write a time from "00:00" to "24:00", in quotes`
	if v.IsNumber() {
		v.Wrong(v.Shown()+" is not a time of day", hint)
		return v, false
	}
	text, ok := v.Text(`a time of day such as "09:00"`)
	if !ok {
		return v, false
	}
	if text == "24:00" {
		*to = 24 * time.Hour
		return v, true
	}
	at, err := time.Parse("15:04", text)
	if err != nil {
		v.Wrong(yamldoc.Quote(text)+" is not a time of day", hint)
		return v, false
	}
	*to = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	return v, true
}

// readDates reads a list of days such as 2026-12-25.
func readDates(v yamldoc.Value) []string {
	items, _ := v.List("[2026-12-25]")
	var out []string
	for _, item := range items {
		text, ok := item.Text("a date such as 2026-12-25")
		if !ok {
			continue
		}
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			item.Wrong(yamldoc.Quote(text)+" is not a date", "write year, month and day, such as 2026-12-25")
			continue
		}
		if slices.Contains(out, text) {
			item.Wrong(text+" is named twice", "remove one of them")
			continue
		}
		out = append(out, text)
	}
	return out
}
