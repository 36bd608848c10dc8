package yamldoc

import (
	"slices"
	"strings"
	"time"
)

// Fields holds the values of a mapping with fixed keys. Methods such as Flag and Duration read the value of one key
// into a variable, and return true if they have set the variable. If the key is absent or its value is wrong, the
// variable keeps its default.
type Fields map[string]Value

// Has reports whether the mapping has the key.
func (f Fields) Has(key string) bool {
	_, ok := f[key]
	return ok
}

// Readable reports whether all values could be parsed. If a value could not be parsed, the keys after the value may
// be missing.
func (f Fields) Readable() bool {
	for _, v := range f {
		if v.node == nil {
			return false
		}
	}
	return true
}

// Flag reads true or false.
func (f Fields) Flag(key string, to *bool) bool {
	v, ok := f[key]
	if !ok {
		return false
	}
	on, ok := v.Flag()
	if ok {
		*to = on
	}
	return ok
}

// Count reads a whole number from 1 to the given maximum.
func (f Fields) Count(key string, to *int, most int) bool {
	v, ok := f[key]
	if !ok {
		return false
	}
	n, ok := v.Whole(1, most)
	if ok {
		*to = n
	}
	return ok
}

// Duration reads a time.
func (f Fields) Duration(key string, to *time.Duration) bool {
	v, ok := f[key]
	if !ok {
		return false
	}
	d, ok := v.duration()
	if ok {
		*to = d
	}
	return ok
}

// Within reads a time that is at most as long as the given maximum.
func (f Fields) Within(key string, to *time.Duration, longest time.Duration) {
	if v, ok := f[key]; ok && f.Duration(key, to) && *to > longest {
		v.Wrong(v.Shown()+" is too long: the longest is "+FormatDuration(longest), "write a time such as 10s or 2m")
	}
}

// Free reads any text if the key is present.
func (f Fields) Free(key, like string) (string, bool) {
	v, ok := f[key]
	if !ok {
		return "", false
	}
	return v.Free(like)
}

// Choice reads one of several words.
func (f Fields) Choice(key string, words []string) (string, bool) {
	v, ok := f[key]
	if !ok {
		return "", false
	}
	text, ok := v.Text(OneOf(words))
	if !ok {
		return "", false
	}
	if !slices.Contains(words, text) {
		v.Wrong(Quote(text)+" is not possible", OrHint(DidYouMean(text, words), "write "+OneOf(words)))
		return "", false
	}
	return text, true
}

// Fields reads a mapping with fixed keys and reports unknown keys. At the top of the file, keys that begin with x-
// are ignored, because they hold anchors.
func (v Value) Fields(known ...string) Fields {
	out := Fields{}
	what := "the keys " + OneOf(known)
	if len(known) == 1 {
		what = known[0] + ": and its value"
	}
	for _, e := range v.Entries(what) {
		if v.Path == "" && strings.HasPrefix(e.Key, "x-") {
			continue
		}
		if !slices.Contains(known, e.Key) {
			hint := DidYouMean(e.Key, known)
			if hint == "" {
				hint = "the keys here are " + strings.Join(known, ", ")
			}
			v.doc.wrongAt(e.at, join(v.Path, e.Key)+": is not a key that belongs here", hint)
			continue
		}
		out[e.Key] = e.Value
	}
	return out
}
