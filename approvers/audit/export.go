package audit

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/store"
)

// exporters creates the writer of each format.
var exporters = map[string]func(io.Writer) exporter{
	"jsonl": func(w io.Writer) exporter { return jsonExport{json.NewEncoder(w)} },
	"csv":   func(w io.Writer) exporter { return &csvExport{out: w} },
	"cef":   func(w io.Writer) exporter { return cefExport{w} },
}

// ExportOptions selects records and a format.
type ExportOptions struct {
	Filter   Filter
	Format   string
	Payloads bool
}

// exporter writes records in one format.
type exporter interface {
	write(exported) error
	end() error
}

// exported is a record in an export. The payload is set if the caller asked for payloads and the record has one.
type exported struct {
	approvers.AuditRecord
	Payload string `json:"payload,omitempty"`      // as text
	Binary  []byte `json:"payload_b64,omitempty"`  // the payload, if it is not text
	Salt    []byte `json:"payload_salt,omitempty"` // the salt with which payload_hash can be computed from the payload
}

// Export writes the selected records in a format. Texts that people wrote are written only if Payloads is set.
func Export(ctx context.Context, out io.Writer, s store.Store, o ExportOptions) error {
	records, left, err := o.Filter.Records(ctx, s)
	if err != nil {
		return err
	}
	e := exporters[o.Format](out)
	for len(records) > 0 {
		page := records[:min(len(records), chainPage)]
		records = records[len(page):]
		err := s.View(ctx, func(r store.Reader) error {
			for _, a := range page {
				x := exported{AuditRecord: a}
				if o.Payloads && a.PayloadHash != "" {
					if err := left.Add(x.fill(r)); err != nil {
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
			return fmt.Errorf("the export can't be written: %w", err)
		}
	}
	if err := e.end(); err != nil {
		return err
	}
	return left.Err()
}

// fill adds the payload.
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

func (e jsonExport) end() error { return nil }

// csvExport writes CSV according to RFC 4180, with a header line.
type csvExport struct {
	out    io.Writer
	row    bytes.Buffer
	headed bool
}

// csvFacts lists the facts that have a column of their own. All other facts share one column, as a JSON object.
var csvFacts = []string{"tool", "kind", "role", "risk", "state", "digest"}

// line writes a row. csv.Writer can end rows with CRLF, but would also change the line breaks in cells, and so the texts'
// hashes.
func (e *csvExport) line(row []string) error {
	e.row.Reset()
	w := csv.NewWriter(&e.row)
	if err := w.Write(row); err != nil {
		return err
	}
	w.Flush()
	e.row.Truncate(e.row.Len() - len("\n"))
	e.row.WriteString("\r\n")
	_, err := e.out.Write(e.row.Bytes())
	return err
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
	row = append(row, others, x.Hash, x.Prev, x.PayloadHash, x.text(), x.salt())
	for i, cell := range row {
		row[i] = Inert(cell)
	}
	return e.line(row)
}

func (e *csvExport) head() error {
	if e.headed {
		return nil
	}
	e.headed = true
	head := append([]string{"time", "what", "actor", "request", "seq"}, csvFacts...)
	return e.line(append(head, "facts", "hash", "prev", "payload_hash", "payload", "payload_salt"))
}

func (e *csvExport) end() error { return e.head() }

// text returns the payload as text.
func (x exported) text() string {
	if x.Binary != nil {
		return fmt.Sprintf("%x", x.Binary)
	}
	return x.Payload
}

// salt returns the payload's salt in hex. In base64, a salt could look like a formula.
func (x exported) salt() string { return hex.EncodeToString(x.Salt) }

// Inert prevents a spreadsheet from treating a cell as a formula.
func Inert(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

// cefExport writes version 0 of ArcSight's Common Event Format, which SIEM systems read.
type cefExport struct{ w io.Writer }

// cefSeverity has the severity of kinds of record, from 0 to 10. The default is 3.
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
	custom := [][2]string{
		{"tool", x.Facts["tool"]}, {"role", x.Facts["role"]}, {"digest", x.Facts["digest"]},
		{"hash", x.Hash}, {"facts", facts(x.Facts)}, {"payload", x.text()},
	}
	for i, c := range custom {
		if c[1] != "" {
			field(fmt.Sprintf("cs%dLabel", i+1), c[0])
			field(fmt.Sprintf("cs%d", i+1), c[1])
		}
	}
	for i, c := range [][2]string{{"payload_hash", x.PayloadHash}, {"payload_salt", x.salt()}} { // CEF has no more than six cs fields
		if c[1] != "" {
			field(fmt.Sprintf("flexString%dLabel", i+1), c[0])
			field(fmt.Sprintf("flexString%d", i+1), c[1])
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

func cefHead(s string) string { return cefHeads.Replace(s) }

func cefValue(s string) string { return cefValues.Replace(s) }

// ExportFormats returns the sorted names of the formats.
func ExportFormats() []string { return slices.Sorted(maps.Keys(exporters)) }
