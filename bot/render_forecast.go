package bot

import (
	"fmt"
	"strings"

	"countersign/approvers"
)

// What a tool says that a call would do is other people's text: it stands below the policy's own sentence, in quotes and under that tool's name.

// forecast shows on a card what a tool says of the call, that it is being asked, or why it said nothing.
func (s scene) forecast(p *page, r approvers.Request) {
	f := r.Forecast
	switch {
	case f == nil || f.State == "":
	case f.State == approvers.ForecastMade && f.Text != "" && !saidAbove(r):
		text, missing := forecastShown(*f)
		p.para(say("🔎 ").also(says(*f)))
		p.quoted(text)
		if missing > 0 {
			p.para(say("✂️ ").strong(fmt.Sprintf("Cut here: %d more characters.", missing)).say(" It is whole beside the arguments."))
		}
	default:
		p.para(s.forecastLine(r))
	}
}

// says names whose words follow.
func says(f approvers.Forecast) *prose {
	switch {
	case f.Dry:
		return say("What ").code(name(f.By)).say(" says of a dry run, in its own words:")
	case f.Own:
		return say("What ").code(name(f.By)).say(" itself says of it:")
	}
	return say("What ").code(name(f.By)).say(" says of it, in its own words:")
}

// saidAbove reports whether all that the tool said is the first line of the card already.
func saidAbove(r approvers.Request) bool {
	return r.Forecast.Cut == 0 && (r.Preview == r.Forecast.Text || r.Preview == r.Forecast.By+" says: "+r.Forecast.Text)
}

// forecastLine says in a line how a forecast stands; empty where it is said otherwise.
func (s scene) forecastLine(r approvers.Request) *prose {
	f := r.Forecast
	switch {
	case f == nil:
	case f.State == approvers.ForecastFailed:
		return say("⚠️ ").strong("The preview could not be made: ").say(clip(oneLine(f.Fault), maxNote))
	case f.State == approvers.ForecastMaking && r.State != approvers.Pending:
		return new(prose).soft("It was decided before the preview was there.")
	case f.State == approvers.ForecastMaking && s.Pause.On:
		return say("⏳ ").strong("No preview is made while everything is paused.").say(" The arguments are all there is until then.")
	case f.State == approvers.ForecastMaking:
		line := say("⏳ ").strong("A preview is being made: ").code(name(f.By)).say(" is asked what this would do, and its answer comes here.")
		if r.Plan.Risk >= approvers.Critical {
			line.say(" It can be approved then, or when there is none.")
		}
		return line
	case saidAbove(r) && !f.Own:
		return new(prose).soft("The first line is what ").code(name(f.By)).soft(" says.")
	}
	return new(prose)
}

// forecastText lays out what a tool said: a JSON object like arguments, anything else as it is.
func forecastText(f approvers.Forecast) string {
	text := ArgumentText([]byte(f.Text))
	if f.Cut > 0 {
		text += fmt.Sprintf("\n… (cut: %d more characters that are kept nowhere)", f.Cut)
	}
	return text
}

// forecastShown is as much of what a tool said as fits on a card, and how many characters are missing.
func forecastShown(f approvers.Forecast) (string, int) {
	text := forecastText(f)
	if width(text) <= maxForecastShown && strings.Count(text, "\n") < maxForecastLines {
		return text, 0
	}
	return head(text, maxForecastShown*2/3, maxForecastLines-1)
}

// forecastCut reports whether a card shows only the beginning of what a tool said.
func forecastCut(r approvers.Request) bool {
	if r.Forecast == nil || r.Forecast.State != approvers.ForecastMade || saidAbove(r) {
		return false
	}
	_, missing := forecastShown(*r.Forecast)
	return missing > 0
}

// forecastNote is what a bundle says of a forecast.
func (s scene) forecastNote(r approvers.Request) *prose {
	if f := r.Forecast; f != nil && f.State == approvers.ForecastMade && f.Text != "" && !saidAbove(r) {
		return say("🔎 ").also(says(*f)).say(" “" + clip(oneLine(f.Text), maxBundleNote) + "”")
	}
	return s.forecastLine(r)
}
