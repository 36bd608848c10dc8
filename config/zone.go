package config

import (
	_ "embed"
	"strings"
	"time"
	_ "time/tzdata" // working hours must be right even on machines without a time zone database

	"countersign/config/yamldoc"
)

// zoneNames lists the time zones that are suggested. The suggestions are UTC, and time zones whose names contain a
// place.
//
//go:embed zones.txt
var zoneNames string

// readZone reads the name of a time zone. If the result is nil, the name is invalid, and readZone has reported a
// problem.
func readZone(v yamldoc.Value) *time.Location {
	text, ok := v.Text("a time zone such as Europe/Berlin")
	if !ok {
		return nil
	}
	zone, err := time.LoadLocation(text)
	if err != nil || text == "Local" { // local time depends on the machine
		v.Wrong(yamldoc.Quote(text)+" is not a time zone", yamldoc.OrHint(nearestZone(text), "write a name of the time zone database, such as Europe/Berlin, America/New_York or UTC"))
		return nil
	}
	return zone
}

// nearestZone suggests a zone whose name ends with the written place. If there is no such zone, nearestZone suggests a
// zone with a similar name, or returns "".
func nearestZone(written string) string {
	names := strings.Fields(zoneNames)
	place := strings.ReplaceAll(yamldoc.FoldName(written), " ", "_")
	for _, name := range names {
		lower := yamldoc.FoldName(name)
		if lower == place || strings.HasSuffix(lower, "/"+place) {
			return "did you mean " + name + "?"
		}
	}
	return yamldoc.DidYouMean(written, names)
}
