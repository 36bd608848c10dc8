package argument

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/approvers"
	"countersign/bot/render/block"
	"countersign/store"
)

// longNumber matches card and account numbers. Only the last four digits of such a number are shown. The four digits
// identify the number only to people who know it.
var longNumber = regexp.MustCompile(`^[0-9](?:[ -]?[0-9]){11,}$`)

// Masked returns the text shown in place of a secret value. This text includes the value's length if the length reveals
// little. For a long number, the function includes the last digits.
func Masked(raw []byte) string {
	text, err := jsontext.AppendUnquote(nil, raw)
	switch {
	case err != nil || block.Width(string(text)) < 8:
		return "⟨masked⟩"
	case longNumber.Match(text):
		return fmt.Sprintf("⟨masked, %d characters, ends in %s⟩", block.Width(string(text)), text[len(text)-4:])
	}
	return fmt.Sprintf("⟨masked, %d characters⟩", block.Width(string(text)))
}

// OfRequest lays out a request's arguments for its card.
func OfRequest(r approvers.Request) string {
	text := MaskedText(r.Args, r.Secrets)
	if text == NoArguments && r.Erased() {
		return "(erased)"
	}
	return text
}

// openArgs returns a request's arguments without the secret ones, for texts that quote arguments, such as warnings.
func openArgs(r approvers.Request) []byte { return withoutSecrets(r.Args, r.Secrets) }

// withoutSecrets removes secret members from arguments. All other members keep their bytes.
func withoutSecrets(args []byte, secrets []string) []byte {
	if len(secrets) == 0 {
		return args
	}
	return openValue(bytes.TrimSpace(args), secrets, "")
}

func openValue(raw []byte, secrets []string, path string) []byte {
	var parts [][]byte
	switch {
	case len(raw) > 0 && raw[0] == '{':
		for _, m := range Spans(raw) {
			if at := below(path, m.Name); !approvers.IsSecret(secrets, at) {
				parts = append(parts, append(bytes.Clone(raw[m.from:m.start]), openValue(raw[m.start:m.end], secrets, at)...))
			}
		}
		return enclosed("{", parts, "}")
	case len(raw) > 0 && raw[0] == '[':
		for _, one := range items(raw) {
			parts = append(parts, openValue(one, secrets, path))
		}
		return enclosed("[", parts, "]")
	}
	return raw
}

func enclosed(open string, parts [][]byte, end string) []byte {
	return append(append([]byte(open), bytes.Join(parts, []byte(","))...), end...)
}

// below returns the path of a member.
func below(path, member string) string { return strings.TrimPrefix(path+"."+member, ".") }

// items returns the values of a list. If raw is not a list, items returns nil.
func items(raw []byte) (list []json.RawMessage) {
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// secretValue is one secret of a call.
type secretValue struct {
	Path string
	Raw  json.RawMessage
}

// SecretsIn returns the secret values in arguments, in order.
func SecretsIn(args []byte, secrets []string) (found []secretValue) {
	if len(secrets) == 0 {
		return nil
	}
	collect(bytes.TrimSpace(args), secrets, "", &found)
	return found
}

func collect(raw []byte, secrets []string, path string, found *[]secretValue) {
	switch {
	case path != "" && approvers.IsSecret(secrets, path):
		*found = append(*found, secretValue{path, raw})
	case len(raw) > 0 && raw[0] == '{':
		for _, m := range Spans(raw) {
			collect(raw[m.start:m.end], secrets, below(path, m.Name), found)
		}
	case len(raw) > 0 && raw[0] == '[':
		for _, one := range items(raw) {
			collect(one, secrets, path, found)
		}
	}
}

// minMaskedLen is the minimum length of a secret that is masked in other texts. Shorter secrets occur in too many
// words.
const minMaskedLen = 3

// MaskSecrets masks the secret values of a call in texts about the call, such as the requester's message and the tool's
// answer.
func MaskSecrets(text string, args []byte, secrets []string) string {
	for _, v := range SecretsIn(args, secrets) {
		for _, one := range texts(v.Raw) {
			if block.Width(one) >= minMaskedLen {
				text = strings.ReplaceAll(text, one, approvers.MaskedValue)
			}
		}
	}
	return text
}

// texts returns the strings and numbers in a value, as people write them.
func texts(raw []byte) (out []string) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	for {
		tok, err := dec.ReadToken()
		if err != nil { // the value has ended
			return out
		}
		if k := tok.Kind(); k == '"' || k == '0' {
			out = append(out, tok.String())
		}
	}
}

// MaskedResult returns the tool's answer with the secret values of the call masked.
func MaskedResult(e approvers.Execution, c *store.Call) string {
	if c == nil {
		return e.Result
	}
	return MaskSecrets(e.Result, e.Args, c.Secrets)
}

// Doubts returns warnings about misleading text in a request's arguments. Warnings about open arguments quote the text.
// Warnings about masked arguments do not quote the text.
func Doubts(r approvers.Request) []string {
	out := block.Findings(WordsIn(openArgs(r)))
	hidden := block.CountHidden(WordsIn(r.Args)) - block.CountHidden(WordsIn(openArgs(r)))
	if len(r.Secrets) > 0 && hidden > 0 {
		out = append(out, "A masked value holds characters that can't be seen. Reveal… shows them.")
	}
	return out
}
