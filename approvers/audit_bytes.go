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

// The domain tags of what is hashed.
const (
	recordDomain  = "countersign/audit/v1"
	payloadDomain = "countersign/audit-payload/v1"
)

// Sum is a SHA-256.
type Sum [sha256.Size]byte

// String is the sum in hex, as records name it.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Is reports whether a record names the sum.
func (s Sum) Is(name string) bool {
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], s[:])
	return string(text[:]) == name
}

// SumOf hashes what Bytes of a record or a payload gave.
func SumOf(b []byte) Sum { return sha256.Sum256(b) }

// ErrDamaged says that bytes are not those of an audit record or payload.
var ErrDamaged = errors.New("these are not the bytes of an audit record")

// Bytes are what the record's hash is made over: every field but Hash. Backends store them as they are, so that what is
// verified is what lies there, and nothing of it goes by a second form.
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

// ParseAuditRecord reads a record from its bytes. Its Hash is the one that they have.
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

// Bytes are what the payload's hash is made over, without where it belongs.
func (p AuditPayload) Bytes() []byte {
	b := make([]byte, 0, 3*8+len(payloadDomain)+len(p.Salt)+len(p.Body))
	b = appendPart(b, payloadDomain)
	b = appendPart(b, p.Salt)
	return appendPart(b, p.Body)
}

// ParseAuditPayload reads a payload from its bytes, with which it shares no memory.
func ParseAuditPayload(chain string, seq uint64, b []byte) (AuditPayload, error) {
	p := parts{rest: string(b)}
	domain, salt, body := p.next(), p.next(), p.next()
	if p.damaged || p.rest != "" || domain != payloadDomain {
		return AuditPayload{}, ErrDamaged
	}
	return AuditPayload{Chain: chain, Seq: seq, Salt: []byte(salt), Body: []byte(body)}, nil
}

// appendPart appends a part with its length before it, so that no two lists of parts are the same bytes.
func appendPart[T ~string | ~[]byte](b []byte, part T) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
	return append(b, part...)
}

func appendNumber(b []byte, n uint64) []byte {
	b = binary.BigEndian.AppendUint64(b, 8)
	return binary.BigEndian.AppendUint64(b, n)
}

// parts stands in bytes that appendPart wrote.
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

// appendFacts writes facts as encoding/json does, with the names in order: hashes were always made over that.
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

// parseFacts reads facts. Those without anything that JSON escapes, which is nearly all, are cut at their quotation marks.
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
