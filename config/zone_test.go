package config_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSuggestedZones checks that every suggested time zone exists.
func TestSuggestedZones(t *testing.T) {
	t.Setenv("ZONEINFO", "/nowhere")
	data, err := os.ReadFile("zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	zones := strings.Fields(string(data))
	if len(zones) < 400 || !slices.Contains(zones, "Europe/Berlin") || !slices.Contains(zones, "UTC") {
		t.Fatalf("%d zones", len(zones))
	}
	for _, name := range zones {
		if _, err := time.LoadLocation(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
