package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"countersign/agent/pins"
	"countersign/approvers/desk"
)

// Registry holds the tools that can be called. The zero Registry is empty and ready for use, by many goroutines.
//
// A tool with a Definition is somebody else's: what its source says of it can change at any time. It may be called only while its source says, byte for byte, what
// the operator has pinned; see [Registry.Pin]. Otherwise it is there and blocked, so that everybody who meets it is told why.
type Registry struct {
	mu      sync.RWMutex
	tools   map[string]registered
	wires   map[string]string // the name on the wire → the tool's name
	sources map[string]*source
	version uint64
	print   string        // see Fingerprint; empty: to be made
	moved   chan struct{} // closed when something changes; nil: nobody waits
	changed chan struct{} // see Changed
}

// registered is a tool with what was made of it when it was registered.
type registered struct {
	Tool
	pinned desk.Tool
	source string          // empty: compiled in
	wire   string          // the name as the model's interface permits it
	params json.RawMessage // the schema as the model's interface wants it
	hash   string          // of the definition; empty: it needs no pin
	state  pins.State
	fault  error           // why what its source offers can't be used
	before json.RawMessage // the definition that is pinned, where the source offers another one now
}

var _ desk.Tools = (*Registry)(nil)

// Register adds a tool that is compiled in. It calls nothing and reads nothing but its argument.
func (r *Registry) Register(t Tool) error {
	made, err := prepare(t)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.add(made); err != nil {
		return err
	}
	r.announce()
	return nil
}

// prepare makes of a tool what calls need.
func prepare(t Tool) (registered, error) {
	if problem := t.check(); problem != "" {
		return registered{}, fmt.Errorf("%w: %.80q: %s", ErrTool, t.Name, problem)
	}
	t.Schema = bytes.Clone(t.Schema)
	schema, err := compileSchema(t.Schema)
	if err != nil {
		return registered{}, fmt.Errorf("%w: %s: %w", ErrTool, t.Name, err)
	}
	check := schema.check
	if fits := t.fits; fits != nil {
		check = func(args json.RawMessage) error {
			if err := schema.check(args); err != nil {
				return err
			}
			return fits(args)
		}
	}
	if t.Timeout == 0 {
		t.Timeout = defaultTimeout
	}
	hash := ""
	if t.Definition != nil {
		if t.Definition, err = pins.Compact(t.Definition); err == nil {
			hash, err = pins.Hash(t.Definition)
		}
		if err != nil {
			return registered{}, fmt.Errorf("%w: %s: %w", ErrTool, t.Name, err)
		}
	}
	return registered{
		Tool: t, wire: wireName(t.Name), params: wireSchema(t.Schema), hash: hash,
		pinned: desk.Tool{
			Name: t.Name, Description: t.Description, Schema: t.Schema, Hash: t.hash(), Effect: t.Effect, Timeout: t.Timeout,
			Asks: t.Asks, Previews: t.Preview != nil, Claims: t.Claims, Check: check,
		},
	}, nil
}

// add puts a prepared tool in, if nothing has its names already.
func (r *Registry) add(made registered) error {
	if _, taken := r.tools[made.Name]; taken {
		return fmt.Errorf("%w: %s: there is a tool of that name already", ErrTool, made.Name)
	}
	if other, taken := r.wires[made.wire]; taken {
		return fmt.Errorf("%w: %s: the model would see the same name as for %s, because it sees %q; rename one of them",
			ErrTool, made.Name, other, made.wire)
	}
	if r.tools == nil {
		r.tools, r.wires = map[string]registered{}, map[string]string{}
	}
	r.tools[made.Name] = made
	r.wires[made.wire] = made.Name
	return nil
}

// Tool finds a tool as it is known now.
func (r *Registry) Tool(name string) (desk.Tool, bool) {
	t, ok := r.find(name)
	return t.pinned, ok
}

// All lists the tools by name.
func (r *Registry) All() []desk.Tool {
	var out []desk.Tool
	for _, t := range r.sorted() {
		out = append(out, t.pinned)
	}
	return out
}

func (r *Registry) find(name string) (registered, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t, ok := r.tools[name]
	return t, ok
}

// sorted lists the tools by name, so that the model is given the same list each time.
func (r *Registry) sorted() []registered {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.inOrder()
}

func (r *Registry) inOrder() []registered {
	var out []registered
	for _, t := range r.tools {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b registered) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// named finds the tool's name for what the model called it. A name that nobody gave it stays as it is, and is refused as unknown later.
func (r *Registry) named(wire string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if name, ok := r.wires[wire]; ok {
		return name
	}
	return wire
}
