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

// Func creates a tool from a Go function. The JSON Schema of the arguments is derived from Args, a struct with the tags
// of [SchemaOf]. The function receives decoded arguments. A call with an argument that Args lacks is refused. A call
// with a number that the field in Args can't hold exactly is also refused. The approvers and the function never get a
// refused call.
//
// The model receives the function's result: a string unchanged, and any other type as JSON. As with Tool.Run, an
// error means that the tool did nothing. The other properties of the tool are fields of the returned Tool: Timeout,
// Preview (see [Typed]), Claims. If Args or Result is not a suitable type, Register returns an error.
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

// Typed adapts a function with decoded arguments to the type of Tool.Preview and Tool.Run. Use it for a preview, or
// for the Run of a tool with a handwritten schema.
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

// describe sets a tool's schema from its argument type. describe also sets a check of the arguments. If the arguments
// do not fit the type, the call is refused before an approver sees it.
func describe[Args any](t Tool) Tool {
	t.Schema, t.fault = SchemaOf[Args]()
	t.fits = func(args json.RawMessage) error {
		_, err := decode[Args](args)
		return err
	}
	return t
}

// answer returns the text of a result for the model. A result that can't be encoded is not a failure, because the
// function has already acted.
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

// checkResult finds result types that can't be encoded as JSON. Func calls checkResult when it makes the tool,
// because an encoding error after a run would come too late.
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
