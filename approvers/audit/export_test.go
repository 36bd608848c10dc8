package audit

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"countersign/approvers"
)

// Texts of people can't create a formula, another field or another line in an export.
func TestExportIsInert(t *testing.T) {
	for in, want := range map[string]string{"=cmd()": "'=cmd()", "+1": "'+1", "-1": "'-1", "@x": "'@x", "plain": "plain", "": ""} {
		if got := Inert(in); got != want {
			t.Errorf("Inert(%q) = %q, want %q", in, got, want)
		}
	}
	var b strings.Builder
	x := exported{AuditRecord: approvers.AuditRecord{Chain: "req_1", Seq: 1, Kind: approvers.AuditClosed, Actor: "T1/U=1", Facts: map[string]string{"state": "a|b\\c\nact=approve"}}}
	if err := (cefExport{&b}).write(x); err != nil {
		t.Fatal(err)
	}
	if line := b.String(); strings.Count(line, "\n") != 1 || strings.Contains(line, " act=") || !strings.Contains(line, `suser=T1/U\=1`) || !strings.Contains(line, `outcome=a|b\\c\nact\=approve`) {
		t.Errorf("%q", line)
	}
}

// From the text and the salt in an export, a reader can compute the hash of the text, whatever line breaks the text has.
func TestExportedTextsHaveTheirHash(t *testing.T) {
	p := approvers.AuditPayload{Salt: []byte("0123456789abcdef"), Body: []byte("one\ntwo\r\nthree\r, \"four\"")}
	x := exported{AuditRecord: approvers.AuditRecord{Chain: "req_1", Kind: approvers.AuditDecided, PayloadHash: p.Hash()}, Payload: string(p.Body), Salt: p.Salt}
	lines := map[string]string{}
	for format, export := range exporters {
		var b strings.Builder
		e := export(&b)
		if err := errors.Join(e.write(x), e.end()); err != nil {
			t.Fatal(err)
		}
		lines[format] = b.String()
	}
	check := func(format, text, salt, hash string) {
		t.Helper()
		raw, err := hex.DecodeString(salt)
		if err != nil || hash != p.Hash() || (approvers.AuditPayload{Salt: raw, Body: []byte(text)}).Hash() != hash {
			t.Errorf("%s: the text %q with the salt %q has not the hash %q: %v", format, text, salt, hash, err)
		}
	}

	var fields struct {
		Text string `json:"payload"`
		Salt []byte `json:"payload_salt"`
		Hash string `json:"payload_hash"`
	}
	if err := json.Unmarshal([]byte(lines["jsonl"]), &fields); err != nil {
		t.Fatal(err)
	}
	check("jsonl", fields.Text, hex.EncodeToString(fields.Salt), fields.Hash)

	// csv.Reader reads \r\n in a cell as \n, so the cells are taken from the text.
	head, row, _ := strings.Cut(lines["csv"], "\r\n")
	if !strings.HasSuffix(head, ",payload_hash,payload,payload_salt") || !strings.HasSuffix(row, "\r\n") {
		t.Errorf("csv: the lines are %q", lines["csv"])
	}
	before, rest, _ := strings.Cut(row, `,"`)
	text, salt, _ := strings.Cut(rest, `",`)
	check("csv", strings.ReplaceAll(text, `""`, `"`), strings.TrimSpace(salt), before[strings.LastIndexByte(before, ',')+1:])

	cef := regexp.MustCompile(` cs6=(.*) flexString1Label=payload_hash flexString1=(.*) flexString2Label=payload_salt flexString2=(.*)`).FindStringSubmatch(lines["cef"])
	if cef == nil {
		t.Fatalf("cef: %s", lines["cef"])
	}
	plain := strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\=`, "=", `\\`, `\`)
	check("cef", plain.Replace(cef[1]), plain.Replace(cef[3]), cef[2])
}
