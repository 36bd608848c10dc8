package config

import (
	_ "embed"
	"strings"
	"time"
	_ "time/tzdata" // working hours must be right on machines without a database of time zones too
)

// zoneNames are the names of time zones that are suggested: those of the time zone database with a place in them, and UTC.
//
//go:embed zones.txt
var zoneNames string

// zone reads the name of a time zone. Nil: there is none, which was reported.
func (v value) zone() *time.Location {
	text, ok := v.text("a time zone such as Europe/Berlin")
	if !ok {
		return nil
	}
	zone, err := time.LoadLocation(text)
	if err != nil || text == "Local" { // what is local depends on the machine
		v.wrong(quote(text)+" is no time zone", orHint(nearestZone(text), "write a name of the time zone database, such as Europe/Berlin, America/New_York or UTC"))
		return nil
	}
	return zone
}

// nearestZone suggests a zone by its place, or else by its whole name.
func nearestZone(written string) string {
	names := strings.Fields(zoneNames)
	place := strings.ReplaceAll(plain(written), " ", "_")
	for _, name := range names {
		lower := plain(name)
		if lower == place || strings.HasSuffix(lower, "/"+place) {
			return "did you mean " + name + "?"
		}
	}
	return didYouMean(written, names)
}
