package condition

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"countersign/config/yamldoc"
)

// Kinds is the set of the kinds of value that an expression can have.
type Kinds uint16

// The kinds. Every number in a call's arguments has the kind decimal, even 5. Only literals in a condition and results
// of functions such as size have the kind whole.
const (
	kindText Kinds = 1 << iota
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

	KindNumber   = kindDecimal | kindWhole
	kindAnything = kindOther<<1 - 1
	// kindOrdered are the kinds that < can compare.
	kindOrdered = kindText | KindNumber | kindBool | kindTime | kindSpan | kindBytes
)

// schemaKinds maps the types of JSON Schema to kinds.
var schemaKinds = map[string]Kinds{
	"string": kindText, "number": kindDecimal, "integer": kindDecimal, "boolean": kindBool, "null": kindNull, "array": kindList, "object": kindObject,
}

func jsonKind(v any) Kinds {
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

var celKinds = map[types.Kind]Kinds{
	types.StringKind: kindText, types.DoubleKind: kindDecimal, types.IntKind: kindWhole, types.UintKind: kindWhole, types.BoolKind: kindBool,
	types.NullTypeKind: kindNull, types.ListKind: kindList, types.MapKind: kindObject, types.TimestampKind: kindTime, types.DurationKind: kindSpan,
	types.BytesKind: kindBytes, types.TypeKind: kindOther,
}

// kindsOf returns the kinds of a CEL type.
func kindsOf(t *types.Type) Kinds {
	if k, ok := celKinds[t.Kind()]; ok {
		return k
	}
	return kindAnything
}

func literalKind(v ref.Val) Kinds {
	t, ok := v.Type().(*types.Type)
	if !ok {
		return kindAnything
	}
	return kindsOf(t)
}

// loose treats whole and decimal numbers as one kind, because comparisons accept a mix of both.
func (k Kinds) loose() Kinds {
	if k&KindNumber != 0 {
		k |= KindNumber
	}
	return k
}

// String names the kinds in a message.
func (k Kinds) String() string {
	var names []string
	for _, n := range []struct {
		kind Kinds
		name string
	}{
		{kindText, "text"}, {KindNumber, "a number"}, {kindBool, "true or false"}, {kindList, "a list"}, {kindObject, "an object"}, {kindTime, "a time"},
		{kindSpan, "a length of time"}, {kindBytes, "bytes"}, {kindNull, "null"}, {kindOther, "something else"},
	} {
		if k&n.kind != 0 {
			names = append(names, n.name)
		}
	}
	return yamldoc.OneOf(names)
}
