package audit

import (
	"context"
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"countersign/store"
)

// List prints the selected records as a table.
func List(ctx context.Context, out io.Writer, s store.Store, f Filter) error {
	records, left, err := f.Records(ctx, s)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME (UTC)\tWHAT\tWHO\tREQUEST\tFACTS")
	for _, r := range records {
		who := string(r.Actor)
		if who == "" {
			who = "the bot"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.At.UTC().Format(time.DateTime), r.Kind, who, r.Chain, facts(r.Facts))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return left.Err()
}

// facts formats the facts of a record, ordered by name.
func facts(m map[string]string) string {
	parts := make([]string, 0, len(m))
	for k, v := range m {
		if v != "" {
			parts = append(parts, fmt.Sprintf("%s=%q", k, v))
		}
	}
	sort.Strings(parts)
	return strings.Join(parts, " ")
}
