package config

import (
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"countersign/approvers"
)

var outsides = []string{string(approvers.OutsideWaits), string(approvers.OutsideEscalates)}

// hours reads a role's working hours: where, on which days, from when until when. Nil: they could not be read.
func (v value) hours() *approvers.Hours {
	h := &approvers.Hours{Days: [7]bool{1: true, 2: true, 3: true, 4: true, 5: true}, Outside: approvers.OutsideWaits}
	f := v.fields("zone", "days", "from", "to", "holidays", "outside")
	for _, need := range [][2]string{{"zone", "zone: Europe/Berlin"}, {"from", `from: "09:00"`}, {"to", `to: "17:00"`}} {
		if v.isMapping() && !f.has(need[0]) {
			v.wrong(need[0]+" is missing", "add "+need[1])
		}
	}
	before := len(v.r.problems)
	if z, ok := f["zone"]; ok {
		h.Zone = z.zone()
	}
	if d, ok := f["days"]; ok {
		h.Days = d.days()
	}
	from, okFrom := f.clock("from", &h.From)
	to, okTo := f.clock("to", &h.To)
	if okFrom && okTo && h.From >= h.To {
		to.wrongf("write the earlier time as from; who works over midnight needs two approvers, one until 24:00 and one from 00:00",
			"the working day ends at %s, and it begins at %s", to.shown(), from.shown())
	}
	if d, ok := f["holidays"]; ok {
		h.Holidays = d.dates()
	}
	if outside, ok := f.choice("outside", outsides); ok {
		h.Outside = approvers.Outside(outside)
	}
	if len(v.r.problems) > before || h.Zone == nil {
		return nil
	}
	return h
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} // by time.Weekday

// days reads mon-fri, or a list of days and such spans.
func (v value) days() (out [7]bool) {
	const like = "days such as mon-fri, or [mon, wed]"
	items := []value{v}
	if _, ok := v.node.(*ast.SequenceNode); ok {
		items, _ = v.list("[mon, wed]")
		if len(items) == 0 {
			v.wrong("names no day, so nobody would ever work", "write "+like)
		}
	}
	for _, item := range items {
		text, ok := item.text(like)
		if !ok {
			continue
		}
		first, last, span := strings.Cut(strings.ToLower(text), "-")
		if !span {
			last = first
		}
		from, to := slices.Index(weekdays, strings.TrimSpace(first)), slices.Index(weekdays, strings.TrimSpace(last))
		if from < 0 || to < 0 {
			item.wrong(quote(text)+" is no day", "the days are "+strings.Join(append(weekdays[1:len(weekdays):len(weekdays)], weekdays[0]), ", ")+"; several are written mon-fri")
			continue
		}
		for day := from; ; day = (day + 1) % len(weekdays) {
			out[day] = true
			if day == to {
				break
			}
		}
	}
	return out
}

// clock reads a time of day into a duration since midnight.
func (f fieldset) clock(key string, to *time.Duration) (value, bool) {
	v, ok := f[key]
	if !ok {
		return v, false
	}
	const hint = `write a time from "00:00" to "24:00", in quotes`
	switch v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		v.wrong(v.shown()+" is no time of day", hint)
		return v, false
	}
	text, ok := v.text(`a time of day such as "09:00"`)
	if !ok {
		return v, false
	}
	if text == "24:00" {
		*to = 24 * time.Hour
		return v, true
	}
	at, err := time.Parse("15:04", text)
	if err != nil {
		v.wrong(quote(text)+" is no time of day", hint)
		return v, false
	}
	*to = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	return v, true
}

// dates reads a list of days such as 2026-12-25.
func (v value) dates() []string {
	items, _ := v.list("[2026-12-25]")
	var out []string
	for _, item := range items {
		text, ok := item.text("a date such as 2026-12-25")
		if !ok {
			continue
		}
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			item.wrong(quote(text)+" is no date", "write year, month and day, such as 2026-12-25")
			continue
		}
		if slices.Contains(out, text) {
			item.wrong(text+" is named twice", "remove one of them")
			continue
		}
		out = append(out, text)
	}
	return out
}
