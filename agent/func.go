package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"countersign/approvers"
)

// Func makes a tool of a Go function. The JSON Schema of its arguments is derived from Args, a struct whose tags say what [SchemaOf] reads; the function gets them
// decoded, and only where they fit exactly: an argument that Args has no field for, or a number that its field can't hold, never reaches it, and no approver either.
//
// What the function returns is given to the model: a string as it is, anything else as JSON. An error means that nothing was done, as for Tool.Run.
// Everything else of a tool is a field of what Func returns: Timeout, Preview (see [Typed]), Claims. A type that can't be described is reported by Register.
func Func[Args, Result any](name, description string, effect approvers.Effect, run func(ctx context.Context, in Invocation, args Args) (Result, error)) Tool {
	t := describe[Args](Tool{Name: name, Description: description, Effect: effect})
	if run == nil {
		return t
	}
	if t.fault == nil {
		t.fault = checkResult(reflect.TypeFor[Result](), typeName(reflect.TypeFor[Result]()), nil)
	}
	t.Run = Typed(run)
	return t
}

// Typed makes of a function that takes decoded arguments one that takes an invocation: for Tool.Preview, and for Tool.Run where the schema is written by hand.
func Typed[Args, Result any](f func(ctx context.Context, in Invocation, args Args) (Result, error)) func(ctx context.Context, in Invocation) (string, error) {
	return func(ctx context.Context, in Invocation) (string, error) {
		args, err := decode[Args](in.Args)
		if err != nil {
			return "", fmt.Errorf("the arguments don't fit: %w", err)
		}
		result, err := f(ctx, in, args)
		if err != nil {
			return "", err
		}
		return answer(result), nil
	}
}

// describe gives a tool the schema of its arguments' type, and has every call held against the type itself before anybody sees it.
func describe[Args any](t Tool) Tool {
	t.Schema, t.fault = SchemaOf[Args]()
	t.fits = func(args json.RawMessage) error {
		_, err := decode[Args](args)
		return err
	}
	return t
}

// answer is what the model is given of a result. The function has acted by now, so a result that can't be written is no failure.
func answer(result any) string {
	switch r := result.(type) {
	case string:
		return r
	case json.RawMessage:
		return string(r)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(result); err != nil {
		return fmt.Sprintf("It was done, but its result can't be written as JSON: %v.", err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// checkResult finds what no JSON can be made of, before the function has acted and it is too late to say so.
func checkResult(t reflect.Type, path string, within []reflect.Type) error {
	if t.Implements(jsonMarshaler) || t.Implements(textMarshaler) || contains(within, t) {
		return nil
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf("the result can't be written as JSON: %s is a %s; leave it out with `json:\"-\"`", path, t)
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return checkResult(t.Elem(), path, within)
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() && f.Tag.Get("json") != "-" {
				if err := checkResult(f.Type, path+"."+f.Name, within); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
