package auditreport

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"countersign/approvers/audit"
)

// writers maps each format to the function that writes the format.
var writers = map[string]func(io.Writer, Report) error{"text": writeText, "csv": writeCSV, "html": writePage}

// Write writes a report in a format: text, csv or html.
func Write(out io.Writer, format string, r Report) error {
	write, known := writers[format]
	if !known {
		return fmt.Errorf("a report has no format %q", format)
	}
	if err := write(out, r); err != nil {
		return fmt.Errorf("the report can't be written: %w", err)
	}
	return nil
}

func writeText(out io.Writer, r Report) error {
	var b strings.Builder
	fmt.Fprintln(&b, r.title())
	for _, line := range r.about() {
		fmt.Fprintln(&b, line)
	}
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "\n%s\n\n", strings.ToUpper(t.title))
		if len(t.rows) == 0 {
			fmt.Fprintln(&b, t.none)
			continue
		}
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		line := func(cells []string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }
		var heads []string
		for _, c := range t.columns {
			heads = append(heads, c.head)
		}
		line(heads)
		for _, row := range t.rows {
			var texts []string
			for _, c := range row {
				texts = append(texts, c.text)
			}
			line(texts)
		}
		w.Flush()
		if t.note != "" {
			fmt.Fprintf(&b, "\n%s\n", wrapped(t.note))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// The function "wrapped" breaks a text into lines of at most 100 characters. A longer word has a line of its own.
func wrapped(text string) string {
	var b strings.Builder
	at := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case at == 0:
		case at+1+n > 100:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

// writeCSV writes the report as CSV according to RFC 4180. Each figure has a line of its own, so that all tables fit in
// one file.
func writeCSV(out io.Writer, r Report) error {
	w := csv.NewWriter(out)
	w.UseCRLF = true
	if err := w.Write([]string{"table", "name", "detail", "figure", "value"}); err != nil {
		return err
	}
	for _, t := range append(r.tables(), r.basis()) {
		for n, row := range t.rows {
			detail := ""
			if t.keys > 1 {
				detail = row[1].value
			}
			for i, c := range row[t.keys:] {
				line := []string{t.id, audit.Inert(row[0].value), audit.Inert(detail), t.columns[t.keys+i].name, audit.Inert(c.value)}
				if err := w.Write(line); err != nil {
					return err
				}
			}
			if t.unsaid == nil || t.unsaid[n] == "" {
				continue
			}
			line := []string{t.id, audit.Inert(row[0].value), audit.Inert(detail), t.columns[len(row)-1].name + "_missing", t.unsaid[n]}
			if err := w.Write(line); err != nil {
				return err
			}
		}
	}
	w.Flush()
	return w.Error()
}
