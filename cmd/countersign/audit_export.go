package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/store"
)

// exportFormats write records one by one, each in its own way.
var exportFormats = map[string]func(io.Writer) exporter{
	"jsonl": func(w io.Writer) exporter { return jsonExport{json.NewEncoder(w)} },
	"csv":   func(w io.Writer) exporter { return newCSVExport(w) },
	"cef":   func(w io.Writer) exporter { return cefExport{w} },
}

func auditExportCommand() *cobra.Command {
	var (
		flags filterFlags
		o     exportOptions
		file  string
	)
	cmd := &cobra.Command{
		Use:   "export",
		Short: "The records for another system: JSON Lines, CSV, or CEF for a SIEM",
		Long: `Writes the records in order of time. What people wrote and were shown (arguments, reasons, cards, results) is left out
unless --payloads asks for it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if exportFormats[o.Format] == nil {
				return misused("--format %s: the formats are %s", o.Format, formatNames())
			}
			if o.Filter, err = flags.read(time.Now()); err != nil {
				return err
			}
			return toFile(cmd, file, func(out io.Writer) error { return auditExportTask.do(cmd.Context(), o, nil, out) })
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().StringVar(&o.Format, "format", "jsonl", "one of "+formatNames())
	cmd.Flags().BoolVar(&o.Payloads, "payloads", false, "with what people wrote and were shown")
	fileFlag(cmd, &file)
	return cmd
}

// exportOptions say what is exported, and how.
type exportOptions struct {
	Filter   auditFilter
	Format   string
	Payloads bool
}

var auditExportTask = task[exportOptions]{"audit export", true, func(ctx context.Context, w workplace, o exportOptions) error {
	return exportAudit(ctx, w.out, w.store, o)
}}

// exporter writes records in one format.
type exporter interface {
	write(exported) error
	end() error
}

// exported is a record with what it commits to, where that was asked for and is there.
type exported struct {
	approvers.AuditRecord
	Payload string `json:"payload,omitempty"`      // as text
	Binary  []byte `json:"payload_b64,omitempty"`  // where it is no text
	Salt    []byte `json:"payload_salt,omitempty"` // with it payload_hash can be computed again
}

// exportAudit writes the history. Texts that people wrote are written only where they are asked for.
func exportAudit(ctx context.Context, out io.Writer, s store.Store, o exportOptions) error {
	records, err := o.Filter.records(ctx, s)
	if err != nil {
		return err
	}
	e := exportFormats[o.Format](out)
	for len(records) > 0 {
		page := records[:min(len(records), chainPage)]
		records = records[len(page):]
		err := s.View(ctx, func(r store.Reader) error {
			for _, a := range page {
				x := exported{AuditRecord: a}
				if o.Payloads && a.PayloadHash != "" {
					if err := x.fill(r); err != nil {
						return err
					}
				}
				if err := e.write(x); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return couldNot("the export can't be written: %w", err)
		}
	}
	return e.end()
}

// fill adds what a record commits to.
func (x *exported) fill(r store.Reader) error {
	p, ok, err := payloadOf(r, x.AuditRecord)
	if err != nil || !ok {
		return err
	}
	if x.Salt = p.Salt; utf8.Valid(p.Body) {
		x.Payload = string(p.Body)
	} else {
		x.Binary = p.Body
	}
	return nil
}

// jsonExport writes one JSON object on a line.
type jsonExport struct{ *json.Encoder }

func (e jsonExport) write(x exported) error { return e.Encode(x) }
func (e jsonExport) end() error             { return nil }

// csvExport writes RFC 4180, with a head line.
type csvExport struct {
	w      *csv.Writer
	headed bool
}

// csvFacts are the facts that have a column of their own; the others are one JSON object.
var csvFacts = []string{"tool", "kind", "role", "risk", "state", "digest"}

func newCSVExport(w io.Writer) *csvExport {
	c := csv.NewWriter(w)
	c.UseCRLF = true
	return &csvExport{w: c}
}

func (e *csvExport) write(x exported) error {
	if err := e.head(); err != nil {
		return err
	}
	row := []string{x.At.UTC().Format(time.RFC3339Nano), string(x.Kind), string(x.Actor), x.Chain, strconv.FormatUint(x.Seq, 10)}
	rest := maps.Clone(x.Facts)
	for _, name := range csvFacts {
		row = append(row, x.Facts[name])
		delete(rest, name)
	}
	others := ""
	if len(rest) > 0 {
		raw, err := json.Marshal(rest)
		if err != nil {
			return err
		}
		others = string(raw)
	}
	row = append(row, others, x.Hash, x.Prev, x.PayloadHash, x.text())
	for i, cell := range row {
		row[i] = inert(cell)
	}
	return e.w.Write(row)
}

func (e *csvExport) head() error {
	if e.headed {
		return nil
	}
	e.headed = true
	head := append([]string{"time", "what", "actor", "request", "seq"}, csvFacts...)
	return e.w.Write(append(head, "facts", "hash", "prev", "payload_hash", "payload"))
}

func (e *csvExport) end() error {
	if err := e.head(); err != nil {
		return err
	}
	e.w.Flush()
	return e.w.Error()
}

// text is the payload as one text.
func (x exported) text() string {
	if x.Binary != nil {
		return fmt.Sprintf("%x", x.Binary)
	}
	return x.Payload
}

// inert keeps a spreadsheet from taking a cell for a formula.
func inert(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

// cefExport writes ArcSight's Common Event Format, version 0, as SIEM systems read it.
type cefExport struct{ w io.Writer }

// cefSeverity is how much a record matters, from 0 to 10; what is not named is 3.
var cefSeverity = map[approvers.AuditKind]int{
	approvers.AuditShown: 1, approvers.AuditReturned: 1, approvers.AuditReminded: 1, approvers.AuditDenied: 6, approvers.AuditUnknown: 8,
	approvers.AuditReopened: 5, approvers.AuditPaused: 7, approvers.AuditErased: 6, approvers.AuditPruned: 6, approvers.AuditRestored: 9,
}

func (e cefExport) write(x exported) error {
	severity, ok := cefSeverity[x.Kind]
	if !ok {
		severity = 3
	}
	if x.Facts["break_glass"] != "" {
		severity = 9
	}
	var b strings.Builder
	fmt.Fprintf(&b, "CEF:0|Countersign|countersign|1|%s|%s|%d|", cefHead(string(x.Kind)), cefHead(string(x.Kind)), severity)
	field := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s=%s ", key, cefValue(value))
		}
	}
	field("rt", strconv.FormatInt(x.At.UnixMilli(), 10))
	field("externalId", x.Chain+"/"+strconv.FormatUint(x.Seq, 10))
	field("suser", string(x.Actor))
	field("act", x.Facts["kind"])
	field("outcome", x.Facts["state"])
	for i, c := range [][2]string{{"tool", x.Facts["tool"]}, {"role", x.Facts["role"]}, {"digest", x.Facts["digest"]}, {"hash", x.Hash}, {"facts", facts(x.Facts)}, {"payload", x.text()}} {
		if c[1] != "" {
			field(fmt.Sprintf("cs%dLabel", i+1), c[0])
			field(fmt.Sprintf("cs%d", i+1), c[1])
		}
	}
	_, err := fmt.Fprintln(e.w, strings.TrimSuffix(b.String(), " "))
	return err
}

func (e cefExport) end() error { return nil }

var (
	cefHeads  = strings.NewReplacer(`\`, `\\`, `|`, `\|`, "\n", " ", "\r", " ")
	cefValues = strings.NewReplacer(`\`, `\\`, `=`, `\=`, "\n", `\n`, "\r", `\r`)
)

func cefHead(s string) string  { return cefHeads.Replace(s) }
func cefValue(s string) string { return cefValues.Replace(s) }

// formatNames lists the formats.
func formatNames() string { return strings.Join(slices.Sorted(maps.Keys(exportFormats)), ", ") }
