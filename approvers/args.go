package approvers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxArgs is the largest accepted argument text, in bytes. Larger arguments get an error result, because nobody could
// read so much text on a card.
const MaxArgs = 64 << 10

// ErrArgs means that a call's arguments are refused. The wrapping error gives the reason, for the model.
var ErrArgs = errors.New("arguments refused")

// StrictArgs parses a call's argument bytes: exactly one JSON object. StrictArgs refuses an object, at any level, if
// two of its names are equal or differ only in case. StrictArgs repairs nothing. If exact is set, StrictArgs refuses a
// number whose value changes when it is converted to float64 and back, because conditions and previews read float64.
func StrictArgs(raw []byte, exact bool) (map[string]any, error) {
	if len(raw) > MaxArgs {
		return nil, fmt.Errorf("%w: %d bytes, more than %d", ErrArgs, len(raw), MaxArgs)
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true)) // readObject refuses duplicates, with our own message
	v, err := readValue(dec, exact, 0)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("%w: the JSON is cut short", ErrArgs)
		}
		if errors.Is(err, ErrArgs) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: not valid JSON: %s", ErrArgs, strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: there is more after the JSON object", ErrArgs)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: a JSON object is needed", ErrArgs)
	}
	return object, nil
}

// maxDepth limits the nesting of arguments, because people can't read deeply nested arguments.
const maxDepth = 32

func readValue(dec *jsontext.Decoder, exact bool, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d levels", ErrArgs, maxDepth)
	}
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case '{':
		return readObject(dec, exact, depth)
	case '[':
		list := []any{}
		for dec.PeekKind() != ']' {
			v, err := readValue(dec, exact, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.ReadToken()
		return list, err
	case '"':
		return tok.String(), nil
	case '0':
		return readNumber(tok.String(), exact)
	case 't', 'f':
		return tok.Bool(), nil
	}
	return nil, nil
}

func readObject(dec *jsontext.Decoder, exact bool, depth int) (map[string]any, error) {
	object := map[string]any{}
	folded := map[string]string{}
	for dec.PeekKind() != '}' {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := tok.String()
		if other, dup := folded[fold(name)]; dup {
			return nil, fmt.Errorf("%w: the names %q and %q are the same or differ only in case", ErrArgs, other, name)
		}
		folded[fold(name)] = name
		v, err := readValue(dec, exact, depth+1)
		if err != nil {
			return nil, err
		}
		object[name] = v
	}
	_, err := dec.ReadToken()
	return object, err
}

// fold maps names that differ only in case to the same key. The function uses Unicode's simple case mappings.
func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// readNumber parses a number as float64. If exact is set, readNumber refuses a number whose value changes when it is
// converted to float64 and back.
func readNumber(text string, exact bool) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: the number %.40s is out of range", ErrArgs, text)
	}
	if !exact {
		return f, nil
	}
	shortest := strconv.FormatFloat(f, 'g', -1, 64)
	if text == shortest {
		return f, nil
	}
	if len(text) > 400 {
		return 0, fmt.Errorf("%w: a number of %d digits is too long", ErrArgs, len(text))
	}
	want, ok := new(big.Rat).SetString(text)
	got, ok2 := new(big.Rat).SetString(shortest)
	if !ok || !ok2 || want.Cmp(got) != 0 {
		return 0, fmt.Errorf("%w: the number %.40s would be rounded, and this tool's policy (its rules or preview) needs exact numbers", ErrArgs, text)
	}
	return f, nil
}

// EqualArgs reports whether two argument texts differ at most in white space, in the order of names, and in the escapes
// of strings. EqualArgs compares numbers as they are written, because two different numbers could be equal as float64.
func EqualArgs(a, b json.RawMessage) bool {
	ints, floats := jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	if x.Canonicalize(ints, floats) != nil || y.Canonicalize(ints, floats) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x, y)
}

// CanonicalArgs converts an argument text to a standard form. Texts with the same value have the same form. The form is
// that of RFC 8785, except for numbers. A number keeps all its significant digits, because two different numbers could
// be equal as float64. CanonicalArgs does not change a text that is not valid JSON, or an object with two equal names.
func CanonicalArgs(raw json.RawMessage) json.RawMessage {
	ints, floats := jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)
	v := jsontext.Value(bytes.Clone(raw))
	if v.Canonicalize(ints, floats) != nil {
		return raw
	}
	out := make(json.RawMessage, 0, len(v))
	for len(v) > 0 { // v contains no spaces, so a token that is not a string ends at punctuation
		n := 1
		switch c := v[0]; {
		case c == '"':
			for ; v[n] != '"'; n++ {
				if v[n] == '\\' {
					n++
				}
			}
			n++
			out = append(out, v[:n]...)
		case c == '-' || '0' <= c && c <= '9':
			if n = bytes.IndexAny(v, ",]}"); n < 0 {
				n = len(v)
			}
			out = appendDecimal(out, string(v[:n]))
		default:
			out = append(out, c)
		}
		v = v[n:]
	}
	return out
}

// appendDecimal appends a number as digits and a power of ten: 1.50 becomes 15e-1. The digits neither begin nor end
// with a zero. Zero becomes 0.
func appendDecimal(out []byte, text string) []byte {
	number, negative := strings.CutPrefix(text, "-")
	mantissa, power := number, int64(0)
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		var err error
		if power, err = strconv.ParseInt(number[i+1:], 10, 32); err != nil {
			return append(out, text...) // the exponent is out of range: StrictArgs refuses such a number, or reads it as zero
		}
		mantissa = number[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return append(out, '0')
	}
	if negative {
		out = append(out, '-')
	}
	out = append(out, short...)
	if power += int64(len(digits) - len(short) - len(fraction)); power != 0 {
		out = strconv.AppendInt(append(out, 'e'), power, 10)
	}
	return out
}

// Digest returns a SHA-256, in hex, that binds an execution to its exact bytes. The hash covers a domain tag, the
// execution id, the tool, the hash of the tool's definition and the argument bytes. Each part is preceded by its
// length.
func Digest(execution, tool, toolHash string, args []byte) string {
	b := make([]byte, 0, 256+len(args))
	b = appendPart(b, "countersign/execution/v1")
	b = appendPart(b, execution)
	b = appendPart(b, tool)
	b = appendPart(b, toolHash)
	return SumOf(appendPart(b, args)).String()
}
