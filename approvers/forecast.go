package approvers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Forecast is what a tool says that a call would do: it is asked before anybody decides, by the operator's word in the policy and never by the model. It is
// that tool's word and no more.
type Forecast struct {
	By     string        `json:"by"`            // the tool that says it
	Dry    bool          `json:"dry,omitempty"` // it is the tool itself, told by an argument to do nothing
	Own    bool          `json:"own,omitempty"` // it is the tool's own function for that, and no call
	State  ForecastState `json:"state"`
	Text   string        `json:"text,omitempty"`  // all that it said, within MaxForecast, without secret values
	Cut    int           `json:"cut,omitempty"`   // characters that were left out
	Fault  string        `json:"fault,omitempty"` // why there is none
	Digest string        `json:"digest"`          // of what it is about
	Tries  int           `json:"tries,omitempty"`
	At     time.Time     `json:"at,omitzero"` // when it was there, or failed
}

// ForecastState says how far a forecast is.
type ForecastState string

// The states of a forecast.
const (
	ForecastMaking ForecastState = "making"
	ForecastMade   ForecastState = "made"
	ForecastFailed ForecastState = "failed"
)

// Bounds of a forecast: in characters, and in tries, of which a process that stops takes one.
const (
	MaxHeadline   = 600
	MaxForecast   = 4000
	ForecastTries = 3
)

// Foreteller says which tool makes a preview, and how. The zero Foreteller makes none.
type Foreteller struct {
	Tool     string          // a companion that only reads, called with the same arguments; empty for a dry run: the tool itself
	Argument string          // dry run: this argument …
	Value    json.RawMessage // … is set to this
	Within   time.Duration   // zero: DefaultWithin
}

// How long a preview may take.
const (
	DefaultWithin = 5 * time.Second
	MaxWithin     = 30 * time.Second
)

// Asked reports whether there is a tool to ask.
func (f Foreteller) Asked() bool { return f.Tool != "" || f.Argument != "" }

// Making reports whether the tool that says what the call would do has not answered yet.
func (f *Forecast) Making() bool { return f != nil && f.State == ForecastMaking }

// unseen reports whether a forecast was not there yet when a person did something at that time.
func (f *Forecast) unseen(at time.Time) bool {
	return f != nil && (f.State == ForecastMaking || f.At.After(at))
}

// Foretell takes in what a tool said of a request, or why it said nothing. It changes nothing where that is about other arguments than the request has now, or
// where it is decided.
func (r Request) Foretell(digest, text, fault string, now time.Time) (Request, bool) {
	if r.State != Pending || !r.Forecast.Making() || r.Forecast.Digest != digest || r.Digest != digest {
		return r, false
	}
	f := *r.Forecast
	f.At = now
	text = strings.TrimSpace(MaskText(strings.ToValidUTF8(text, "\uFFFD"), r.Args, r.Secrets))
	if text == "" && fault == "" {
		fault = "it said nothing"
	}
	if fault != "" {
		f.State, f.Fault = ForecastFailed, cutTo(MaskText(strings.ToValidUTF8(fault, "\uFFFD"), r.Args, r.Secrets), MaxHeadline)
		r.Forecast = &f
		return r, true
	}
	f.State, f.Text = ForecastMade, cutTo(text, MaxForecast)
	f.Cut = max(0, utf8.RuneCountInString(text)-MaxForecast)
	r.Forecast = &f
	if head := Headline(text); r.Preview == "" && head != "" {
		if r.Preview = head; !f.Own {
			r.Preview = cutTo(f.By+" says: "+head, MaxHeadline)
		}
	}
	return r, true
}

// cutTo keeps the first n characters.
func cutTo(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Headline is the one sentence of what a tool said: its first line, or, where it answers with a JSON object, the text that it has as preview, summary or message.
// Empty: there is none that is short enough.
func Headline(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &object) != nil {
			return ""
		}
		text = ""
		for _, name := range []string{"preview", "summary", "message"} {
			if json.Unmarshal(object[name], &text) == nil && text != "" {
				break
			}
		}
	}
	if strings.HasPrefix(text, "[") {
		return ""
	}
	text = strings.TrimSpace(text)
	if end := strings.IndexFunc(text, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }); end >= 0 {
		text = strings.TrimSpace(text[:end])
	}
	if utf8.RuneCountInString(text) > MaxHeadline {
		return ""
	}
	return text
}

// MaskText takes the secret values of arguments out of a text, as they are and as JSON writes them. Values of one or two characters only where they stand alone.
func MaskText(text string, args json.RawMessage, secrets []string) string {
	if len(secrets) == 0 || text == "" {
		return text
	}
	if _, err := StrictArgs(args, false); err != nil {
		return MaskedValue // nobody can say what is secret in it
	}
	found := secretTexts(args, secrets)
	slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range found {
		text = maskOne(text, secret)
	}
	return text
}

// secretTexts collects the values at secret paths: texts and numbers as they are written.
func secretTexts(args json.RawMessage, secrets []string) (found []string) {
	var walk func(dec *jsontext.Decoder, path string, secret bool) error
	walk = func(dec *jsontext.Decoder, path string, secret bool) error {
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		secret = secret || (path != "" && IsSecret(secrets, path))
		switch tok.Kind() {
		case '{':
			for dec.PeekKind() != '}' {
				name, err := dec.ReadToken()
				if err != nil {
					return err
				}
				if err := walk(dec, strings.TrimPrefix(path+"."+name.String(), "."), secret); err != nil {
					return err
				}
			}
			_, err = dec.ReadToken()
		case '[':
			for dec.PeekKind() != ']' {
				if err := walk(dec, path, secret); err != nil {
					return err
				}
			}
			_, err = dec.ReadToken()
		case '"', '0':
			if text := tok.String(); secret && text != "" {
				found = append(found, text)
				if quoted, err := jsontext.AppendQuote(nil, text); err == nil && tok.Kind() == '"' {
					found = append(found, string(quoted[1:len(quoted)-1]))
				}
			}
		}
		return err
	}
	_ = walk(jsontext.NewDecoder(bytes.NewReader(args)), "", false) // StrictArgs has read them
	slices.Sort(found)
	return slices.Compact(found)
}

// maskOne masks a value in a text.
func maskOne(text, secret string) string {
	if utf8.RuneCountInString(secret) > 2 {
		return strings.ReplaceAll(text, secret, MaskedValue)
	}
	var b strings.Builder
	for {
		i := strings.Index(text, secret)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(secret):])
		b.WriteString(text[:i])
		if alone(before) && alone(after) {
			b.WriteString(MaskedValue)
		} else {
			b.WriteString(secret)
		}
		text = text[i+len(secret):]
	}
}

// alone reports whether what stands beside a value is no part of a word or number.
func alone(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// SetMember sets one member of a JSON object and leaves every other byte as it is.
func SetMember(object json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return nil, errors.Join(fmt.Errorf("%w: a JSON object is needed", ErrArgs), err)
	}
	members := 0
	for ; dec.PeekKind() != '}'; members++ {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		here := tok.String() == name // before the token is read over
		raw, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if end := dec.InputOffset(); here {
			return slices.Concat(object[:end-int64(len(raw))], value, object[end:]), nil
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	end := dec.InputOffset() - 1 // of the closing brace
	quoted, err := jsontext.AppendQuote(nil, name)
	if err != nil {
		return nil, err
	}
	comma := ","
	if members == 0 {
		comma = ""
	}
	return slices.Concat(object[:end], []byte(comma), quoted, []byte(":"), value, object[end:]), nil
}
