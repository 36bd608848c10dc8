package record

import (
	"encoding"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/store"
)

// Decode reads a record from JSON. The record shares no memory with b, because the record's strings refer to one copy
// of b.
func Decode[T any](b []byte, rec *T) error {
	p := parser{s: string(b)}
	err := codecOf(reflect.TypeFor[T]()).decode(&p, reflect.ValueOf(rec).Elem())
	if err == nil && p.i != len(p.s) {
		err = errSyntax
	}
	if err != nil {
		return fmt.Errorf("%w: decode %T at byte %d of %d: %w", store.ErrDamaged, *rec, p.i, len(p.s), err)
	}
	return nil
}

var errSyntax = errors.New("it is not the JSON that was stored")

// parser is a position in JSON as written by Append, without white space. Names may come in any order, and unknown
// names are skipped.
type parser struct {
	s string
	i int
}

// take skips the given text and returns true, if the text comes next.
func (p *parser) take(text string) bool {
	if strings.HasPrefix(p.s[p.i:], text) {
		p.i += len(text)
		return true
	}
	return false
}

// list calls element for each element between the brackets.
func (p *parser) list(open, end string, element func() error) error {
	if !p.take(open) {
		return errSyntax
	}
	if p.take(end) {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if p.take(end) {
			return nil
		}
		if !p.take(",") {
			return errSyntax
		}
	}
}

func (p *parser) quoted() (string, error) {
	if !p.take(`"`) {
		return "", errSyntax
	}
	n := strings.IndexByte(p.s[p.i:], '"')
	if n < 0 {
		return "", errSyntax
	}
	plain := p.s[p.i : p.i+n]
	if strings.IndexByte(plain, '\\') < 0 {
		p.i += n + 1
		return plain, nil
	}
	start := p.i - 1
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case '\\':
			p.i++
		case '"':
			p.i++
			b, err := jsontext.AppendUnquote(nil, p.s[start:p.i])
			return string(b), err
		}
		p.i++
	}
	p.i = len(p.s)
	return "", errSyntax
}

// skip skips a value of any kind.
func (p *parser) skip() error {
	rest := jsontext.NewDecoder(strings.NewReader(p.s[p.i:]))
	if err := rest.SkipValue(); err != nil {
		return err
	}
	p.i += int(rest.InputOffset())
	return nil
}

// digits reads an integer without its sign.
func (p *parser) digits() (uint64, error) {
	start := p.i
	var n uint64
	for p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
		d := uint64(p.s[p.i] - '0')
		if n > (math.MaxUint64-d)/10 {
			return 0, errSyntax
		}
		n = n*10 + d
		p.i++
	}
	if p.i == start {
		return 0, errSyntax
	}
	return n, nil
}

func decodeStruct(fields []field) func(p *parser, v reflect.Value) error {
	return func(p *parser, v reflect.Value) error {
		next := 0 // fields come in order; some are omitted
		return p.list("{", "}", func() error {
			for i := next; i < len(fields); i++ {
				if p.take(fields[i].key) {
					next = i + 1
					return fields[i].codec.decode(p, v.Field(fields[i].index))
				}
			}
			for i := range min(next, len(fields)) {
				if p.take(fields[i].key) {
					return fields[i].codec.decode(p, v.Field(fields[i].index))
				}
			}
			if _, err := p.quoted(); err != nil || !p.take(":") {
				return errSyntax
			}
			return p.skip()
		})
	}
}

func decodeSlice(element *codec) func(p *parser, v reflect.Value) error {
	return func(p *parser, v reflect.Value) error {
		if p.take("null") {
			v.SetZero()
			return nil
		}
		if strings.HasPrefix(p.s[p.i:], "[]") {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // not nil
		} else {
			v.SetZero()
		}
		return p.list("[", "]", func() error {
			n := v.Len()
			v.Grow(1)
			v.SetLen(n + 1)
			v.Index(n).SetZero()
			return element.decode(p, v.Index(n))
		})
	}
}

func decodeString(p *parser, v reflect.Value) error {
	s, err := p.quoted()
	v.SetString(s)
	return err
}

func decodeBool(p *parser, v reflect.Value) error {
	yes := p.take("true")
	v.SetBool(yes)
	if !yes && !p.take("false") {
		return errSyntax
	}
	return nil
}

func decodeInt(p *parser, v reflect.Value) error {
	negative := p.take("-")
	n, err := p.digits()
	switch {
	case err != nil:
		return err
	case negative && n <= 1<<63:
		v.SetInt(-int64(n))
	case !negative && n < 1<<63:
		v.SetInt(int64(n))
	default:
		return errSyntax
	}
	return nil
}

func decodeUint(p *parser, v reflect.Value) error {
	n, err := p.digits()
	v.SetUint(n)
	return err
}

func decodeTime(p *parser, v reflect.Value) error {
	s, err := p.quoted()
	if err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	*v.Addr().Interface().(*time.Time) = t
	return err
}

func decodeBytes(p *parser, v reflect.Value) error {
	if p.take("null") {
		v.SetZero()
		return nil
	}
	s, err := p.quoted()
	if err != nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(s)
	v.SetBytes(b)
	return err
}

func decodeFacts(p *parser, v reflect.Value) error {
	facts := v.Addr().Interface().(*map[string]string)
	if p.take("null") {
		*facts = nil
		return nil
	}
	*facts = map[string]string{}
	return p.list("{", "}", func() error {
		name, err := p.quoted()
		if err != nil || !p.take(":") {
			return errSyntax
		}
		value, err := p.quoted()
		(*facts)[name] = value
		return err
	})
}

func decodeText(p *parser, v reflect.Value) error {
	s, err := p.quoted()
	if err != nil {
		return err
	}
	return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s))
}
