package demomodel

import (
	"slices"
	"strings"
)

// pick is a choice among several orders: "the second one", "the cheapest", "both", "the teapot".
type pick struct {
	way    string // ordinal, newest, oldest, cheapest, dearest, other, both, all, state; empty: no choice
	places []int  // with the way ordinal: the positions in the list, from 0; -1: the last position
	word   string // with the way state: the state of the order
}

var ordinals = []struct {
	words *pattern
	n     int
}{
	{re(`\b(?:first|1st)\b(?: (?:one|order|of them))?`), 0},
	{re(`\b(?:second|2nd)\b(?: (?:one|order|of them))?`), 1},
	{re(`\b(?:third|3rd)\b (?:one|order|of them)|\bthe (?:third|3rd)\b`), 2},
	{re(`\b(?:fourth|4th)\b`), 3},
	{re(`\b(?:fifth|5th)\b`), 4},
	{re(`\blast (?:one|of them)\b`), -1},
}

var picks = []struct {
	words *pattern
	pick  pick
}{
	{re(`\b(?:newest|latest|most recent|last order|last purchase)\b`), pick{way: "newest"}},
	{re(`\boldest\b`), pick{way: "oldest"}},
	{re(`\b(?:cheap(?:er|est)|small(?:er|est) (?:one|order))\b`), pick{way: "cheapest"}},
	{re(`\b(?:(?:most|more) expensive|dear(?:er|est)|pricie(?:r|st)|bigg(?:er|est)|larg(?:er|est)) (?:one|order)\b|\bmost expensive\b`), pick{way: "dearest"}},
	{re(`\bthe other (?:one|order)?\b`), pick{way: "other"}},
	{re(`\bboth\b`), pick{way: "both"}},
	{re(`\b(?:all of (?:them|those|these)|them all|all (?:the |three |four |five )?orders|every order|each(?: order| of them)?|all (?:two|three|four|five))\b`), pick{way: "all"}},
	{re(`\b(?:delivered|arrived)\b (?:one|order)|\b(?:one|order) that (?:was delivered|has arrived|arrived|came)\b`), pick{way: "state", word: "delivered"}},
	{re(`\bshipped (?:one|order)|\b(?:one|order) that (?:was|is|has) (?:shipped|on its way)\b`), pick{way: "state", word: "shipped"}},
	{re(`\b(?:unpaid|open) (?:one|order)\b`), pick{way: "state", word: unpaid}},
}

func findPick(text string) pick {
	for _, p := range picks {
		if p.words.MatchString(text) {
			return p.pick
		}
	}
	var p pick
	for _, o := range ordinals {
		if o.words.MatchString(text) {
			p.way, p.places = "ordinal", append(p.places, o.n)
		}
	}
	return p
}

// The method "from" applies the pick to a list of orders, newest first.
func (p pick) from(list []*order, focus string) []*order {
	if len(list) == 0 {
		return nil
	}
	switch p.way {
	case "all":
		return list
	case "both":
		if len(list) == 2 {
			return list
		}
	case "ordinal":
		var chosen []*order
		for _, n := range p.places {
			if n < 0 {
				n = len(list) - 1
			}
			if n >= len(list) {
				return nil // the list has no such order (such as "the fifth" of three), so the person is asked
			}
			chosen = append(chosen, list[n])
		}
		return chosen
	case "newest":
		return list[:1]
	case "oldest":
		return list[len(list)-1:]
	case "cheapest":
		return []*order{slices.MinFunc(list, byTotal)}
	case "dearest":
		return []*order{slices.MaxFunc(list, byTotal)}
	case "other":
		if rest := slices.DeleteFunc(slices.Clone(list), func(o *order) bool { return o.id == focus }); len(rest) == 1 && len(list) > 1 {
			return rest
		}
	case "state":
		return slices.DeleteFunc(slices.Clone(list), func(o *order) bool { return o.state != p.word && (p.word != unpaid || o.due == 0) })
	}
	return nil
}

func byTotal(a, b *order) int { return a.total - b.total }

// byItem returns the orders that have the item that the text names best: "the teapot".
func byItem(text string, list []*order) []*order {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' })
	var found []*order
	best := 0
	for _, o := range list {
		score := 0
		for _, i := range o.items {
			score = max(score, i.named(words))
		}
		if score > best {
			best, found = score, nil
		}
		if score > 0 && score == best {
			found = append(found, o)
		}
	}
	return found
}

// The method "named" returns how many words of the item's name are among the given words. A weak word counts only
// together with another word of the name.
func (i item) named(words []string) int {
	n, strong := 0, false
	for _, part := range strings.Fields(strings.ToLower(i.name)) {
		part = strings.Trim(part, ",.")
		if len(part) > 3 && (slices.Contains(words, part) || slices.Contains(words, part+"s") || slices.Contains(words, strings.TrimSuffix(part, "s"))) {
			n++
			strong = strong || !weakWords[part]
		}
	}
	if n == 1 && !strong {
		return 0
	}
	return n
}

// weakWords do not identify an item on their own.
var weakWords = wordSet(`glass light desk office wall iron rain cast linen wireless standing`)
