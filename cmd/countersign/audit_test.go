package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/task"
	"countersign/internal/testkit"
	"countersign/store"
)

// runTask runs a task by its name, as the running bot does.
func runTask(ctx context.Context, name string, w task.Env, options any) error {
	text, err := json.Marshal(options)
	if err != nil {
		return err
	}
	for _, t := range tasks() {
		if t.Named() == name {
			return t.Handle(ctx, w, text)
		}
	}
	return task.ErrSkew
}

// altered is a store whose rows are changed when they are read.
type altered struct {
	store.Store
	payload func(*approvers.AuditPayload)
	chain   func([]approvers.AuditRecord)
	journal func(*approvers.JournalEntry)
	head    func(*store.Head)
}

func (a altered) View(ctx context.Context, fn func(store.Reader) error) error {
	return a.Store.View(ctx, func(r store.Reader) error { return fn(alteredReader{r, a}) })
}

type alteredReader struct {
	store.Reader
	by altered
}

func (r alteredReader) AuditPayload(chain string, seq uint64) (approvers.AuditPayload, error) {
	p, err := r.Reader.AuditPayload(chain, seq)
	if err == nil && r.by.payload != nil {
		r.by.payload(&p)
	}
	return p, err
}

func (r alteredReader) Audit(chain string) ([]approvers.AuditRecord, error) {
	all, err := r.Reader.Audit(chain)
	if err == nil && r.by.chain != nil {
		r.by.chain(all)
	}
	return all, err
}

func (r alteredReader) Journal(from uint64, limit int) ([]approvers.JournalEntry, error) {
	all, err := r.Reader.Journal(from, limit)
	for i := range all {
		if r.by.journal != nil {
			r.by.journal(&all[i])
		}
	}
	return all, err
}

func (r alteredReader) LastHead() (store.Head, error) {
	h, err := r.Reader.LastHead()
	if err == nil && r.by.head != nil {
		r.by.head(&h)
	}
	return h, err
}

func (r alteredReader) Heads(after uint64, limit int) ([]store.Head, error) {
	all, err := r.Reader.Heads(after, limit)
	for i := range all {
		if r.by.head != nil {
			r.by.head(&all[i])
		}
	}
	return all, err
}

// The history of the built-in scenario has each decision, with the person who made the decision.
func TestAudit(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	dir := t.TempDir()
	var out bytes.Buffer
	if err := demo(t.Context(), demoOptions{addr: "127.0.0.1:0", patience: patience, data: dir, play: builtIn, noBrowser: true}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	db, err := openstore.File(filepath.Join(dir, "countersign.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	out.Reset()
	if err := audit.List(t.Context(), &out, db, audit.ListOptions{Long: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"decided", "T0001/U0002", "T0001/U0003", `kind="reject"`, `kind="approve"`, `role="team-lead"`, "returned"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the list lacks %s:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "jane@example.com") || strings.Contains(out.String(), "undone") {
		t.Errorf("the list shows what people wrote:\n%s", out.String())
	}
	out.Reset()
	if err := audit.List(t.Context(), &out, db, audit.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  Find orders: customer email jane@example.com · nobody was asked · ran  exec_", "  Ship ORD-123 to 12 Elm Street, Springfield · nobody was asked · ran    exec_",
		"  Refund of $49.99 for order ORD-123 · Teo (team-lead) · ran  ", "  Permanently cancel account USR… · Ingrid (finance-director) · rejected  req_",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the list lacks %s:\n%s", want, out.String())
		}
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 120 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	if err := audit.List(t.Context(), &out, db, audit.ListOptions{Filter: audit.Filter{Chain: "req_none"}}); cli.Code(auditcmd.HistoryError(err)) != cli.ExitNo {
		t.Errorf("an unknown request: %v", err)
	}
}

// Each filter selects the right records. A combination of filters selects only the records that each of the filters
// selects.
func TestAuditFilter(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	db := played(t, builtIn)
	all, _, err := audit.Filter{}.Records(t.Context(), db)
	if err != nil || len(all) < 20 {
		t.Fatalf("%d records, %v", len(all), err)
	}
	refund := all[slices.IndexFunc(all, func(r approvers.AuditRecord) bool { return r.Facts["tool"] == "issue_refund" })]
	middle := all[len(all)/2].At
	tests := map[string]struct {
		filter audit.Filter
		want   func(approvers.AuditRecord) bool
	}{
		"request": {audit.Filter{Chain: refund.Chain}, func(r approvers.AuditRecord) bool { return r.Chain == refund.Chain }},
		"tool":    {audit.Filter{Tool: "issue_refund"}, func(r approvers.AuditRecord) bool { return r.Chain == refund.Chain }},
		"actor":   {audit.Filter{Actor: "U0002"}, func(r approvers.AuditRecord) bool { return r.Actor == "T0001/U0002" }},
		"whole":   {audit.Filter{Actor: "T0001/U0003"}, func(r approvers.AuditRecord) bool { return r.Actor == "T0001/U0003" }},
		"bot":     {audit.Filter{Actor: "bot"}, func(r approvers.AuditRecord) bool { return r.Actor == "" }},
		"kind": {audit.Filter{Kinds: []string{"decided", "executing"}}, func(r approvers.AuditRecord) bool {
			return r.Kind == approvers.AuditDecided || r.Kind == approvers.AuditExecuting
		}},
		"since": {audit.Filter{Since: middle}, func(r approvers.AuditRecord) bool { return !r.At.Before(middle) }},
		"until": {audit.Filter{Until: middle}, func(r approvers.AuditRecord) bool { return r.At.Before(middle) }},
		"two":   {audit.Filter{Tool: "issue_refund", Kinds: []string{"decided"}}, func(r approvers.AuditRecord) bool { return r.Chain == refund.Chain && r.Kind == approvers.AuditDecided }},
	}
	for name, tt := range tests {
		got, _, err := tt.filter.Records(t.Context(), db)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := slices.DeleteFunc(slices.Clone(all), func(r approvers.AuditRecord) bool { return !tt.want(r) })
		if len(want) == 0 || len(want) == len(all) || !slices.EqualFunc(got, want, func(a, b approvers.AuditRecord) bool { return a.Hash == b.Hash }) {
			t.Errorf("%s: %d records of %d, want %d", name, len(got), len(all), len(want))
		}
	}
}

// Each format contains every record. Texts are included only if the caller asks for them. The chains in an export with
// texts in JSON can be verified.
func TestExport(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	db := played(t, builtIn)
	all, _, err := audit.Filter{}.Records(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	export := func(format string, payloads bool) string {
		var b strings.Builder
		if err := audit.Export(t.Context(), &b, db, audit.ExportOptions{Format: format, Payloads: payloads}); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		return b.String()
	}
	for _, format := range audit.ExportFormats() {
		if bare := export(format, false); strings.Contains(bare, "arrived broken") || strings.Contains(bare, "order_id") {
			t.Errorf("%s shows what people wrote, unasked", format)
		}
		if full := export(format, true); !strings.Contains(full, "arrived broken") || !strings.Contains(full, "order_id") {
			t.Errorf("%s lacks the texts that were asked for", format)
		}
	}
	lines := strings.Split(strings.TrimSpace(export("jsonl", true)), "\n")
	var read []approvers.AuditRecord
	for _, line := range lines {
		var x struct {
			approvers.AuditRecord
			Payload string `json:"payload"`
			Salt    []byte `json:"payload_salt"`
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if p := (approvers.AuditPayload{Salt: x.Salt, Body: []byte(x.Payload)}); x.PayloadHash != "" && p.Hash() != x.PayloadHash {
			t.Errorf("record %d of %s: its payload does not match its hash any more", x.Seq, x.Chain)
		}
		read = append(read, x.AuditRecord)
	}
	byChain := map[string][]approvers.AuditRecord{}
	for _, r := range read {
		byChain[r.Chain] = append(byChain[r.Chain], r)
	}
	for chain, records := range byChain {
		if err := approvers.VerifyChain(records); err != nil {
			t.Errorf("the exported chain %s does not verify: %v", chain, err)
		}
	}
	table := export("csv", true)
	if head, _, _ := strings.Cut(table, "\n"); !strings.HasSuffix(head, "\r") {
		t.Errorf("RFC 4180 ends lines with CRLF; this is %q", head)
	}
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil || len(rows) != len(all)+1 {
		t.Errorf("csv: %d rows for %d records, %v", len(rows), len(all), err)
	}
	cef := strings.Split(strings.TrimSpace(export("cef", true)), "\n")
	shape := regexp.MustCompile(`^CEF:0\|Countersign\|countersign\|1\|[a-z]+\|[a-z]+\|\d+\|rt=\d+ externalId=\S+ `)
	for _, line := range cef {
		if !shape.MatchString(line) {
			t.Errorf("not CEF: %.200s", line)
		}
	}
	if len(lines) != len(all) || len(cef) != len(all) {
		t.Errorf("%d lines of JSON and %d of CEF for %d records", len(lines), len(cef), len(all))
	}
}

// evidenceFixture is a store with a played history, and the public key of its signed heads.
type evidenceFixture struct {
	*testing.T
	store.Store
	key   string
	chain string // the chain of the refund's request
	heads uint64
}

func newEvidenceFixture(t *testing.T) evidenceFixture {
	t.Helper()
	room := evidenceFixture{T: t, Store: played(t, builtIn)}
	ran, _, err := audit.Filter{Tool: "issue_refund", Kinds: []string{"executing"}}.Records(t.Context(), room)
	if err != nil || len(ran) != 1 {
		t.Fatalf("%v, %v", ran, err)
	}
	room.chain = ran[0].Chain
	err = room.View(t.Context(), func(r store.Reader) error {
		first, err := r.Heads(0, 1)
		if err != nil {
			return err
		}
		head, err := approvers.ReadHead(first[0].Note)
		if err != nil {
			return err
		}
		last, err := r.LastHead()
		room.key, room.heads = head.Key, last.Number
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return room
}

// page returns the evidence page about the refund. The page is made from the store s, and verified with the trusted
// keys.
func (room evidenceFixture) page(s store.Store, keys ...string) string {
	room.Helper()
	var b strings.Builder
	faults, err := audit.WriteEvidence(room.Context(), &b, s, "", audit.EvidenceOptions{Requests: []string{room.chain}, Keys: keys, Own: true})
	if err != nil || faults > 0 != strings.Contains(b.String(), "✗") {
		room.Errorf("%d faults (%v), unlike the page", faults, err)
	}
	return html.UnescapeString(b.String())
}

func (room evidenceFixture) wants(what, page string, fault bool, texts ...string) {
	room.Helper()
	if strings.Contains(page, "✗") != fault {
		room.Errorf("%s: the page finds a fault: %t", what, !fault)
	}
	for _, want := range texts {
		if !strings.Contains(page, want) {
			room.Errorf("%s: the page lacks %q", what, want)
		}
	}
}

// The evidence page describes what happened to a request, and reports a changed text. There is no page for an unknown
// request.
func TestEvidence(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	room := newEvidenceFixture(t)
	room.wants("as it was played", room.page(room, room.key), false,
		"Refund of $49.99 for order ORD-123", "Asked by Sam (U0100)", "Teo (U0002) approved it as team-lead", "What ran is what was approved", "Teo (U0002) decided on this one")
	changed := altered{Store: room, payload: func(p *approvers.AuditPayload) { p.Body = append(p.Body, '!') }}
	room.wants("a changed text", room.page(changed, room.key), true, "texts were changed")
	_, err := audit.WriteEvidence(t.Context(), &bytes.Buffer{}, room, "", audit.EvidenceOptions{Requests: []string{"req_none"}})
	if cli.Code(auditcmd.HistoryError(err)) != cli.ExitNo {
		t.Errorf("an unknown request: %v", err)
	}
}

// The evidence page names the signed head that covers the records, and the key that signed the head. The page says that
// each record was proved to be covered by the head.
func TestEvidenceSeal(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	room := newEvidenceFixture(t)
	var chain []approvers.AuditRecord
	var head store.Head // the first head that covers the last record, found by a search through all heads
	err := room.View(t.Context(), func(r store.Reader) (err error) {
		if chain, err = r.Audit(room.chain); err != nil {
			return err
		}
		row, err := r.AuditRow(room.chain, uint64(len(chain)))
		if err != nil {
			return err
		}
		heads, err := r.Heads(0, 1000)
		for i := len(heads) - 1; i >= 0 && heads[i].Size > row.Leaf; i-- {
			head = heads[i]
		}
		return err
	})
	if err != nil || head.Number == 0 {
		t.Fatal(head, err)
	}
	signed, err := approvers.ReadHead(head.Note)
	if err != nil {
		t.Fatal(err)
	}
	room.wants("its own key", room.page(room, room.key), false, fmt.Sprintf("Signed head %d of %s covers every record, %d in all", head.Number, signed.At.Format("2006-01-02 15:04:05 UTC"), len(chain)),
		signed.Root.String(), room.key, "signed by a key in the bot's own file")
	room.wants("no key", room.page(room), false, "not checked with any key", "covers every record")
	room.wants("another key", room.page(room, newKey(t, "countersign-other").Public), true, "is not signed by a key that is trusted")

	// The evidence page marks records that are newer than the newest head.
	err = room.Update(t.Context(), func(tx store.Tx) error {
		return appendRecord(tx, room.chain, approvers.AuditRemarked, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	room.wants("a newer record", room.page(room, room.key), false, fmt.Sprintf("covers %d of the %d records", len(chain), len(chain)+1), "○")
	room.chain = "req_new"
	err = room.Update(t.Context(), func(tx store.Tx) error {
		return appendRecord(tx, room.chain, approvers.AuditProposed, map[string]string{"tool": "x"})
	})
	if err != nil {
		t.Fatal(err)
	}
	room.wants("only newer records", room.page(room, room.key), false, fmt.Sprintf("No signed head covers the records yet: they are newer than head %d of", room.heads))
}

// If somebody without the signing key changes the history, the evidence page shows a fault, even if the chain itself is
// consistent.
func TestEvidenceOfATamperedHistory(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	room := newEvidenceFixture(t)
	relinked := func(all []approvers.AuditRecord) { // names another person as the approver, and links all records again
		var before approvers.AuditRecord
		for i := range all {
			if all[i].Kind == approvers.AuditDecided {
				all[i].Actor = "T0001/U0003"
			}
			all[i] = all[i].Link(before)
			before = all[i]
		}
	}
	for name, c := range map[string]struct {
		by   altered
		want string
	}{
		"records made again": {altered{chain: relinked}, "There is no proof that signed head"},
		"another record of the history, made again with its entry": {altered{journal: func(e *approvers.JournalEntry) {
			if e.Leaf == 0 {
				e.Sum[3]++
			}
		}}, "There is no proof that signed head"},
		"entries that are missing": {altered{journal: func(e *approvers.JournalEntry) {
			if e.Chain == room.chain {
				e.Chain = "req_other"
			}
		}}, "are not in the journal"},
		"a head of another size": {altered{head: func(h *store.Head) { h.Size += 1000 }}, "does not match it"},
		"a head by another key":  {altered{head: func(h *store.Head) { h.Note = forged(t, h.Note) }}, "is not signed by a key that is trusted"},
		"no head at all":         {altered{head: func(h *store.Head) { h.Note = "nothing" }}, "does not match it"},
	} {
		c.by.Store = room
		page := room.page(c.by, room.key)
		room.wants(name, page, true, c.want)
		if !strings.Contains(page, "The chain is whole") || strings.Contains(page, "covers every record") {
			t.Errorf("%s: the page does not speak of the chain, or says that it is sealed", name)
		}
	}
}

// The function "forged" returns a copy of a signed head. The copy has the same text, but another key signed it.
func forged(t *testing.T, signed string) string {
	t.Helper()
	head, err := approvers.ReadHead(signed)
	if err != nil {
		t.Fatal(err)
	}
	note, err := head.Sign(newKey(t, head.Origin))
	if err != nil {
		t.Fatal(err)
	}
	return note
}

// newKey returns a key of an installation that has not signed anything yet.
func newKey(t *testing.T, origin string) approvers.SealKey {
	t.Helper()
	text, err := approvers.NewSealKey(rand.Reader, origin)
	if err != nil {
		t.Fatal(err)
	}
	key, err := approvers.ParseSealKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// headless is a store whose newest signed head is damaged.
type headless struct{ store.Store }

type headlessReader struct{ store.Reader }

func (s headless) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error { return fn(headlessReader{r}) })
}

func (headlessReader) LastHead() (store.Head, error) {
	return store.Head{}, &store.DamagedError{Damage: store.Damage{Bucket: "audit_heads", Key: "3", Why: "its checksum does not match"}}
}

// The evidence page reports a damaged signed head as a fault, and all other parts of the page are written.
func TestEvidenceUnderADamagedHead(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	room := newEvidenceFixture(t)
	page := room.page(headless{room}, room.key)
	room.wants("a damaged head", page, true, "A row that is needed to check the seal is damaged: audit_heads, row 3: its checksum does not match.", "The chain is whole")
	if strings.Contains(page, "has no signed heads") {
		t.Error("the page says that the store has no heads")
	}
	err := runTask(t.Context(), "audit evidence", task.Env{Store: headless{room}, Out: io.Discard}, audit.EvidenceOptions{Requests: []string{room.chain}, Own: true})
	if cli.Code(err) != cli.ExitNo {
		t.Errorf("it ends with %v", err)
	}
}
