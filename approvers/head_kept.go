package approvers

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// KeptHead is a head that is kept elsewhere than in the store.
type KeptHead struct {
	Line int // where it begins
	Note string
	Cut  bool // it may be only the beginning of a note: nothing comes after it, not even an end
}

// Of reports whether it is a note, or the beginning of it.
func (k KeptHead) Of(note string) bool {
	return k.Note == note || k.Cut && strings.HasPrefix(note, strings.TrimRight(k.Note, "\n"))
}

// inLine precedes a head that is written as one word.
const inLine = "countersign-head:"

// InLine writes a note as one word, for logs and messages.
func InLine(signed string) string { return inLine + base64.StdEncoding.EncodeToString([]byte(signed)) }

// KeptHeads reads heads that are kept elsewhere: notes with an empty line after each, or lines of any kind with words that InLine wrote,
// of which the rest does not matter. What is neither is a fault, except for a note that was begun by somebody who stopped,
// and written anew after that.
func KeptHeads(text string) (kept []KeptHead, faults []error) {
	all := keptNotes(text)
	if strings.Contains(text, inLine) {
		all = keptWords(text)
	}
	for i, k := range all {
		if i+1 < len(all) && k.Note != all[i+1].Note && strings.HasPrefix(all[i+1].Note, strings.TrimRight(k.Note, "\n")) {
			continue // begun, and written anew
		}
		if _, err := ReadHead(k.Note); err != nil {
			if !k.Cut {
				faults = append(faults, fmt.Errorf("line %d: %w", k.Line, err))
			}
			continue
		}
		kept = append(kept, k)
	}
	if len(kept) == 0 && len(faults) == 0 {
		faults = append(faults, errors.New("there is no head in it"))
	}
	return kept, faults
}

// keptNotes cuts a text at its empty lines, and puts what was signed and the signatures together again.
func keptNotes(text string) (all []KeptHead) {
	line := 1
	blocks := strings.Split(text, "\n\n")
	for i, block := range blocks {
		at := line + strings.Count(block, "\n") - strings.Count(strings.TrimLeft(block, "\n"), "\n")
		line += strings.Count(block, "\n") + 2
		if block = strings.Trim(block, "\n"); block == "" {
			continue
		}
		last := len(all) - 1
		if strings.HasPrefix(block, "—") && last >= 0 && !strings.Contains(all[last].Note, "\n\n") {
			all[last].Note += "\n" + block + "\n"
		} else {
			all = append(all, KeptHead{Line: at, Note: block + "\n"})
		}
		all[len(all)-1].Cut = i == len(blocks)-1
	}
	return all
}

// keptWords finds the words of InLine. Slack's export has them in JSON with \/ for each /.
func keptWords(text string) (all []KeptHead) {
	for i, line := range strings.Split(strings.ReplaceAll(text, `\/`, "/"), "\n") {
		for rest := line; ; {
			_, after, found := strings.Cut(rest, inLine)
			if !found {
				break
			}
			word := after
			if end := strings.IndexFunc(after, func(r rune) bool { return !isBase64(r) }); end >= 0 {
				word = after[:end]
			}
			rest = after
			note, err := base64.StdEncoding.DecodeString(word)
			if err != nil {
				note = nil
			}
			all = append(all, KeptHead{Line: i + 1, Note: string(note)})
		}
	}
	return all
}

func isBase64(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '+' || r == '/' || r == '='
}
