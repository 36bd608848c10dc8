package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"countersign/approvers/desk"
)

// Registry holds the tools that can be called. The zero Registry is empty and ready for use, by many goroutines.
type Registry struct {
	mu    sync.RWMutex
	tools map[string]registered
	wires map[string]string // the name on the wire → the tool's name
}

// registered is a tool with what was made of it when it was registered.
type registered struct {
	Tool
	pinned desk.Tool
	wire   string          // the name as the model's interface permits it
	params json.RawMessage // the schema as the model's interface wants it
}

var _ desk.Tools = (*Registry)(nil)

// Register adds a tool. It calls nothing and reads nothing but its argument.
func (r *Registry) Register(t Tool) error {
	if problem := t.check(); problem != "" {
		return fmt.Errorf("%w: %.80q: %s", ErrTool, t.Name, problem)
	}
	t.Schema = bytes.Clone(t.Schema)
	schema, err := compileSchema(t.Schema)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrTool, t.Name, err)
	}
	if t.Timeout == 0 {
		t.Timeout = defaultTimeout
	}
	made := registered{
		Tool: t, wire: wireName(t.Name), params: wireSchema(t.Schema),
		pinned: desk.Tool{
			Name: t.Name, Description: t.Description, Schema: t.Schema, Hash: t.hash(), Effect: t.Effect, Timeout: t.Timeout,
			Asks: t.Asks, Check: schema.check,
		},
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.tools[t.Name]; taken {
		return fmt.Errorf("%w: %s: there is a tool of that name already", ErrTool, t.Name)
	}
	if other, taken := r.wires[made.wire]; taken {
		return fmt.Errorf("%w: %s: the model would see the same name as for %s, because it sees %q; rename one of them",
			ErrTool, t.Name, other, made.wire)
	}
	if r.tools == nil {
		r.tools, r.wires = map[string]registered{}, map[string]string{}
	}
	r.tools[t.Name] = made
	r.wires[made.wire] = t.Name
	return nil
}

// Tool finds a tool's pinned definition.
func (r *Registry) Tool(name string) (desk.Tool, bool) {
	t, ok := r.find(name)
	return t.pinned, ok
}

// All lists the pinned definitions by name.
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
