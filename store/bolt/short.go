package bolt

import (
	"bytes"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
)

// Most transactions write audit records, and verification reads all audit records. Decompressing a record with zstd
// would take three times as long as hashing the record (ADR 8). So audit records have their own encoding, which is
// decoded in less than a microsecond. This encoding stores hashes and ids as bytes instead of digits, and each common
// phrase as one byte.
//
// The encoded form of a record begins with the record's length as an unsigned varint. A sequence of these codes
// follows:
//
//	00-3f  1 to 64 unchanged bytes follow
//	40     a hash: 32 bytes follow, which stand for 64 hexadecimal digits
//	41-4f  one of the first 15 hashes of the record again
//	50     an id: 16 bytes follow, which stand for 26 digits in base 32
//	51-ff  a phrase
const (
	mostLiteral = 0x40
	codeHash    = 0x40
	codeAgain   = 0x41
	mostHashes  = 15
	codeID      = 0x50
	codePhrase  = 0x51

	hashDigits = 64
	idDigits   = 26
)

// In a record, an eight-byte number gives the length of each part. If a part is shorter than 256 bytes, its length
// begins with sevenZeros.
const sevenZeros = "\x00\x00\x00\x00\x00\x00\x00"

// phrases lists the phrases of records in the order of their codes. The order must never change, because stored rows
// contain the codes. New phrases go to the end. Each phrase begins with sevenZeros, a quotation mark or a brace.
var phrases = func() (list []string) {
	const digits = sevenZeros + "\x40" // the length of a hash
	add := func(phrases ...string) { list = append(list, phrases...) }
	add(sevenZeros+"\x14countersign/audit/v1"+sevenZeros+"\x1ereq_", sevenZeros+"\x14countersign/audit/v1"+sevenZeros,
		sevenZeros+"\x08"+sevenZeros, sevenZeros+"\x08\x00\x06", sevenZeros+"\x00", digits, sevenZeros, `"}`+digits, `"}`+sevenZeros+"\x00"+digits, `"}`, `":"`, `","`)
	for _, kind := range []string{
		"proposed", "shown", "denied", "decided", "advanced", "approved", "closed", "reopened", "previewed", "replanned", "escalated", "executing", "executed", "unknown",
		"reported", "returned", "reminded", "invited", "answered", "elicited", "replied", "attached", "remarked", "away", "granted", "reworded", "paused", "resumed",
		"policy", "erased", "pruned", "damaged", "restored",
	} {
		part := sevenZeros + string(rune(len(kind))) + kind
		add(part, part+sevenZeros+"\x00"+sevenZeros)
	}
	for _, first := range []string{
		`asker":"`, `channel":"`, `digest":"`, `outcome":"`, `kind":"`, `reason":"`, `state":"`, `stage":"`,
	} {
		add(`{"` + first)
	}
	for _, next := range []string{
		`call":"call_`, `conversation":"conv_`, `execution":"exec_`, `digest":"`, `policy":"`, `requesters":"`, `risk":"`, `stages":"`, `tool":"`, `tool_hash":"`, `verdict":"ask`,
		`would":"`, `message":"`, `rendering":"`, `surface":"card`, `surface":"`, `to":"channel:`, `to":"`, `kind":"approve`, `kind":"`, `received":"20`, `role":"`, `shown":"`,
		`took":"`, `standing":"`, `state":"approved`, `state":"succeeded`, `state":"failed`, `state":"`, `process":"proc_`, `try":"1`, `try":"`, `reason":"`, `role":"team-lead`,
	} {
		add(`","` + next)
	}
	add(`{"outcome":"executed"}`+digits, `{"outcome":"`)
	return list
}()

// beginning has the two bytes by which phraseAt looks up a phrase: the first byte, and the byte at the position that
// otherByte returns.
type beginning struct{ first, other byte }

// phrasesBy maps each beginning to the codes of the phrases that begin with it, the longest phrase first.
var phrasesBy = func() map[beginning][]byte {
	by := map[beginning][]byte{}
	for i, p := range phrases {
		code := byte(codePhrase + i)
		if at := otherByte(p[0]); at < len(p) {
			by[beginning{p[0], p[at]}] = append(by[beginning{p[0], p[at]}], code)
			continue
		}
		for other := range 256 {
			by[beginning{p[0], byte(other)}] = append(by[beginning{p[0], byte(other)}], code)
		}
	}
	for _, codes := range by {
		slices.SortStableFunc(codes, func(a, b byte) int { return len(phraseOf(b)) - len(phraseOf(a)) })
	}
	return by
}()

// otherByte returns the position of the byte that distinguishes phrases with the same first byte.
func otherByte(first byte) int {
	switch first {
	case 0:
		return len(sevenZeros)
	case '{':
		return 2
	}
	return 3
}

func phraseOf(code byte) string {
	if i := int(code) - codePhrase; i < len(phrases) {
		return phrases[i]
	}
	return ""
}

// phraseAt returns the code of the longest phrase at the start of b. If b does not start with a phrase, phraseAt
// returns 0.
func phraseAt(b []byte) byte {
	if b[0] != 0 && b[0] != '"' && b[0] != '{' {
		return 0
	}
	var other byte
	if at := otherByte(b[0]); at < len(b) {
		other = b[at]
	}
	for _, code := range phrasesBy[beginning{b[0], other}] {
		if p := phraseOf(code); len(p) <= len(b) && string(b[:len(p)]) == p {
			return code
		}
	}
	return 0
}

var idDigit = base32.HexEncoding.WithPadding(base32.NoPadding)

// shorten appends the short form of a record to b.
func shorten(b, rec []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(rec)))
	var hashes [mostHashes][]byte
	known, literal := 0, 0 // the variable literal is the position of the first byte that has no code yet
	flush := func(to int) {
		for literal < to {
			n := min(to-literal, mostLiteral)
			b = append(append(b, byte(n-1)), rec[literal:literal+n]...)
			literal += n
		}
	}
	for i := 0; i < len(rec); {
		rest := rec[i:]
		if code := phraseAt(rest); code != 0 {
			flush(i)
			b = append(b, code)
			i += len(phraseOf(code))
			literal = i
			continue
		}
		if i > 0 && isDigit(rec[i-1]) { // in the middle of a word
			i++
			continue
		}
		if n := digitsAt(rest); n == hashDigits {
			digits := rest[:hashDigits]
			flush(i)
			if again := slices.IndexFunc(hashes[:known], func(h []byte) bool { return bytes.Equal(h, digits) }); again >= 0 {
				b = append(b, codeAgain+byte(again))
			} else {
				b = append(b, codeHash)
				b, _ = hex.AppendDecode(b, digits) // digits contains only hexadecimal digits, so there is no error
				if known < mostHashes {
					hashes[known] = digits
					known++
				}
			}
			i += hashDigits
			literal = i
			continue
		}
		if id, ok := idAt(rest); ok {
			flush(i)
			b = append(append(b, codeID), id[:]...)
			i += idDigits
			literal = i
			continue
		}
		i++
	}
	flush(len(rec))
	return b
}

func isDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// digitsAt returns the number of hexadecimal digits at the start of b. digitsAt counts at most one digit more than a
// hash has.
func digitsAt(b []byte) int {
	for i, c := range b[:min(len(b), hashDigits+1)] {
		if ('0' > c || c > '9') && ('a' > c || c > 'f') {
			return i
		}
	}
	return min(len(b), hashDigits+1)
}

// idAt returns the id at the start of b.
func idAt(b []byte) (id [16]byte, ok bool) {
	if len(b) < idDigits {
		return id, false
	}
	for _, c := range b[:idDigits] {
		if ('0' > c || c > '9') && ('A' > c || c > 'V') {
			return id, false
		}
	}
	var digits [idDigits]byte
	n, err := idDigit.Decode(id[:], b[:idDigits])
	idDigit.Encode(digits[:], id[:])
	return id, err == nil && n == len(id) && string(digits[:]) == string(b[:idDigits])
}

var errShort = errors.New("the short form of the record is damaged")

// lengthen restores a record from its short form, and appends the record to b.
func lengthen(b, short []byte) ([]byte, error) {
	size, n := binary.Uvarint(short)
	if n <= 0 || size > uint64(len(short))*hashDigits {
		return nil, errShort
	}
	short = short[n:]
	var hashes [mostHashes]int // position in b of the restored record's first byte
	known := 0
	out := slices.Grow(b, int(size))
	for len(short) > 0 {
		code := short[0]
		short = short[1:]
		follow := 0
		switch {
		case code < mostLiteral:
			follow = int(code) + 1
		case code == codeHash:
			follow = hashDigits / 2
		case code == codeID:
			follow = len([16]byte{})
		}
		if follow > len(short) {
			return nil, errShort
		}
		next := short[:follow]
		short = short[follow:]
		switch {
		case code < mostLiteral:
			out = append(out, next...)
		case code == codeHash:
			if known < mostHashes {
				hashes[known] = len(out)
				known++
			}
			out = hex.AppendEncode(out, next)
		case code == codeID:
			out = idDigit.AppendEncode(out, next)
		case code < codeID:
			if int(code-codeAgain) >= known {
				return nil, errShort
			}
			at := hashes[code-codeAgain]
			out = append(out, out[at:at+hashDigits]...)
		default:
			p := phraseOf(code)
			if p == "" {
				return nil, errShort
			}
			out = append(out, p...)
		}
	}
	if uint64(len(out)-len(b)) != size {
		return nil, errShort
	}
	return out, nil
}
