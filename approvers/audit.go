package approvers

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// AuditKind is the kind of an audit record.
type AuditKind string

// The kinds of audit record. For each kind, docs/audit.md describes when the record is written, and by whom.
const (
	AuditProposed      AuditKind = "proposed"
	AuditShown         AuditKind = "shown"
	AuditDenied        AuditKind = "denied"  // somebody's action was denied; see Code
	AuditDecided       AuditKind = "decided" // approve, reject or modify
	AuditAdvanced      AuditKind = "advanced"
	AuditApproved      AuditKind = "approved"  // the last stage has its quorum
	AuditClosed        AuditKind = "closed"    // rejected, expired, withdrawn, revoked, voided or refused
	AuditReopened      AuditKind = "reopened"  // the policy became stricter after the approval
	AuditPreviewed     AuditKind = "previewed" // the bot asked a tool for a preview of a call, or got the preview
	AuditReplanned     AuditKind = "replanned" // the policy became stricter while the request waited
	AuditEscalated     AuditKind = "escalated"
	AuditExecuting     AuditKind = "executing"
	AuditExecuted      AuditKind = "executed"
	AuditUnknown       AuditKind = "unknown"
	AuditReported      AuditKind = "reported"
	AuditReturned      AuditKind = "returned" // the model got the result
	AuditReminded      AuditKind = "reminded" // the bot reminded people who had not decided
	AuditInvited       AuditKind = "invited"  // a person was added to the stage: a stand-in, or a colleague to whom an approver handed on the request
	AuditAnswered      AuditKind = "answered" // a person answered a question from the model
	AuditElicited      AuditKind = "elicited" // a tool asked the requester a question during its run
	AuditReplied       AuditKind = "replied"  // the tool's question ended: accepted, declined, cancelled or expired
	AuditAttached      AuditKind = "attached" // a run returned a file
	AuditRemarked      AuditKind = "remarked" // a question, an answer or a comment
	AuditAway          AuditKind = "away"     // a person set an absence (in the person's own chain)
	AuditGranted       AuditKind = "granted"  // a grant was offered, given, used, or ended (in the grant's own chain)
	AuditMessageEdited AuditKind = "reworded" // a person edited or deleted a message that had led to the request, or that had answered a question about the request
	AuditPaused        AuditKind = "paused"   // somebody stopped every run and model call (in the installation's chain)
	AuditResumed       AuditKind = "resumed"  // somebody resumed the runs and model calls
	AuditPolicy        AuditKind = "policy"   // another policy or other pins came into force (in the installation's chain)
	AuditStarted       AuditKind = "started"  // a process of Countersign began to work on the store (in the installation's chain)
	AuditAdopted       AuditKind = "adopted"  // another Slack app took over the store from the app to which it belonged (in the installation's chain)
	AuditErased        AuditKind = "erased"   // payloads were erased; the records and their hashes stay
	AuditPruned        AuditKind = "pruned"   // a whole chain was removed because of its age (in the installation's chain)
	AuditDamaged       AuditKind = "damaged"  // a stored record could not be read and was set aside or closed (in the installation's chain)
	AuditRestored      AuditKind = "restored" // the store was restored from a backup (in the installation's chain)
)

// AuditKinds lists all kinds.
var AuditKinds = []AuditKind{
	AuditProposed, AuditPreviewed, AuditShown, AuditDenied, AuditDecided, AuditAdvanced, AuditApproved,
	AuditClosed, AuditReopened, AuditReplanned, AuditEscalated, AuditExecuting, AuditExecuted,
	AuditUnknown, AuditReported, AuditReturned, AuditReminded, AuditInvited, AuditAnswered,
	AuditRemarked, AuditAway, AuditGranted, AuditPaused, AuditResumed, AuditPolicy, AuditStarted, AuditErased,
	AuditPruned, AuditDamaged, AuditRestored, AuditMessageEdited, AuditElicited, AuditReplied, AuditAttached,
	AuditAdopted,
}

// InstallationChain is the chain for events of the whole installation, such as pauses, policies and restores.
const InstallationChain = "installation"

// GrantChain returns the name of a grant's chain.
func GrantChain(grant string) string { return "grant:" + grant }

// AbsenceChain returns the name of the chain of a person's absences.
func AbsenceChain(who PersonID) string { return "absence:" + string(who) }

// AuditRecord is one entry of the hash-chained history. Chain is usually a request's id. If a call needed no
// approval, Chain is the execution's id. Absences, grants and the installation also have chains. Because each request
// has its own chain, writers of different requests do not wait for each other.
type AuditRecord struct {
	Chain       string            `json:"chain"`
	Seq         uint64            `json:"seq"` // from 1, without gaps
	At          time.Time         `json:"at"`
	Kind        AuditKind         `json:"kind"`
	Actor       PersonID          `json:"actor,omitempty"` // empty: the bot itself
	Facts       map[string]string `json:"facts,omitempty"` // names, states and digests; never arguments or texts
	PayloadHash string            `json:"payload_hash,omitempty"`
	Prev        string            `json:"prev,omitempty"`
	Hash        string            `json:"hash"`
}

// AuditPayload holds a record's arguments, reasons and renderings. The record's PayloadHash is the hash of this data.
// The payload is stored separately from the record, so erasing the payload does not break the chain. The salt keeps
// the hash from revealing a payload that can be guessed.
type AuditPayload struct {
	Chain string `json:"chain"`
	Seq   uint64 `json:"seq"`
	Salt  []byte `json:"salt"` // 16 random bytes
	Body  []byte `json:"body"`
}

// Hash returns the salted hash of the payload.
func (p AuditPayload) Hash() string { return SumOf(p.Bytes()).String() }

// Link chains a record to its predecessor. Link sets Seq, Prev and Hash. Link also changes At and Facts to values that
// every backend can store.
func (a AuditRecord) Link(prev AuditRecord) AuditRecord {
	a.Seq, a.Prev = prev.Seq+1, prev.Hash
	a.At = a.At.UTC().Truncate(time.Microsecond) // the precision that every backend can store
	a.Facts = storable(a.Facts)
	a.Hash = a.sum()
	return a
}

// storable returns facts that every backend can store without a change. Without facts, the result is nil. The result
// contains no bytes that JSON would replace.
func storable(facts map[string]string) map[string]string {
	valid := len(facts) > 0
	for name, value := range facts {
		valid = valid && utf8.ValidString(name) && utf8.ValidString(value)
	}
	if valid {
		return facts
	}
	var out map[string]string
	for name, value := range facts {
		if out == nil {
			out = make(map[string]string, len(facts))
		}
		out[strings.ToValidUTF8(name, "\uFFFD")] = strings.ToValidUTF8(value, "\uFFFD")
	}
	return out
}

// sum hashes every field except Hash.
func (a AuditRecord) sum() string { return SumOf(a.Bytes()).String() }

// VerifyChain checks that records form one complete chain, in order. The error of VerifyChain names the sequence number
// of the first faulty record.
func VerifyChain(records []AuditRecord) error {
	var prev AuditRecord
	for i, a := range records {
		switch {
		case a.Seq != uint64(i)+1:
			return fmt.Errorf("chain %s: record %d is missing or out of order (found %d)", a.Chain, i+1, a.Seq)
		case i > 0 && a.Chain != prev.Chain:
			return fmt.Errorf("chain %s: record %d belongs to chain %s", prev.Chain, a.Seq, a.Chain)
		case a.Prev != prev.Hash:
			return fmt.Errorf("chain %s: record %d does not follow record %d", a.Chain, a.Seq, prev.Seq)
		case a.sum() != a.Hash:
			return fmt.Errorf("chain %s: record %d was changed", a.Chain, a.Seq)
		}
		prev = a
	}
	return nil
}

// Domain tags of the hashes.
const (
	recordDomain  = "countersign/audit/v1"
	payloadDomain = "countersign/audit-payload/v1"
)

// Sum is a SHA-256 hash.
type Sum [sha256.Size]byte

// String returns the sum in hex, the form used in records.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Is reports whether name is the sum in hex.
func (s Sum) Is(name string) bool {
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], s[:])
	return string(text[:]) == name
}

// SumOf returns the SHA-256 hash of b, such as the result of AuditRecord.Bytes or AuditPayload.Bytes.
func SumOf(b []byte) Sum { return sha256.Sum256(b) }

// ErrDamaged means that bytes can't be parsed as an audit record or payload.
var ErrDamaged = errors.New("these are not the bytes of an audit record")

// Bytes returns the input of the record's hash: every field except Hash. Backends store these bytes unchanged. So
// verification hashes exactly the stored bytes.
func (a AuditRecord) Bytes() []byte {
	var room [1024]byte
	facts := appendFacts(room[:0], a.Facts)
	b := make([]byte, 0, 9*8+len(recordDomain)+len(a.Chain)+16+len(a.Kind)+len(a.Actor)+len(facts)+len(a.PayloadHash)+len(a.Prev))
	b = appendPart(b, recordDomain)
	b = appendPart(b, a.Chain)
	b = appendNumber(b, a.Seq)
	b = appendNumber(b, uint64(a.At.UnixMicro()))
	b = appendPart(b, a.Kind)
	b = appendPart(b, a.Actor)
	b = appendPart(b, facts)
	b = appendPart(b, a.PayloadHash)
	return appendPart(b, a.Prev)
}

// ParseAuditRecord parses the bytes of a record. ParseAuditRecord computes Hash from these bytes.
func ParseAuditRecord(b []byte) (a AuditRecord, err error) {
	p := parts{rest: string(b)}
	domain := p.next()
	a.Chain = p.next()
	a.Seq = p.number()
	a.At = time.UnixMicro(int64(p.number())).UTC()
	a.Kind, a.Actor = AuditKind(p.next()), PersonID(p.next())
	facts := p.next()
	a.PayloadHash, a.Prev = p.next(), p.next()
	if p.damaged || p.rest != "" || domain != recordDomain {
		return AuditRecord{}, ErrDamaged
	}
	if a.Facts, err = parseFacts(facts); err != nil {
		return AuditRecord{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	a.Hash = SumOf(b).String()
	return a, nil
}

// Bytes returns the input of the payload's hash. The input does not contain the chain or the sequence number.
func (p AuditPayload) Bytes() []byte {
	b := make([]byte, 0, 3*8+len(payloadDomain)+len(p.Salt)+len(p.Body))
	b = appendPart(b, payloadDomain)
	b = appendPart(b, p.Salt)
	return appendPart(b, p.Body)
}

// ParseAuditPayload parses the bytes of a payload. The result does not alias b.
func ParseAuditPayload(chain string, seq uint64, b []byte) (AuditPayload, error) {
	p := parts{rest: string(b)}
	domain, salt, body := p.next(), p.next(), p.next()
	if p.damaged || p.rest != "" || domain != payloadDomain {
		return AuditPayload{}, ErrDamaged
	}
	return AuditPayload{Chain: chain, Seq: seq, Salt: []byte(salt), Body: []byte(body)}, nil
}

// appendPart appends the length of a part, and then the part. So different lists of parts never give the same bytes.
func appendPart[T ~string | ~[]byte](b []byte, part T) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
	return append(b, part...)
}

func appendNumber(b []byte, n uint64) []byte {
	b = binary.BigEndian.AppendUint64(b, 8)
	return binary.BigEndian.AppendUint64(b, n)
}

// parts reads bytes that appendPart wrote.
type parts struct {
	rest    string
	damaged bool
}

func (p *parts) next() string {
	if len(p.rest) < 8 {
		p.damaged = true
		return ""
	}
	n := bigEndian(p.rest)
	p.rest = p.rest[8:]
	if n > uint64(len(p.rest)) {
		p.damaged = true
		return ""
	}
	part := p.rest[:n]
	p.rest = p.rest[n:]
	return part
}

func (p *parts) number() uint64 {
	s := p.next()
	if len(s) != 8 {
		p.damaged = true
		return 0
	}
	return bigEndian(s)
}

func bigEndian(s string) (n uint64) {
	for i := range 8 {
		n = n<<8 | uint64(s[i])
	}
	return n
}

// appendFacts writes facts as encoding/json does, sorted by name. This format must not change, because the hashes of
// existing records depend on the format.
func appendFacts(b []byte, facts map[string]string) []byte {
	if facts == nil {
		return append(b, "null"...)
	}
	var room [16]string
	names := slices.AppendSeq(room[:0], maps.Keys(facts))
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, name), ':')
		b = appendQuoted(b, facts[name])
	}
	return append(b, '}')
}

func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic(fmt.Sprintf("approvers: a string does not marshal: %v", err))
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// parseFacts parses facts. To be fast, parseFacts splits a text without JSON escapes at the quotation marks. parseFacts
// uses the JSON decoder only for the few texts with escapes.
func parseFacts(s string) (facts map[string]string, err error) {
	if strings.IndexByte(s, '\\') >= 0 || len(s) < 2 || s[0] != '{' {
		err = json.Unmarshal([]byte(s), &facts)
		return facts, err
	}
	quoted := strings.Split(s[1:len(s)-1], `"`) // before, name, ":", value, ",", name, …, after
	if len(quoted)%4 != 1 || s[len(s)-1] != '}' {
		return nil, errFacts
	}
	facts = make(map[string]string, len(quoted)/4)
	for i := 0; i+4 < len(quoted); i += 4 {
		between := ""
		if i > 0 {
			between = ","
		}
		if quoted[i] != between || quoted[i+2] != ":" {
			return nil, errFacts
		}
		facts[quoted[i+1]] = quoted[i+3]
	}
	if quoted[len(quoted)-1] != "" {
		return nil, errFacts
	}
	return facts, nil
}

var errFacts = errors.New("its facts are not in the JSON form in which records are written")

// Erasure lists the records whose payloads were erased. Erasure is stored as the facts of an AuditErased record, in the
// chain of the erased payloads.
type Erasure struct {
	Seqs []uint64 // the sequence numbers of these records
}

// Pruning names a chain that was removed. Pruning is stored as the facts of an AuditPruned record, in
// InstallationChain.
type Pruning struct {
	Chain   string
	Records uint64 // the number of its records
	Head    string // the hash of its last record
}

// ErrFacts means that a record lacks the facts that its kind needs, or that the facts can't be parsed.
var ErrFacts = errors.New("the facts of the record can't be read")

// The fact names of Erasure, Pruning and HistoryLoss.
const (
	factRecords  = "records"
	factPayloads = "payloads"
	factChain    = "chain"
	factHead     = "head"
)

// Facts returns the sequence numbers as ranges: "1-3,7".
func (e Erasure) Facts() map[string]string { return map[string]string{factRecords: ranges(e.Seqs)} }

// ErasureOf parses an AuditErased record. Every sequence number in the result is lower than the sequence number of
// the AuditErased record.
func ErasureOf(a AuditRecord) (e Erasure, err error) {
	if e.Seqs, err = readRanges(a.Facts[factRecords], a.Seq); err != nil {
		return Erasure{}, fmt.Errorf("chain %s: record %d: %w", a.Chain, a.Seq, err)
	}
	return e, nil
}

// ranges writes numbers as ranges.
func ranges(of []uint64) string {
	seqs := slices.Sorted(slices.Values(of))
	seqs = slices.Compact(seqs)
	var b strings.Builder
	for i := 0; i < len(seqs); {
		last := i
		for last+1 < len(seqs) && seqs[last+1] == seqs[last]+1 {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(seqs[i], 10))
		if last > i {
			b.WriteString("-" + strconv.FormatUint(seqs[last], 10))
		}
		i = last + 1
	}
	return b.String()
}

// readRanges reads the text that ranges wrote. Every number must be lower than the parameter limit.
func readRanges(text string, limit uint64) (seqs []uint64, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 64)
		last, err2 := strconv.ParseUint(to, 10, 64)
		if err != nil || err2 != nil || first == 0 || first > last || last >= limit {
			return nil, ErrFacts
		}
		for seq := first; seq <= last; seq++ {
			seqs = append(seqs, seq)
		}
	}
	return seqs, nil
}

// Facts returns the chain's name, its length and its last hash.
func (p Pruning) Facts() map[string]string {
	return map[string]string{factChain: p.Chain, factRecords: strconv.FormatUint(p.Records, 10), factHead: p.Head}
}

// PruningOf parses an AuditPruned record.
func PruningOf(a AuditRecord) (Pruning, error) {
	p := Pruning{Chain: a.Facts[factChain], Head: a.Facts[factHead]}
	n, err := strconv.ParseUint(a.Facts[factRecords], 10, 64)
	if err != nil || n == 0 || p.Chain == "" || p.Head == "" {
		return Pruning{}, fmt.Errorf("chain %s: record %d: %w", a.Chain, a.Seq, ErrFacts)
	}
	p.Records = n
	return p, nil
}

// AuditRow is an audit record in the form in which a backend stores it.
type AuditRow struct {
	Chain   string // the chain under which the row is stored; if somebody moved the row, its record names another chain
	Seq     uint64
	Leaf    uint64 // the row's position in the journal
	Sum     Sum    // the record's hash, computed when the record was written
	Record  []byte // AuditRecord.Bytes; empty: the record is lost (see Lost); nil: only a payload is stored, which never happens in normal operation
	Payload []byte // AuditPayload.Bytes; nil: the record never had a payload, or the payload was erased
	Damaged bool   // the backend found that the row is damaged: every field except Chain and Seq may be wrong
}

// NoLeaf is the value of Leaf for a lost record that is not in the journal.
const NoLeaf = math.MaxUint64

// Lost reports whether the row stands for a record that could not be read when the store was salvaged. For a lost
// record, Sum comes from the journal or from the next record. If neither contains the hash, Sum is zero.
func (x AuditRow) Lost() bool { return x.Record != nil && len(x.Record) == 0 && !x.Damaged }

// HistoryLoss lists the records and payloads of a chain that were lost. HistoryLoss is stored as the facts of an
// AuditDamaged record, in InstallationChain.
type HistoryLoss struct {
	Chain    string
	Records  []uint64 // the sequence numbers of lost records
	Payloads []uint64 // the sequence numbers of records whose payload was lost
}

// Facts returns the chain, the ranges of its lost records and payloads, and the reason.
func (g HistoryLoss) Facts() map[string]string {
	facts := map[string]string{"bucket": "audit", "key": g.Chain, factChain: g.Chain, "why": "it could not be read when the store was salvaged"}
	if len(g.Records) > 0 {
		facts[factRecords] = ranges(g.Records)
	}
	if len(g.Payloads) > 0 {
		facts[factPayloads] = ranges(g.Payloads)
	}
	return facts
}

// mostInLoss limits the sequence numbers that HistoryLossOf accepts, because HistoryLossOf expands each range to all
// its numbers.
const mostInLoss = 1 << 22

// HistoryLossOf parses an AuditDamaged record. If the record is not about a lost part of the history, HistoryLossOf
// returns the zero value.
func HistoryLossOf(a AuditRecord) (l HistoryLoss, err error) {
	if l.Chain = a.Facts[factChain]; l.Chain == "" {
		return l, nil
	}
	l.Records, err = readRanges(a.Facts[factRecords], mostInLoss)
	if err == nil {
		l.Payloads, err = readRanges(a.Facts[factPayloads], mostInLoss)
	}
	if err != nil {
		return HistoryLoss{}, fmt.Errorf("chain %s: record %d: %w", a.Chain, a.Seq, err)
	}
	return l, nil
}

// JournalEntry is one leaf of the tree over all chains. JournalEntry stays in the journal when its chain is pruned.
type JournalEntry struct {
	Leaf  uint64 // from 0, without gaps
	Chain string
	Seq   uint64
	Sum   Sum // the record's hash, the only input of the leaf's hash
}

// Checked describes a valid row, for the verification of the whole store.
type Checked struct {
	Kind    AuditKind
	Missing bool // the record has a payload, but the payload is no longer stored
	Lost    bool // see AuditRow.Lost; the caller checks that another record reports the loss
}

// Check verifies a row's hash, position, payload, and link to the previous row prev. For the first row of a chain, prev
// is zero. The error describes the manipulation. If prev is damaged, Check does not verify the link to prev: the caller
// must compare the link with the hash of prev in the journal. If prev is a lost record with an unknown hash, nobody can
// verify the link.
func (x AuditRow) Check(prev AuditRow) (c Checked, err error) {
	if x.Record == nil {
		return c, fmt.Errorf("chain %s: record %d is missing, but its payload is there", x.Chain, x.Seq)
	}
	if x.Damaged {
		return c, fmt.Errorf("chain %s: record %d is damaged: it is not as it was written", x.Chain, x.Seq)
	}
	if prev.Chain != x.Chain {
		prev = AuditRow{}
	}
	if x.Seq != prev.Seq+1 {
		return c, fmt.Errorf("chain %s: record %d is missing or out of order (found %d)", x.Chain, prev.Seq+1, x.Seq)
	}
	if x.Lost() {
		return Checked{Lost: true}, nil
	}
	p := parts{rest: string(x.Record)}
	domain, chain, seq := p.next(), p.next(), p.number()
	p.next() // at
	c.Kind = AuditKind(p.next())
	p.next() // actor
	p.next() // facts
	payloadHash, before := p.next(), p.next()
	switch {
	case SumOf(x.Record) != x.Sum || p.damaged || p.rest != "" || domain != recordDomain:
		return c, fmt.Errorf("chain %s: record %d was changed", x.Chain, x.Seq)
	case chain != x.Chain || seq != x.Seq:
		return c, fmt.Errorf("chain %s: the place of record %d holds record %d of chain %s", x.Chain, x.Seq, seq, chain)
	case prev.Seq == 0 && before != "" || prev.Seq > 0 && !prev.Damaged && prev.Sum != Sum{} && before != prev.Sum.String():
		return c, fmt.Errorf("chain %s: record %d does not follow record %d", x.Chain, x.Seq, prev.Seq)
	case x.Payload != nil && SumOf(x.Payload).String() != payloadHash:
		return c, fmt.Errorf("chain %s: the payload of record %d was changed", x.Chain, x.Seq)
	}
	c.Missing = x.Payload == nil && payloadHash != ""
	return c, nil
}
