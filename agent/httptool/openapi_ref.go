package httptool

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// maxHops limits the length of a chain of references.
const maxHops = 20

var errHops = errors.New("a reference leads back to itself")

// at returns the target of a reference, which must be in the same file.
func (d *document) at(ref string) (any, error) {
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, fmt.Errorf("the reference %.100q does not lead to a place in this file; copy its target into the file", ref)
	}
	var at any = d.root
	for token := range strings.SplitSeq(pointer, "/") {
		if plain, err := url.PathUnescape(token); err == nil {
			token = plain
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		next, found := any(nil), false
		switch v := at.(type) {
		case map[string]any:
			next, found = v[token]
		case []any:
			if n, err := strconv.Atoi(token); err == nil && n >= 0 && n < len(v) {
				next, found = v[n], true
			}
		}
		if !found {
			return nil, fmt.Errorf("the reference %.100q names nothing", ref)
		}
		at = next
	}
	return at, nil
}

// object follows references to an object. Other keys beside a reference are ignored.
func (d *document) object(v any) (map[string]any, error) {
	for range maxHops {
		o, ok := v.(map[string]any)
		if !ok {
			return nil, errors.New("is not an object")
		}
		ref, refers := o["$ref"].(string)
		if !refers {
			return o, nil
		}
		var err error
		if v, err = d.at(ref); err != nil {
			return nil, err
		}
	}
	return nil, errHops
}

// refs collects the references in a value, and recursively the references in their targets.
func (d *document) refs(v any, seen map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			if _, known := seen[ref]; !known {
				if target, err := d.at(ref); err == nil {
					seen[ref] = target
					d.refs(target, seen)
				}
			}
		}
		for _, item := range v {
			d.refs(item, seen)
		}
	case []any:
		for _, item := range v {
			d.refs(item, seen)
		}
	}
}
