package agent

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"strings"

	"countersign/store"
)

// The chat-completions API refuses some outputs of models, and some tool names. This file adapts the history that is
// sent to the model. Without this adaptation, one unusual answer would make every later request of the conversation
// invalid. Runs never use the adapted values.

// Limits that OpenAI's API enforces.
const (
	maxWireName = 64
	maxWireID   = 40
)

// wireName returns a tool's name in the form of the API: letters, digits, "_" and "-".
func wireName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if b.Len() == maxWireName {
			break
		}
		if (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') || r == '_' || r == '-' {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	if b.Len() == 0 {
		return "unnamed"
	}
	return b.String()
}

// wireIDs gives each call of a history a unique id. If possible, wireIDs keeps the model's own id.
type wireIDs map[string]bool

func (used wireIDs) of(c store.Call) string {
	id := c.ModelID
	if id == "" || len(id) > maxWireID || strings.ContainsFunc(id, func(r rune) bool { return r < '!' || r > '~' }) || used[id] {
		// Every provider accepts an id of nine letters and digits.
		sum := sha256.Sum256([]byte(c.ID))
		id = base32.StdEncoding.EncodeToString(sum[:])[:9]
	}
	used[id] = true
	return id
}

// If the arguments of a past call are unreadable, the model gets at most maxQuotedArgs bytes of them.
const maxQuotedArgs = 2000

// wireArgs returns a past call's arguments in the form of the API. Some servers refuse the whole request if the
// arguments of a past call aren't a JSON object. Invalid arguments are therefore quoted within an object.
func wireArgs(args string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &object) == nil && object != nil {
		return args
	}
	// Encoding strings can't fail.
	quoted, _ := json.Marshal(map[string]string{"unreadable_arguments": cutText(args, maxQuotedArgs)})
	return string(quoted)
}

// cutText shortens a text to about n bytes. cutText keeps characters whole, and adds "…" to a shortened text.
func cutText(s string, n int) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
