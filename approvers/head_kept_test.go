package approvers_test

import (
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
)

// threeHeads returns three signed notes.
func threeHeads(t *testing.T) []string {
	t.Helper()
	key := sealKey(t)
	h := &heads{T: t}
	h.add(takes(key, ""), key)
	h.add(nil, key)
	h.add(nil, key)
	return h.all
}

func TestKeptHeads(t *testing.T) {
	all := threeHeads(t)
	one, two, three := all[0], all[1], all[2]
	word := approvers.InLine
	for _, c := range []struct {
		what, text string
		lines      []int // of the heads that are read
		cut        bool  // the last head may be incomplete
		faults     int
	}{
		{"as they are written", one + "\n" + two + "\n" + three + "\n", []int{1, 10, 19}, false, 0},
		{"one", two + "\n", []int{1}, false, 0},
		{"without the empty line at the end", one + "\n" + two, []int{1, 10}, true, 0},
		{"with more empty lines", "\n\n\n" + one + "\n\n\n\n" + two + "\n\n", []int{4, 16}, false, 0},
		{"begun in the text, and written again", one + "\n" + two[:40] + "\n\n" + two + "\n", []int{1, 14}, false, 0},
		{"begun in the signature, and written again", one + "\n" + two[:len(two)-9] + "\n\n" + two + "\n", []int{1, 19}, false, 0},
		{"begun in the signature", one + "\n" + two[:len(two)-9], []int{1, 10}, true, 0},
		{"begun in the text", one + "\n" + two[:40], []int{1}, false, 0},
		{"begun, and another after it", one + "\n" + two[:40] + "\n\n" + three + "\n", []int{1, 14}, false, 1},
		{"a text in between", one + "\nnothing of it\n\n" + two + "\n", []int{1, 12}, false, 1},
		{"a signature alone", "— x y\n\n" + one + "\n", []int{3}, false, 1},
		{"nothing", "", nil, false, 1},
		{"something else", "a log\nof something\n\n", nil, false, 1},
		{"words", "<1>1 x " + word(one) + "\nother\n" + word(two) + "," + word(three), []int{1, 3, 3}, false, 0},
		{"messages as JSON", `[{"text":"🔏 Audit head\n` + strings.ReplaceAll(word(one), "/", `\/`) + `\nKeep it."},{"text":"` + word(two) + `"}]`, []int{1, 1}, false, 0},
		{"a word that was cut", word(one) + "\n" + word(two)[:90] + "\n", []int{1}, false, 1},
		{"a word that was cut, and written again", word(one) + "\n" + word(two)[:90] + "\n" + word(two) + "\n", []int{1, 3}, false, 0},
		{"a word that was cut, and another after it", word(one) + "\n" + word(two)[:90] + "\n" + word(three) + "\n", []int{1, 3}, false, 1},
		{"a word that is no head, and one after it", "countersign-head:abc\n" + word(one), []int{2}, false, 1},
		{"talk about words", "Copy the words with `countersign-head:`, please\n" + word(one) + "\nA countersign-head: is signed\n", []int{2}, false, 0},
		{"only talk", "Copy the words with `countersign-head:`, please\n", nil, false, 1},
	} {
		kept, faults := approvers.KeptHeads(c.text)
		var lines []int
		for _, k := range kept {
			lines = append(lines, k.Line)
			if k.Cut != (c.cut && k.Line == c.lines[len(c.lines)-1]) {
				t.Errorf("%s: the head in line %d is cut: %t", c.what, k.Line, k.Cut)
			}
			if !k.Cut && k.Note != one && k.Note != two && k.Note != three {
				t.Errorf("%s: the head in line %d is %q", c.what, k.Line, k.Note)
			}
		}
		if fmt.Sprint(lines) != fmt.Sprint(c.lines) || len(faults) != c.faults {
			t.Errorf("%s: heads in lines %v, faults %v; want %v and %d", c.what, lines, faults, c.lines, c.faults)
		}
	}
	if strings.Count(one, "\n") != 8 {
		t.Errorf("the first head has %d lines:\n%s", strings.Count(one, "\n"), one)
	}
}

func FuzzKeptHeads(f *testing.F) {
	f.Add("a\n1\n\n— b c\n\n")
	f.Add("countersign-head:abc= x")
	f.Fuzz(func(t *testing.T, text string) {
		kept, faults := approvers.KeptHeads(text)
		if len(kept) == 0 && len(faults) == 0 && !strings.Contains(text, "\n") && text == "" {
			t.Error("an empty text is not reported as a fault")
		}
		for _, k := range kept {
			if _, err := approvers.ReadHead(k.Note); err != nil || k.Line < 1 {
				t.Errorf("%q is not a head (%v), or line %d is not", k.Note, err, k.Line)
			}
		}
	})
}
