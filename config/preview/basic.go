package preview

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"text/template"
)

// basicFuncs has replacements for functions of text/template. The functions of text/template can't compare a number of
// the arguments with a whole number in the template, and write a missing entry of an object as a text that an argument
// can contain, too.
var basicFuncs = template.FuncMap{
	"index": index,
	"eq":    equal,
	"ne":    func(a, b any) (bool, error) { same, err := equal(a, b); return !same, err },
	"lt":    func(a, b any) (bool, error) { c, err := compare(a, b); return c < 0, err },
	"le":    func(a, b any) (bool, error) { c, err := compare(a, b); return c <= 0, err },
	"gt":    func(a, b any) (bool, error) { c, err := compare(a, b); return c > 0, err },
	"ge":    func(a, b any) (bool, error) { c, err := compare(a, b); return c >= 0, err },
}

// index returns an entry of an object, an item of a list, or an entry or item at a deeper level. So that a template can
// test an entry with if, a missing entry is not an error.
func index(of any, at ...any) (any, error) {
	for _, i := range at {
		switch v := of.(type) {
		case absent:
			return nil, errPreviewNothing
		case object:
			name, _ := i.(string)
			entry, ok := v[name]
			if !ok {
				entry = absent(false)
			}
			of = entry
		case list:
			n, ok := number(i)
			if !ok || n != float64(int(n)) || n < 0 || int(n) >= len(v) {
				return nil, errPreviewNothing
			}
			of = v[int(n)]
		default:
			return nil, fmt.Errorf("%s is neither a list nor an object", describe(of))
		}
	}
	return of, nil
}

// equal reports whether a value equals one of the others.
func equal(v any, others ...any) (bool, error) {
	if len(others) == 0 {
		return false, errors.New("it takes a value, and at least one value to compare it with")
	}
	for _, o := range others {
		if is, err := same(v, o); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

func same(a, b any) (bool, error) {
	if isNull(a) || isNull(b) {
		return isNull(a) && isNull(b), nil
	}
	x, ok := a.(bool)
	y, ok2 := b.(bool)
	if ok && ok2 {
		return x == y, nil
	}
	c, err := compare(a, b)
	return err == nil && c == 0, err
}

// compare compares two numbers, or two texts.
func compare(a, b any) (int, error) {
	x, ok := number(a)
	y, ok2 := number(b)
	if ok && ok2 {
		return cmp.Compare(x, y), nil
	}
	s, ok := a.(string)
	t, ok2 := b.(string)
	if ok && ok2 {
		return cmp.Compare(s, t), nil
	}
	return 0, fmt.Errorf("%s and %s can't be compared", describe(a), describe(b))
}

// number returns a number of the arguments or of the template.
func number(v any) (float64, bool) {
	switch n := v.(type) {
	case decimal:
		return float64(n), true
	case float64:
		return n, true
	case int:
		return float64(n), true
	}
	return 0, false
}

func isNull(v any) bool {
	switch v.(type) {
	case nil, nothing, absent:
		return true
	}
	return false
}

// isAbsent reports whether an argument of a function, or one of its variadic arguments, is absent.
func isAbsent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface:
		return !v.IsNil() && v.Elem().Type() == reflect.TypeFor[absent]()
	case reflect.Slice:
		return v.Type() == reflect.TypeFor[[]any]() && slices.ContainsFunc(v.Interface().([]any), func(a any) bool { _, is := a.(absent); return is })
	}
	return false
}
