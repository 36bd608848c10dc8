package config

import (
	"slices"

	"github.com/goccy/go-yaml/ast"

	"countersign/approvers"
)

// choice reads one word of several.
func (f fieldset) choice(key string, words []string) (string, bool) {
	v, ok := f[key]
	if !ok {
		return "", false
	}
	text, ok := v.text(oneOf(words))
	if !ok {
		return "", false
	}
	if !slices.Contains(words, text) {
		v.wrong(quote(text)+" is not possible", orHint(didYouMean(text, words), "write "+oneOf(words)))
		return "", false
	}
	return text, true
}

// is reports whether the value is this word.
func (v value) is(word string) bool {
	n, ok := v.node.(*ast.StringNode)
	return ok && n.Value == word
}

const enforce = "enforce"

// mode reads whether calls with effects run at all.
func (f fieldset) mode(to *approvers.Mode) bool {
	text, ok := f.choice("mode", []string{string(approvers.Observe), enforce})
	switch {
	case !ok:
		return false
	case text == enforce:
		*to = approvers.Enforce
	default:
		*to = approvers.Observe
	}
	return true
}
