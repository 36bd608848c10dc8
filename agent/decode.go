package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decode decodes a call's arguments strictly. Unknown names, duplicate names, names in another case, and numbers that
// the Go field can't hold exactly are errors. If a type's own decoder panics, decode returns an error.
func decode[Args any](raw json.RawMessage) (args Args, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the arguments can't be read: %.200v", p)
		}
	}()
	if err := strict.Unmarshal(raw, &args, strict.RejectUnknownMembers(true), strict.WithUnmarshalers(exactly)); err != nil {
		var zero Args
		return zero, decodeFault(err)
	}
	return args, nil
}

// exactly decodes a number into a json.Number or a float. If the float can't hold the number exactly, decoding fails.
// For all other types, exactly leaves the decoding to the package.
var exactly = strict.UnmarshalFromFunc(func(d *jsontext.Decoder, to any) error {
	v := reflect.ValueOf(to).Elem()
	switch {
	case v.Type() == reflect.TypeFor[json.Number]():
		text, err := numberText(d)
		v.SetString(text)
		return err
	case v.CanFloat() && !isLeaf(v.Type()):
		f, err := exactFloat(d, v.Type().Bits())
		v.SetFloat(f)
		return err
	}
	return errors.ErrUnsupported
})

// numberText reads a number and returns its exact JSON text.
func numberText(d *jsontext.Decoder) (string, error) {
	v, err := d.ReadValue()
	if err != nil {
		return "", err
	}
	if v.Kind() != '0' {
		return "", errNoNumber
	}
	return string(v), nil
}

var errNoNumber = errors.New("must be a number")

// exactFloat reads a number that a float of the given size represents exactly. A number counts as exact if it has the
// same value as the float's shortest decimal form. For example, 49.99 is exact. With 32 bits, 123456789.123456789 is
// not exact.
func exactFloat(d *jsontext.Decoder, bits int) (float64, error) {
	text, err := numberText(d)
	if err != nil {
		return 0, err
	}
	if len(text) > maxDigits {
		return 0, errDigits
	}
	f, err := strconv.ParseFloat(text, bits)
	if err != nil {
		return 0, errRange
	}
	want, ok := new(big.Rat).SetString(text)
	got, ok2 := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, bits))
	if !ok || !ok2 || want.Cmp(got) != 0 {
		return 0, errDigits
	}
	return f, nil
}

// maxDigits limits the number of digits of a number. A float64 needs far fewer digits.
const maxDigits = 400

var (
	errDigits = errors.New("has more digits than the tool can hold exactly")
	errRange  = errors.New("is out of the range that the tool can hold")
)

// decodeFault converts a decoding error into an error in the words of check. Unless the JSON is invalid or a name
// occurs twice, the error names the argument. The error does not contain the argument's value, unless the argument's
// type has its own decoder, whose error contains the value.
func decodeFault(err error) error {
	var syntax *jsontext.SyntacticError
	var semantic *strict.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return errors.New("a name occurs twice")
	case errors.As(err, &semantic):
		return errors.New(problem{pointerPath(semantic.JSONPointer), semanticFault(semantic)}.String())
	case errors.As(err, &syntax):
		return errors.New("the arguments are not valid JSON")
	}
	return err
}

func semanticFault(e *strict.SemanticError) string {
	switch {
	case errors.Is(e.Err, strict.ErrUnknownName):
		return "is not known"
	case errors.Is(e.Err, strconv.ErrRange):
		return errRange.Error()
	case e.Err != nil && !errors.Is(e.Err, strconv.ErrSyntax):
		return strings.TrimPrefix(e.Err.Error(), "json: ")
	case e.JSONKind == '0' && e.GoType != nil && (reflect.Zero(e.GoType).CanInt() || reflect.Zero(e.GoType).CanUint()):
		return "can't be held: write a whole number without a point or an exponent"
	}
	return "is of another kind than the tool takes"
}

// pointerPath formats a JSON pointer in the usual notation for fields.
func pointerPath(p jsontext.Pointer) string {
	path := ""
	for token := range p.Tokens() {
		if _, err := strconv.Atoi(token); err == nil {
			path += "[" + token + "]"
			continue
		}
		path = join(path, token)
	}
	return path
}
