package preview

import (
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"countersign/config/yamldoc"
)

// Limits on the text that describes a difference. Approvers can read the whole change, because the card shows the
// exact arguments below the preview.
const (
	maxDiff     = 300
	maxDiffWord = 60   // characters of one changed piece
	maxDiffs    = 4    // number of changes that are shown; the others are only counted
	maxPath     = 4096 // bytes of a value that may be a path
	// maxDiffSize limits the table of a comparison, in cells. Filling a table of this size takes about 2 ms.
	maxDiffSize = 250_000
)

// diff describes in a few words how a new value differs from an old value. Examples are "12 Elm Street → 14 Oak Road"
// and "3 lines added, 1 removed: …".
func diff(was, is any) (string, error) {
	text := change(was, is)
	if utf8.RuneCountInString(text) > maxDiff {
		return short(text, maxDiff)
	}
	return text, nil
}

func change(was, is any) string {
	if identity(was) == identity(is) {
		return "no change"
	}
	switch {
	case blank(was) && blank(is):
		return arrow(was, is)
	case blank(was):
		return "new: " + visible(is)
	case blank(is):
		return "removed: " + visible(was)
	}
	switch w := was.(type) {
	case decimal:
		if i, ok := is.(decimal); ok {
			return numbers(w, i)
		}
	case string:
		if i, ok := is.(string); ok {
			return texts(w, i)
		}
	case list:
		if i, ok := is.(list); ok {
			return items(w, i)
		}
	case object:
		if i, ok := is.(object); ok {
			return members(w, i)
		}
	}
	return arrow(was, is)
}

func blank(v any) bool { return isNull(v) || v == "" }

// identity returns the same text for values that people read as the same value. A number equals the text that has its
// digits.
func identity(v any) string { return compact(digits(v)) }

// digits returns the value with texts in place of its numbers.
func digits(v any) any {
	switch v := v.(type) {
	case decimal:
		return v.String()
	case float64, int:
		return fmt.Sprint(v)
	case list:
		out := make(list, len(v))
		for i, item := range v {
			out[i] = digits(item)
		}
		return out
	case object:
		out := make(object, len(v))
		for name, item := range v {
			out[name] = digits(item)
		}
		return out
	}
	return v
}

// pathLike matches a value that is probably the path of a file.
var pathLike = regexp.MustCompile(`^[\p{L}\p{N}._~@+-]*(/[\p{L}\p{N}._~@+-]*)+$`)

// piece writes one value for a sentence: on one line, and shortened if the value is long.
func piece(v any) string {
	text := fmt.Sprint(v)
	if len(text) > maxDiffWord && len(text) <= maxPath && pathLike.MatchString(text) {
		return pathPiece(text)
	}
	return cut(text, maxDiffWord)
}

// pathPiece writes a path as piece does. A long path loses its beginning, so that the name of the file stays.
func pathPiece(path string) string {
	path = path[max(0, len(path)-maxDiffWord*utf8.UTFMax*4):] // the rest is cut off anyway
	runes := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(path, "")), " "))
	if len(runes) <= maxDiffWord {
		return string(runes)
	}
	end := string(runes[len(runes)-maxDiffWord+1:])
	return "…" + end[max(0, strings.Index(end, "/")):]
}

// cut writes a text on one line, with at most the given number of characters.
func cut(text string, most int) string {
	if len(text) > most*utf8.UTFMax*4 { // the rest is cut off anyway
		text = text[:most*utf8.UTFMax*4]
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if utf8.RuneCountInString(text) > most {
		return string([]rune(text)[:most-1]) + "…"
	}
	return text
}

// arrow writes two values that differ. If the values look the same as pieces, arrow shows their exact form, with
// quotation marks around texts.
func arrow(was, is any) string {
	w, i := visible(was), visible(is)
	if w == i {
		w, i = exact(was), exact(is)
	}
	if w == i {
		return w + " → a value with the same beginning"
	}
	return w + " → " + i
}

// visible writes a value as piece does, and a text without visible characters in quotation marks.
func visible(v any) string {
	if text := piece(v); text != "" {
		return text
	}
	return exact(v)
}

func exact(v any) string {
	if text, ok := v.(string); ok {
		return yamldoc.Quote(text)
	}
	return piece(v)
}

// numbers describes the exact amount by which a number changes.
func numbers(was, is decimal) string {
	w, ok := new(big.Rat).SetString(was.String())
	i, ok2 := new(big.Rat).SetString(is.String())
	if !ok || !ok2 {
		return arrow(was, is)
	}
	by := i.Sub(i, w)
	sign := "+"
	if by.Sign() < 0 {
		sign = "−"
		by.Neg(by)
	}
	return fmt.Sprintf("%s (%s%s)", arrow(was, is), sign, exactly(by))
}

// The function writes a sum or a difference of decimals with all its digits. Such a number always has a finite number
// of digits.
func exactly(r *big.Rat) string {
	places, _ := r.FloatPrec()
	return r.FloatString(places)
}

// texts compares two texts. If one of the texts has several lines, texts compares by line. If both texts have one
// line, and one of them is long, texts compares by word.
func texts(was, is string) string {
	if strings.ContainsAny(was, "\r\n") || strings.ContainsAny(is, "\r\n") {
		return lines(was, is)
	}
	if utf8.RuneCountInString(was) <= maxDiffWord && utf8.RuneCountInString(is) <= maxDiffWord {
		return arrow(was, is)
	}
	var said []string
	changes := edits(strings.Fields(was), strings.Fields(is))
	for _, c := range changes {
		gone, come := strings.Join(c.gone, " "), strings.Join(c.come, " ")
		switch {
		case gone == "":
			said = append(said, "+ "+piece(come))
		case come == "":
			said = append(said, "− "+piece(gone))
		default:
			said = append(said, arrow(gone, come))
		}
	}
	if len(said) == 0 {
		return "only spaces change"
	}
	return theFirst(said, len(said))
}

// theFirst joins the first changes, and adds the number of the other changes.
func theFirst(said []string, all int) string {
	said = said[:min(len(said), maxDiffs)]
	if more := all - len(said); more > 0 {
		said = append(slices.Clip(said), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(said, ", ")
}

// lines counts the added and the removed lines. The function shows the first of these lines, and added lines before
// removed lines.
func lines(was, is string) string {
	var all edit
	for _, c := range edits(splitLines(was), splitLines(is)) {
		all.gone, all.come = append(all.gone, c.gone...), append(all.come, c.come...)
	}
	counts := all.counts()
	if counts == "" {
		return "only line ends change"
	}
	return counts + ": " + all.lines()
}

// counts says how many lines an edit adds and removes.
func (e edit) counts() string {
	var counts []string
	if len(e.come) > 0 {
		counts = append(counts, many(len(e.come), "line")+" added")
	}
	if len(e.gone) > 0 {
		counts = append(counts, many(len(e.gone), "line")+" removed")
	}
	return strings.Join(counts, ", ")
}

// lines returns the first lines of an edit: added lines before removed lines.
func (e edit) lines() string {
	return theFirst(append(signed("+ ", e.come), signed("− ", e.gone)...), len(e.come)+len(e.gone))
}

// signed returns the first lines, each with a sign before it.
func signed(sign string, lines []string) []string {
	var out []string
	for _, line := range lines[:min(len(lines), maxDiffs)] {
		out = append(out, sign+piece(line))
	}
	return out
}

func splitLines(s string) []string {
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), "\n")
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// items compares how often each item is in two lists. The function describes added items, removed items, or a changed
// order.
func items(was, is list) string {
	count := map[string]int{}
	for _, item := range was {
		count[identity(item)]--
	}
	for _, item := range is {
		count[identity(item)]++
	}
	var said []string
	take := func(sign string, of list, way int) {
		for _, item := range of {
			if text := identity(item); count[text]*way > 0 {
				count[text] -= way
				said = append(said, sign+" "+piece(item))
			}
		}
	}
	take("+", is, 1)
	take("−", was, -1)
	if len(said) == 0 {
		return "the same items in another order"
	}
	return theFirst(said, len(said))
}

// members compares two objects field by field.
func members(was, is object) string {
	names := slices.Sorted(maps.Keys(was))
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, both := was[name]; !both {
			names = append(names, name)
		}
	}
	var said []string
	for _, name := range names {
		w, had := was[name]
		i, has := is[name]
		switch {
		case !had:
			said = append(said, "+ "+piece(name)+": "+piece(i))
		case !has:
			said = append(said, "− "+piece(name)+": "+piece(w))
		case identity(w) != identity(i):
			said = append(said, piece(name)+": "+arrow(w, i))
		}
	}
	return theFirst(said, len(said))
}

// Lines compares two texts by line. Each returned line begins with a sign and a space. The sign is "-" for a line that
// only the old text has, "+" for a line that only the new text has, and a space for a line of both texts. Lines leaves
// out nothing, so the result contains both texts completely.
func Lines(was, is string) []string {
	old, now := strings.Split(was, "\n"), strings.Split(is, "\n")
	var out []string
	add := func(sign string, lines []string) {
		for _, line := range lines {
			out = append(out, sign+line)
		}
	}
	at := 0
	for _, c := range edits(old, now) {
		add("  ", old[at:c.at])
		add("- ", c.gone)
		add("+ ", c.come)
		at = c.at + len(c.gone)
	}
	add("  ", old[at:])
	return out
}

// edit is a sequence of pieces that were replaced by other pieces.
type edit struct {
	at         int // the number of old pieces before the change
	gone, come []string
}

// edits finds the smallest changes between two lists of pieces. If both lists are long, one change covers everything
// between their common beginning and their common end.
func edits(was, is []string) []edit {
	at := 0
	for len(was) > 0 && len(is) > 0 && was[0] == is[0] {
		was, is, at = was[1:], is[1:], at+1
	}
	for len(was) > 0 && len(is) > 0 && was[len(was)-1] == is[len(is)-1] {
		was, is = was[:len(was)-1], is[:len(is)-1]
	}
	switch {
	case len(was) == 0 && len(is) == 0:
		return nil
	case len(was)*len(is) > maxDiffSize || len(was) == 0 || len(is) == 0:
		return []edit{{at, was, is}}
	}
	return walk(at, was, is, alike(was, is))
}

// alike returns a table. For each pair of positions, the table has the length of the longest common subsequence of
// the pieces from these positions on.
func alike(was, is []string) [][]int32 {
	table := make([][]int32, len(was)+1)
	for i := range table {
		table[i] = make([]int32, len(is)+1)
	}
	for i := len(was) - 1; i >= 0; i-- {
		for j := len(is) - 1; j >= 0; j-- {
			if was[i] == is[j] {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	return table
}

// walk finds the changes with the table of alike. The parameter from is the number of old pieces before the table.
func walk(from int, was, is []string, table [][]int32) []edit {
	var out []edit
	now := edit{at: from}
	for i, j := 0, 0; i < len(was) || j < len(is); {
		switch {
		case i < len(was) && j < len(is) && was[i] == is[j]:
			if len(now.gone)+len(now.come) > 0 {
				out = append(out, now)
			}
			i, j = i+1, j+1
			now = edit{at: from + i}
		case j == len(is) || (i < len(was) && table[i+1][j] >= table[i][j+1]):
			now.gone = append(now.gone, was[i])
			i++
		default:
			now.come = append(now.come, is[j])
			j++
		}
	}
	if len(now.gone)+len(now.come) > 0 {
		out = append(out, now)
	}
	return out
}
