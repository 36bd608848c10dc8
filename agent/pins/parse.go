package pins

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Parse parses a lock file's content. name is the file's name in errors. The tools must be sorted, each name of the
// format must be present once, and each hash must be that of the definition. These rules detect wrong merges, which
// could pin an unreviewed definition.
func Parse(name string, data []byte) (Lock, error) {
	p := &parser{name: name, data: data, d: jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))}
	l, err := p.file()
	if err != nil {
		return Lock{}, err
	}
	return l, nil
}

// parser reads a lock file token by token. A definition may have duplicate names, but the rest of the file may not.
type parser struct {
	name string
	data []byte
	d    *jsontext.Decoder
	at   int64 // start of the current token
}

// mark stores the position of the next token.
func (p *parser) mark() {
	p.at = p.d.InputOffset()
	for p.at < int64(len(p.data)) && strings.IndexByte(" \t\r\n,:", p.data[p.at]) >= 0 {
		p.at++
	}
}

// fault returns an error with the position in the file.
func (p *parser) fault(format string, args ...any) error {
	before := p.data[:min(p.at, int64(len(p.data)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	return fmt.Errorf("%w: %s:%d: %s", ErrLock, p.name, line, fmt.Sprintf(format, args...))
}

const mendIt = `take the file from version control again, or delete it and run "countersign tools pin"`

// broken returns the error for invalid JSON.
func (p *parser) broken(err error) error {
	p.at = p.d.InputOffset()
	switch {
	case bytes.Contains(p.data, []byte("<<<<<<<")):
		return p.fault("the file holds both sides of a merge; keep one of them, and run \"countersign tools\" to see which tools it does not pin")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return p.fault("the file is cut short; %s", mendIt)
	}
	return p.fault("it is not valid JSON (%s); %s", plain(err), mendIt)
}

// object reads an object with known, unique names. For each name in the file, object calls the function in known,
// which reads the value.
func (p *parser) object(what string, known map[string]func() error) error {
	if err := p.begin('{', what+" is not an object"); err != nil {
		return err
	}
	var seen []string
	start := p.at
	for p.d.PeekKind() == '"' {
		p.mark()
		tok, err := p.d.ReadToken()
		if err != nil {
			return p.broken(err)
		}
		name := tok.String()
		read, ok := known[name]
		switch {
		case !ok:
			return p.fault("%s has the name %.60q, which is not known; %s", what, name, mendIt)
		case slices.Contains(seen, name):
			return p.fault("%s has %q twice; keep one of them", what, name)
		}
		seen = append(seen, name)
		if err := read(); err != nil {
			return err
		}
	}
	if _, err := p.d.ReadToken(); err != nil {
		return p.broken(err)
	}
	p.at = start
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !slices.Contains(seen, name) {
			return p.fault("%s has no %q; %s", what, name, mendIt)
		}
	}
	return nil
}

func (p *parser) begin(kind jsontext.Kind, otherwise string) error {
	if p.d.PeekKind() != kind {
		if _, err := p.d.ReadToken(); err != nil {
			return p.broken(err)
		}
		return p.fault("%s; %s", otherwise, mendIt)
	}
	_, err := p.d.ReadToken()
	return err
}

func (p *parser) file() (l Lock, err error) {
	version := func() error {
		v, err := p.d.ReadValue()
		if err != nil {
			return p.broken(err)
		}
		if string(v) != fmt.Sprint(Version) {
			return p.fault("the version is %.20s, and this countersign reads version %d; use the countersign that wrote the file, or delete the file and run \"countersign tools pin\"", v, Version)
		}
		return nil
	}
	about := func() error { _, err := p.text("countersign"); return err }
	if err := p.object("the file", map[string]func() error{"countersign": about, "version": version, "tools": func() error { return p.tools(&l) }}); err != nil {
		return l, err
	}
	if _, err := p.d.ReadToken(); !errors.Is(err, io.EOF) {
		p.at = p.d.InputOffset()
		return l, p.fault("there is more after the end; %s", mendIt)
	}
	return l, nil
}

func (p *parser) tools(l *Lock) error {
	if err := p.begin('[', `"tools" is not a list`); err != nil {
		return err
	}
	for p.d.PeekKind() == '{' {
		p.mark()
		pin, err := p.pin()
		if err != nil {
			return err
		}
		if n := len(l.Pins); n > 0 && l.Pins[n-1].Tool >= pin.Tool {
			if _, twice := l.Tool(pin.Tool); twice {
				return p.fault("%s is pinned twice; keep the pin that somebody looked at", pin.Tool)
			}
			return p.fault("%s comes after %s, and the tools must be sorted by name; %s", pin.Tool, l.Pins[n-1].Tool, mendIt)
		}
		l.Pins = append(l.Pins, pin)
	}
	if _, err := p.d.ReadToken(); err != nil {
		return p.broken(err)
	}
	return nil
}

func (p *parser) pin() (pin Pin, err error) {
	texts := map[string]*string{"tool": &pin.Tool, "source": &pin.Source, "hash": &pin.Hash, "pinned_by": &pin.By}
	times := map[string]*time.Time{"first_seen": &pin.FirstSeen, "pinned_at": &pin.PinnedAt}
	known := map[string]func() error{"definition": func() error { return p.definition(&pin) }}
	for name, to := range texts {
		known[name] = func() (err error) { *to, err = p.text(name); return err }
	}
	for name, to := range times {
		known[name] = func() (err error) { *to, err = p.time(name); return err }
	}
	if err := p.object("a tool", known); err != nil {
		return pin, err
	}
	hash := hashOf(pin.Definition)
	switch {
	case pin.Tool == "" || pin.Source == "":
		return pin, p.fault("a tool has no name or no source; %s", mendIt)
	case pin.Hash != hash:
		return pin, p.fault("the hash of %s does not fit its definition, so one of them was changed by hand; take the file from version control again, or delete this tool from it and run \"countersign tools pin %s\"", pin.Tool, pin.Tool)
	}
	return pin, nil
}

func (p *parser) definition(pin *Pin) error {
	v, err := p.d.ReadValue()
	if err != nil {
		return p.broken(err)
	}
	pin.Definition, err = Compact([]byte(v))
	if err != nil {
		return p.fault("%s", strings.TrimPrefix(err.Error(), ErrDefinition.Error()+": "))
	}
	return nil
}

func (p *parser) text(name string) (string, error) {
	if err := p.kind('"', name); err != nil {
		return "", err
	}
	tok, err := p.d.ReadToken()
	if err != nil {
		return "", p.broken(err)
	}
	return tok.String(), nil
}

func (p *parser) kind(want jsontext.Kind, name string) error {
	if p.d.PeekKind() == want {
		return nil
	}
	if _, err := p.d.ReadValue(); err != nil {
		return p.broken(err)
	}
	return p.fault("%q is not text; %s", name, mendIt)
}

func (p *parser) time(name string) (time.Time, error) {
	s, err := p.text(name)
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return at, p.fault("%q is %.40q, which is not a time such as 2026-12-24T18:00:00Z; %s", name, s, mendIt)
	}
	return at.UTC(), nil
}
