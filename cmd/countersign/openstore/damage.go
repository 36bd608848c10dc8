package openstore

import (
	"fmt"
	"strings"

	"countersign/internal/visible"
	"countersign/store"
)

// mostNamed is the maximum number of damaged rows that a text names.
const mostNamed = 5

// FirstRows describes the first damaged rows.
func FirstRows(list []store.Damage) string {
	var parts []string
	for _, x := range list[:min(len(list), mostNamed)] {
		parts = append(parts, visible.Line(x.String()))
	}
	if more := len(list) - mostNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}
