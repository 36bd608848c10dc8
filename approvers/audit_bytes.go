package approvers

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

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

// SumOf hashes the result of a record's or a payload's Bytes.
func SumOf(b []byte) Sum { return sha256.Sum256(b) }

// ErrDamaged means that the bytes are not those of an audit record or payload.
var ErrDamaged = errors.New("these are not the bytes of an audit record")

// Bytes returns the input of the record's hash: every field but Hash. Backends store these bytes unchanged, so that
// verification reads exactly the stored data, without converting it.
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

// ParseAuditRecord parses the bytes of a record. It computes Hash from them.
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

// Bytes returns the input of the payload's hash, which leaves out the chain and the sequence number.
func (p AuditPayload) Bytes() []byte {
	b := make([]byte, 0, 3*8+len(payloadDomain)+len(p.Salt)+len(p.Body))
	b = appendPart(b, payloadDomain)
	b = appendPart(b, p.Salt)
	return appendPart(b, p.Body)
}

// ParseAuditPayload parses the bytes of a payload. The result shares no memory with them.
func ParseAuditPayload(chain string, seq uint64, b []byte) (AuditPayload, error) {
	p := parts{rest: string(b)}
	domain, salt, body := p.next(), p.next(), p.next()
	if p.damaged || p.rest != "" || domain != payloadDomain {
		return AuditPayload{}, ErrDamaged
	}
	return AuditPayload{Chain: chain, Seq: seq, Salt: []byte(salt), Body: []byte(body)}, nil
}

// appendPart appends a part, preceded by its length, so that different lists of parts never give the same bytes.
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

// appendFacts writes facts as encoding/json does, sorted by name. Existing hashes cover this form.
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
		if c := s[i]; c < ' ' || c >= 0x7f || strings.IndexByte(`"\<>&`, c) >= 0 {
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

// parseFacts parses facts. Facts without JSON escapes, which are nearly all, are split at their quotation marks.
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

var errFacts = errors.New("its facts are not JSON as it was written")
