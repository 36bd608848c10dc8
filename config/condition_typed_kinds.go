package config

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// kinds are the kinds of value that an expression can have, as a set.
type kinds uint16

// The kinds. A number in arguments is decimal; whole ones are written in conditions and come from functions such as size.
const (
	kindText kinds = 1 << iota
	kindDecimal
	kindWhole
	kindBool
	kindNull
	kindList
	kindObject
	kindTime
	kindSpan
	kindBytes
	kindOther

	kindNumber   = kindDecimal | kindWhole
	kindAnything = kindOther<<1 - 1
	// kindOrdered are the kinds that have a less and a more.
	kindOrdered = kindText | kindNumber | kindBool | kindTime | kindSpan | kindBytes
)

// schemaKinds are the kinds of JSON Schema's types.
var schemaKinds = map[string]kinds{
	"string": kindText, "number": kindDecimal, "integer": kindDecimal, "boolean": kindBool, "null": kindNull, "array": kindList, "object": kindObject,
}

func jsonKind(v any) kinds {
	switch v.(type) {
	case nil:
		return kindNull
	case string:
		return kindText
	case bool:
		return kindBool
	case []any:
		return kindList
	case map[string]any:
		return kindObject
	}
	return kindDecimal
}

var celKinds = map[types.Kind]kinds{
	types.StringKind: kindText, types.DoubleKind: kindDecimal, types.IntKind: kindWhole, types.UintKind: kindWhole, types.BoolKind: kindBool,
	types.NullTypeKind: kindNull, types.ListKind: kindList, types.MapKind: kindObject, types.TimestampKind: kindTime, types.DurationKind: kindSpan,
	types.BytesKind: kindBytes, types.TypeKind: kindOther,
}

// kindsOf are the kinds of CEL's type.
func kindsOf(t *types.Type) kinds {
	if k, ok := celKinds[t.Kind()]; ok {
		return k
	}
	return kindAnything
}

func literalKind(v ref.Val) kinds {
	t, ok := v.Type().(*types.Type)
	if !ok {
		return kindAnything
	}
	return kindsOf(t)
}

// loose takes whole and decimal numbers as one, as comparisons do.
func (k kinds) loose() kinds {
	if k&kindNumber != 0 {
		k |= kindNumber
	}
	return k
}

// String says what it is, for people.
func (k kinds) String() string {
	var names []string
	for _, n := range []struct {
		kind kinds
		name string
	}{
		{kindText, "text"}, {kindNumber, "a number"}, {kindBool, "true or false"}, {kindList, "a list"}, {kindObject, "an object"}, {kindTime, "a time"},
		{kindSpan, "a length of time"}, {kindBytes, "bytes"}, {kindNull, "null"}, {kindOther, "something else"},
	} {
		if k&n.kind != 0 {
			names = append(names, n.name)
		}
	}
	return oneOf(names)
}
