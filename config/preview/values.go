package preview

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
)

// The kinds of value in a template. Each kind is a kind of JSON value. Values are printed as people write them, and
// never as 1e+06, map[a:1] or <nil>.
type (
	decimal float64
	object  map[string]any
	list    []any
	nothing bool // always false, because text/template treats null as false only if its Go value is false
)

const null nothing = false

// absent is the value of an entry that an object does not have. In a condition, absent is false. A preview that would
// show absent fails.
type absent bool

// absentText is not valid UTF-8, so that no argument can contain it.
const absentText = "\xff"

func (absent) String() string { return absentText }

func (d decimal) String() string { return strconv.FormatFloat(float64(d), 'f', -1, 64) }
func (o object) String() string  { return compact(o) }
func (l list) String() string    { return compact(l) }
func (nothing) String() string   { return "(nothing)" }

// Format formats a number for the function printf: with a verb for floating-point numbers, a verb for texts, or, if the
// number is whole, with %d.
func (d decimal) Format(s fmt.State, verb rune) {
	format := fmt.FormatString(s, verb)
	switch verb {
	case 'e', 'E', 'f', 'F', 'g', 'G':
		fmt.Fprintf(s, format, float64(d))
	case 'd':
		if n, accuracy := big.NewFloat(float64(d)).Int(nil); accuracy == big.Exact {
			fmt.Fprintf(s, format, n)
			return
		}
		fmt.Fprintf(s, "%s%c(%s)", badVerb, verb, d.String())
	default:
		fmt.Fprintf(s, format, d.String())
	}
}

// MarshalJSON writes numbers as plain decimals, even inside lists and objects.
func (d decimal) MarshalJSON() ([]byte, error) { return []byte(d.String()), nil }

// MarshalJSON writes null.
func (nothing) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(b)
}

// readableArgs converts a call's arguments to the types of this file.
func readableArgs(args map[string]any) object {
	out := make(object, len(args))
	for k, v := range args {
		out[k] = readable(v)
	}
	return out
}

func readable(v any) any {
	switch v := v.(type) {
	case nil:
		return null
	case float64:
		return decimal(v)
	case map[string]any:
		return readableArgs(v)
	case []any:
		out := make(list, len(v))
		for i, item := range v {
			out[i] = readable(item)
		}
		return out
	}
	return v
}
