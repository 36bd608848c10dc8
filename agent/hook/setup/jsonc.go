package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// node is a value in a JSON file, with its position. The file may have comments, and a comma after the last element
// of a list, because some agents allow both.
type node struct {
	from, to int
	kind     byte // the first byte: {, [, ", or another
	members  []entry
}

// entry is a member of an object, or an element of an array.
type entry struct {
	name  string
	from  int // position of the name or of the element
	value node
}

// get finds a member by its name. If the name occurs several times, get returns the last member.
func (n node) get(name string) (node, bool) {
	for i := len(n.members) - 1; i >= 0; i-- {
		if n.kind == '{' && n.members[i].name == name {
			return n.members[i].value, true
		}
	}
	return node{}, false
}

// alone reports whether an object or a list has exactly one entry, and no comment beside this entry.
func (n node) alone(src string) bool {
	if len(n.members) != 1 {
		return false
	}
	e := n.members[0]
	return strings.Trim(src[n.from+1:e.from]+src[e.value.to:n.to-1], " \t\r\n,") == ""
}

// text returns a string's value, or "".
func (n node) text(src string) string {
	var s string
	if n.kind == '"' && json.Unmarshal([]byte(src[n.from:n.to]), &s) == nil {
		return s
	}
	return ""
}

// parser reads JSON with comments.
type parser struct {
	src   string
	at    int
	depth int
}

// parse reads a whole file.
func parse(src string) (node, error) {
	p := parser{src: src}
	p.space()
	n, err := p.value()
	if err != nil {
		return n, err
	}
	if p.space(); p.at < len(src) {
		return n, p.fault("something follows the value")
	}
	return n, nil
}

func (p *parser) fault(what string) error {
	return fmt.Errorf("line %d: %s", strings.Count(p.src[:min(p.at, len(p.src))], "\n")+1, what)
}

// space moves the position past white space and comments.
func (p *parser) space() {
	for p.at < len(p.src) {
		rest := p.src[p.at:]
		switch {
		case strings.ContainsRune(" \t\r\n", rune(rest[0])):
			p.at++
		case strings.HasPrefix(rest, "//"):
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				p.at += end
			} else {
				p.at = len(p.src)
			}
		case strings.HasPrefix(rest, "/*"):
			_, after, ended := strings.Cut(rest[len("/*"):], "*/")
			if !ended {
				return // the parser reports the wrong token later
			}
			p.at = len(p.src) - len(after)
		default:
			return
		}
	}
}

func (p *parser) value() (node, error) {
	if p.at >= len(p.src) {
		return node{}, p.fault("a value is missing")
	}
	if p.depth++; p.depth > 200 {
		return node{}, p.fault("too deep")
	}
	defer func() { p.depth-- }()
	n := node{from: p.at, kind: p.src[p.at]}
	var err error
	switch n.kind {
	case '{':
		err = p.list(&n, '}')
	case '[':
		err = p.list(&n, ']')
	case '"':
		_, err = p.str()
	default:
		end := strings.IndexAny(p.src[p.at:], ",]} \t\r\n/")
		if end < 0 {
			end = len(p.src) - p.at
		}
		if !json.Valid([]byte(p.src[p.at : p.at+end])) {
			return n, p.fault("a value is not valid")
		}
		p.at += end
	}
	n.to = p.at
	return n, err
}

func (p *parser) str() (string, error) {
	for i := p.at + 1; i < len(p.src); i++ {
		switch p.src[i] {
		case '\\':
			i++
		case '"':
			var s string
			if err := json.Unmarshal([]byte(p.src[p.at:i+1]), &s); err != nil {
				return "", p.fault("a string is not valid")
			}
			p.at = i + 1
			return s, nil
		}
	}
	return "", p.fault("a string does not end")
}

func (p *parser) list(n *node, end byte) error {
	p.at++
	for {
		p.space()
		if p.at < len(p.src) && p.src[p.at] == end {
			p.at++
			return nil
		}
		e := entry{from: p.at}
		var err error
		if end == '}' {
			if p.at >= len(p.src) || p.src[p.at] != '"' {
				return p.fault("a name is missing")
			}
			if e.name, err = p.str(); err != nil {
				return err
			}
			if p.space(); p.at >= len(p.src) || p.src[p.at] != ':' {
				return p.fault("a colon is missing")
			}
			p.at++
			p.space()
		}
		if e.value, err = p.value(); err != nil {
			return err
		}
		n.members = append(n.members, e)
		p.space()
		switch {
		case p.at < len(p.src) && p.src[p.at] == ',':
			p.at++
		case p.at >= len(p.src) || p.src[p.at] != end:
			return p.fault("a comma is missing")
		}
	}
}

// add appends an element to the array at a path of names. add creates missing objects and arrays of the path. The new
// text has the layout of the file.
func add(src string, path []string, element any) (string, error) {
	if strings.TrimSpace(src) == "" {
		src = "{}\n"
	}
	root, err := parse(src)
	if err != nil {
		return "", err
	}
	n := root
	for i, name := range path {
		if n.kind != '{' {
			return "", fmt.Errorf("%q is not an object", strings.Join(path[:i], "."))
		}
		next, ok := n.get(name)
		if !ok {
			return insert(src, n, name, nest(path[i+1:], element))
		}
		n = next
	}
	if n.kind != '[' {
		return "", fmt.Errorf("%q is not a list", strings.Join(path, "."))
	}
	return insert(src, n, "", element)
}

// nest returns the value for a missing member: nested objects for the rest of the path, around a list with the
// element.
func nest(path []string, element any) any {
	if len(path) == 0 {
		return []any{element}
	}
	return map[string]any{path[0]: nest(path[1:], element)}
}

// set adds a member to the file's object, if the object has no member with this name.
func set(src, name string, value any) (string, error) {
	if strings.TrimSpace(src) == "" {
		src = "{}\n"
	}
	root, err := parse(src)
	if err != nil {
		return "", err
	}
	if root.kind != '{' {
		return "", errors.New("the file is not an object")
	}
	if _, ok := root.get(name); ok {
		return src, nil
	}
	return insert(src, root, name, value)
}

// insert appends a member to an object, or an element to a list.
func insert(src string, n node, name string, value any) (string, error) {
	step := indentOf(src)
	outer := lineIndent(src, n.from)
	inner := outer + step
	if len(n.members) > 0 {
		if first := n.members[0]; strings.TrimSpace(src[strings.LastIndexByte(src[:first.from], '\n')+1:first.from]) == "" {
			inner = lineIndent(src, first.from)
		}
	}
	var encoded bytes.Buffer
	enc := json.NewEncoder(&encoded)
	enc.SetEscapeHTML(false) // people read the commands
	enc.SetIndent(inner, step)
	if err := enc.Encode(value); err != nil {
		return "", err
	}
	text := bytes.TrimSuffix(encoded.Bytes(), []byte("\n"))
	if name != "" {
		text = append([]byte(`"`+name+`": `), text...)
	}
	added := "\n" + inner + string(text)
	if len(n.members) == 0 {
		comments := strings.TrimRight(src[n.from+1:n.to-1], " \t\r\n") // empty if there are none
		return src[:n.from+1] + comments + added + "\n" + outer + src[n.to-1:], nil
	}
	at := n.members[len(n.members)-1].value.to
	after := parser{src: src, at: at}
	// If a comma follows the last element, a comma also follows the new last element.
	if after.space(); src[after.at] == ',' {
		return src[:after.at+1] + added + "," + src[after.at+1:], nil
	}
	return src[:at] + "," + added + src[at:], nil
}

// lineIndent returns the white space at the beginning of the line that contains a position.
func lineIndent(src string, at int) string {
	line := src[strings.LastIndexByte(src[:at], '\n')+1:]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// indentOf returns one step of the file's indentation.
func indentOf(src string) string {
	for line := range strings.Lines(src) {
		if step := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; step != "" && strings.TrimSpace(line) != "" {
			return step
		}
	}
	return "  "
}

// remove removes the entry with the given index from an object or a list, together with the entry's comma and line.
func remove(src string, n node, index int) string {
	from, to := n.members[index].from, n.members[index].value.to
	after := parser{src: src, at: to}
	if after.space(); src[after.at] == ',' {
		to = after.at + 1
	} else if index > 0 { // also remove the comma before the last entry
		from = n.members[index-1].value.to
		return src[:from] + src[to:]
	}
	line := strings.LastIndexByte(src[:from], '\n')
	if line >= 0 && strings.TrimSpace(src[line:from]) == "" {
		from = line
	}
	return src[:from] + src[to:]
}
