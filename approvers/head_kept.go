package approvers

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// KeptHead is a copy of a head that is kept outside the store.
type KeptHead struct {
	Line int // the line that it begins in
	Note string
	Cut  bool // it may be incomplete: no empty line follows it
}

// Of reports whether it is a copy of a note, or its beginning if it was cut.
func (k KeptHead) Of(note string) bool {
	return k.Note == note || k.Cut && strings.HasPrefix(note, strings.TrimRight(k.Note, "\n"))
}

// inLine precedes a head that is written as one word.
const inLine = "countersign-head:"

// InLine encodes a note as one word, for logs and messages.
func InLine(signed string) string { return inLine + base64.StdEncoding.EncodeToString([]byte(signed)) }

// KeptHeads parses heads that are kept outside the store. The text holds notes, each followed by an empty line, or
// lines of any kind with words that InLine wrote; it ignores the rest of such a line. Everything else is a fault,
// except an incomplete note at the end of the text or before its complete copy.
func KeptHeads(text string) (kept []KeptHead, faults []error) {
	all := keptNotes(text)
	if strings.Contains(text, inLine) {
		all = keptWords(text)
	}
	for i, k := range all {
		if i+1 < len(all) && k.Note != all[i+1].Note && strings.HasPrefix(all[i+1].Note, strings.TrimRight(k.Note, "\n")) {
			continue // incomplete, and then written again
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

// keptNotes splits a text at its empty lines, and joins each signed text with its signatures.
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
