package workspace

import (
	"strings"
	"time"
)

// zoneNames are the names that Slack shows for time zones, by abbreviation; where continents use one abbreviation for
// different zones, with the continent before it.
var zoneNames = map[string]string{
	"UTC": "Coordinated Universal Time", "GMT": "Greenwich Mean Time", "BST": "British Summer Time",
	"WET": "Western European Time", "WEST": "Western European Summer Time", "CET": "Central European Time", "CEST": "Central European Summer Time",
	"EET": "Eastern European Time", "EEST": "Eastern European Summer Time", "MSK": "Moscow Standard Time", "Europe/IST": "Irish Standard Time",
	"PST": "Pacific Standard Time", "PDT": "Pacific Daylight Time", "MST": "Mountain Standard Time", "MDT": "Mountain Daylight Time",
	"CST": "Central Standard Time", "CDT": "Central Daylight Time", "EST": "Eastern Standard Time", "EDT": "Eastern Daylight Time",
	"AST": "Atlantic Standard Time", "ADT": "Atlantic Daylight Time", "NST": "Newfoundland Standard Time", "NDT": "Newfoundland Daylight Time",
	"AKST": "Alaska Standard Time", "AKDT": "Alaska Daylight Time", "HST": "Hawaii-Aleutian Standard Time",
	"Asia/IST": "India Standard Time", "JST": "Japan Standard Time", "KST": "Korean Standard Time", "Asia/CST": "China Standard Time",
	"HKT": "Hong Kong Standard Time", "PKT": "Pakistan Standard Time", "SAST": "South Africa Standard Time", "EAT": "East Africa Time", "WAT": "West Africa Time",
	"AEST": "Australian Eastern Standard Time", "AEDT": "Australian Eastern Daylight Time", "ACST": "Australian Central Standard Time",
	"ACDT": "Australian Central Daylight Time", "AWST": "Australian Western Standard Time", "NZST": "New Zealand Standard Time", "NZDT": "New Zealand Daylight Time",
}

// zoneLabel is the tz_label of a moment in its zone: "Pacific Daylight Time", or GMT+04:00 where the zone has no name.
func zoneLabel(t time.Time) string {
	abbreviation, _ := t.Zone()
	continent, _, _ := strings.Cut(t.Location().String(), "/")
	for _, key := range []string{continent + "/" + abbreviation, abbreviation} {
		if name := zoneNames[key]; name != "" {
			return name
		}
	}
	return t.Format("GMT-07:00")
}
