package agent

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"strings"

	"countersign/store"
)

// The chat-completions interface is narrower than the models' output and the tools' names. History that is sent back is
// adapted here, so that one odd answer does not make every later request of the conversation invalid. Runs never use
// these adapted values.

// Limits of the interface, as OpenAI enforces them.
const (
	maxWireName = 64
	maxWireID   = 40
)

// wireName returns a tool's name in the form of the interface: letters, digits, "_" and "-".
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

// wireIDs gives each call of a history a unique id: the model's own if it is usable.
type wireIDs map[string]bool

func (used wireIDs) of(c store.Call) string {
	id := c.ModelID
	if id == "" || len(id) > maxWireID || strings.ContainsFunc(id, func(r rune) bool { return r < '!' || r > '~' }) || used[id] {
		// Nine letters and digits are accepted by every provider.
		sum := sha256.Sum256([]byte(c.ID))
		id = base32.StdEncoding.EncodeToString(sum[:])[:9]
	}
	used[id] = true
	return id
}

// maxQuotedArgs limits how much of unreadable arguments is quoted to the model, in bytes.
const maxQuotedArgs = 2000

// wireArgs returns a past call's arguments in the form of the interface. Several servers parse them and refuse the
// whole request if they aren't an object, so invalid arguments are sent as a quotation.
func wireArgs(args string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &object) == nil && object != nil {
		return args
	}
	quoted, _ := json.Marshal(map[string]string{"unreadable_arguments": cutText(args, maxQuotedArgs)}) // strings always marshal
	return string(quoted)
}

// cutText shortens a text to about n bytes at a character border, and says so.
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
