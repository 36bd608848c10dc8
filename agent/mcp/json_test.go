package mcp

import (
	"strings"
	"testing"
)

// TestReadMessage checks which bytes readMessage accepts, and which parts of invalid messages can be read.
func TestReadMessage(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for _, tt := range []struct {
		raw, id string // the id, or "" if it can't be read
		ok      bool
	}{
		{`{"id":1}`, "1", true},
		{` { "id" : 1 } `, "1", true},
		{`{"id":1,"x":"[[[[\"[["}`, "1", true},
		{`{"id":1,"id":2}`, "1", false},
		{`{"id":1,"a":{"b":1,"b":2}}`, "1", false},
		{"{\"id\":1,\"a\":\"\xff\"}", "1", false},
		{`{"id":1,"a":"\ud83d"}`, "1", false},
		{`{"id":1} x`, "", false},
		{`{"id":1`, "", false},
		{`{"id":}`, "", false},
		{`{"id"`, "", false},
		{`[1`, "", false},
		{``, "", false},
		{`{"jsonrpc":"2.0","id":7,"result":` + deep + `}`, "7", false},
		{`{"jsonrpc":"2.0","result":{"a":` + deep + `},"id":8}`, "8", false},
		{`{"jsonrpc":"2.0","result":` + deep + `}`, "", false},
	} {
		o, err := readMessage([]byte(tt.raw))
		if (err == nil) != tt.ok || string(o.Get("id")) != tt.id {
			t.Errorf("%.60s: %s, %v", tt.raw, o.Get("id"), err)
		}
	}
}
