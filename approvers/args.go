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

// MaxArgs is the largest accepted argument text, in bytes. A call with more bytes gets an error result, because nobody
// could read it on a card.
const MaxArgs = 64 << 10

// ErrArgs means that a call's arguments are refused. The wrapping error gives the reason, for the model.
var ErrArgs = errors.New("arguments refused")

// StrictArgs parses a call's argument bytes: exactly one JSON object. StrictArgs refuses an object, at any level, if
// two of its names are equal or differ only in case. StrictArgs repairs nothing. If exact is set, StrictArgs refuses
// numbers that float64 can't hold exactly, because conditions compute in float64.
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

// fold maps names that differ only in case to the same key. The function uses Unicode's simple case folding.
func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// readNumber parses a number as float64. If exact is set, readNumber refuses a number that float64 can't hold exactly.
func readNumber(text string, exact bool) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: the number %.40s is out of range", ErrArgs, text)
	}
	if !exact {
		return f, nil
	}
	if len(text) > 400 {
		return 0, fmt.Errorf("%w: a number of %d digits is too long", ErrArgs, len(text))
	}
	want, ok := new(big.Rat).SetString(text)
	got, ok2 := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	if !ok || !ok2 || want.Cmp(got) != 0 {
		return 0, fmt.Errorf("%w: the number %.40s would be rounded, and this tool's policy (its rules or preview) needs exact numbers", ErrArgs, text)
	}
	return f, nil
}

// EqualArgs reports whether two argument texts are equal apart from spacing and order. EqualArgs compares the written
// forms of numbers, because two different order numbers could be equal as float64.
func EqualArgs(a, b json.RawMessage) bool {
	ints, floats := jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	if x.Canonicalize(ints, floats) != nil || y.Canonicalize(ints, floats) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x, y)
}

// Digest returns a SHA-256, in hex, that binds an execution to its exact bytes. The input of the hash consists of a
// domain tag, the execution id, the tool, the hash of the tool's definition and the argument bytes. The length of each
// part precedes the part.
func Digest(execution, tool, toolHash string, args []byte) string {
	b := make([]byte, 0, 256+len(args))
	b = appendPart(b, "countersign/execution/v1")
	b = appendPart(b, execution)
	b = appendPart(b, tool)
	b = appendPart(b, toolHash)
	return SumOf(appendPart(b, args)).String()
}
