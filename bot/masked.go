package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// Secret arguments are masked wherever they would be shown, and revealed to whoever may decide when they ask for it.

// longNumber is a number whose last four digits name it to whoever knows it and give it to nobody else: of a card or an account.
var longNumber = regexp.MustCompile(`^[0-9](?:[ -]?[0-9]){11,}$`)

// masked stands for a secret value: with its length where that says little, and the end of a long number.
func masked(raw []byte) string {
	text, err := jsontext.AppendUnquote(nil, raw)
	switch {
	case err != nil || width(string(text)) < 8:
		return "⟨masked⟩"
	case longNumber.Match(text):
		return fmt.Sprintf("⟨masked, %d characters, ends in %s⟩", width(string(text)), text[len(text)-4:])
	}
	return fmt.Sprintf("⟨masked, %d characters⟩", width(string(text)))
}

// argumentsOf lays a request's arguments out for those who see its card.
func argumentsOf(r approvers.Request) string { return maskedText(r.Args, r.Secrets) }

// openArgs are a request's arguments without the secret ones, for what is said or asked about them.
func openArgs(r approvers.Request) []byte { return withoutSecrets(r.Args, r.Secrets) }

// withoutSecrets takes secret members out of arguments; everything else keeps its bytes.
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
		for _, m := range spans(raw) {
			if at := below(path, m.name); !approvers.IsSecret(secrets, at) {
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

// below is the path of a member.
func below(path, member string) string { return strings.TrimPrefix(path+"."+member, ".") }

// items are the values of a list; none for what can't be read.
func items(raw []byte) (list []json.RawMessage) {
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// secretValue is one secret of a call.
type secretValue struct {
	path string
	raw  json.RawMessage
}

// secretsIn lists the secret values that arguments hold, in their order.
func secretsIn(args []byte, secrets []string) (found []secretValue) {
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
		for _, m := range spans(raw) {
			collect(raw[m.start:m.end], secrets, below(path, m.name), found)
		}
	case len(raw) > 0 && raw[0] == '[':
		for _, one := range items(raw) {
			collect(one, secrets, path, found)
		}
	}
}

// maskedNote says on a card that something is masked, and who can see it.
func maskedNote(r approvers.Request) *prose {
	found := secretsIn(r.Args, r.Secrets)
	if len(found) == 0 {
		return new(prose)
	}
	var names []string
	for _, v := range found {
		if !slices.Contains(names, v.path) {
			names = append(names, v.path)
		}
	}
	return say("🔒 ").strong(plural(len(found), "value") + " masked here: " + argumentList(names) + ".").
		say(" What runs has the real ones. Reveal… shows them to you alone, if you may decide.")
}

// revealForm shows the secret values to one person who may decide.
func revealForm(r approvers.Request) slack.ModalViewRequest {
	p := new(page)
	p.para(new(prose).strong(clip(whatHappens(r.Preview, r.Tool), maxQuote)), say("Only you see this. It is recorded that you looked."))
	room := maxPageText
	found := secretsIn(r.Args, r.Secrets)
	for i, v := range found {
		text := valueText(v.raw)
		if i == maxRevealed || width(text) > room {
			p.para(say("✂️ ").strong(plural(len(found)-i, "more value") + " can't be shown here.").say(" Whoever runs me can see them at the command line: countersign pending " + r.ID))
			break
		}
		room -= width(text)
		p.para(new(prose).strong(name(v.path)))
		for _, part := range pagesOf(text, maxBlockText) {
			p.exact(part)
		}
		for _, f := range findings(wordsIn(fmt.Appendf(nil, "[%s]", v.raw))) {
			p.para(say("⚠️ ").strong(f))
		}
	}
	v := modal(formTitles[actReveal], p)
	v.CallbackID = actReveal
	return v
}

// maxRevealed bounds how many values one form shows.
const maxRevealed = 30

// valueText lays one value out.
func valueText(raw []byte) string {
	if len(raw) > 0 && raw[0] == '{' {
		return ArgumentText(raw)
	}
	if text, err := jsontext.AppendUnquote(nil, raw); err == nil && len(raw) > 0 && raw[0] == '"' {
		return `"` + Visible(string(text)) + `"`
	}
	return Visible(string(raw))
}

// noteReveal records that somebody was shown a request's secrets. The record names them; their values are those of the digest.
func (b *Bot) noteReveal(ctx context.Context, s seen, who approvers.Identity, v slack.ModalViewRequest) error {
	if v.CallbackID != actReveal {
		return nil
	}
	var names []string
	for _, one := range secretsIn(s.Request.Args, s.Request.Secrets) {
		names = append(names, one.path)
	}
	body, err := paragraph(say("Revealed, to one person alone: " + strings.Join(names, ", "))).message().body()
	if err != nil {
		return err
	}
	_, err = b.Desk.Viewed(ctx, desk.Viewing{Request: s.Request.ID, Digest: s.Request.Digest, Who: who.ID, As: actReveal, Body: body})
	return err
}

// reveal is the button that shows what is masked to whoever may decide; none where nothing is.
func (s scene) reveal(r approvers.Request) []slack.BlockElement {
	if len(secretsIn(r.Args, r.Secrets)) == 0 {
		return nil
	}
	return []slack.BlockElement{button(actReveal, "Reveal…", s.mark(r.ID), slack.StyleDefault)}
}

// shortestHushed is the length from which a secret is looked for in other texts; what is shorter is in too many words.
const shortestHushed = 3

// hush takes the secret values of a call out of a text that somebody or something wrote about it: the words that were asked in, and what the tool answered.
func hush(text string, args []byte, secrets []string) string {
	for _, v := range secretsIn(args, secrets) {
		for _, one := range texts(v.raw) {
			if width(one) >= shortestHushed {
				text = strings.ReplaceAll(text, one, approvers.MaskedValue)
			}
		}
	}
	return text
}

// texts are the texts and numbers in a value, as people write them.
func texts(raw []byte) (out []string) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	for {
		tok, err := dec.ReadToken()
		if err != nil { // the end
			return out
		}
		if k := tok.Kind(); k == '"' || k == '0' {
			out = append(out, tok.String())
		}
	}
}

// doubts says what in a request's arguments could mislead: in those that are shown in words that quote them, and of those that are masked only that there is
// something.
func doubts(r approvers.Request) []string {
	out := findings(wordsIn(openArgs(r)))
	hidden := countHidden(wordsIn(r.Args)) - countHidden(wordsIn(openArgs(r)))
	if len(r.Secrets) > 0 && hidden > 0 {
		out = append(out, "A masked value holds characters that can't be seen. Reveal… shows them.")
	}
	return out
}
