package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/approvers/workflow"
)

// Registry holds the callable tools. The zero Registry is empty and ready for concurrent use.
//
// A tool with a Definition comes from an external source, which can change the tool at any time. The tool is blocked if
// nobody has pinned the source's definition (see [Registry.Pin]), or if the definition differs from the pinned one.
// Spaces between JSON tokens make no difference. The registry has the reason why a tool is blocked. The tools of a
// trusted source need no pins: see [Registry.Trust].
type Registry struct {
	mu         sync.RWMutex
	tools      map[string]registered
	wires      map[string]string // by the name that the model receives: the tool's name
	sources    map[string]*source
	version    uint64
	print      string        // cached Fingerprint; empty: not computed yet
	nextChange chan struct{} // closed on the next change; nil: no goroutine waits
	changed    chan struct{} // the channel that Changed returns
}

// registered is a tool with the values that are derived at its registration.
type registered struct {
	Tool
	pinned workflow.Tool
	source string          // name of the tool's source; empty: the tool is compiled in
	wire   string          // tool name in the form that the model's API accepts
	params json.RawMessage // schema in the form that the model's API requires
	hash   string          // hash of the definition; empty: the tool needs no pin
	state  pins.State
	fault  error           // why the source's definition can't be used
	before json.RawMessage // the pinned definition, if the source now offers another one
	notes  []string        // see Status.Notes
}

var _ workflow.Tools = (*Registry)(nil)

// Register adds a compiled-in tool. Register does not call the tool's functions.
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

// prepare validates a tool and derives the other fields of registered.
func prepare(t Tool) (registered, error) {
	if problem := t.check(); problem != "" {
		return registered{}, fmt.Errorf("%w: %.80q: %s", ErrTool, t.Name, problem)
	}
	t.Schema = bytes.Clone(t.Schema)
	checked, patterns := t.Schema, []string(nil)
	if t.Definition != nil {
		checked, patterns = WithoutPatterns(t.Schema)
	}
	schema, err := compileSchema(checked)
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
		if err == nil { // the schema is a part of the definition, and the definition in the lock file has no spaces
			t.Schema, err = pins.Compact(t.Schema)
		}
		if err != nil {
			return registered{}, fmt.Errorf("%w: %s: %w", ErrTool, t.Name, err)
		}
	}
	return registered{
		Tool: t, wire: wireName(t.Name), params: wireSchema(t.Schema), hash: hash, notes: schemaNotes(t.Schema, patterns),
		pinned: workflow.Tool{
			Name: t.Name, Description: t.Description, Schema: t.Schema, Hash: t.hash(), Effect: t.Effect, Timeout: t.Timeout,
			Asks: t.Asks, Previews: t.Preview != nil, Claims: t.Claims, Check: check,
		},
	}, nil
}

// add adds a prepared tool, or returns an error if one of the tool's names is taken.
func (r *Registry) add(made registered) error {
	if _, taken := r.tools[made.Name]; taken {
		return fmt.Errorf("%w: %s: there is a tool of that name already", ErrTool, made.Name)
	}
	if other, taken := r.wires[made.wire]; taken {
		return fmt.Errorf("%w: %s: the model would see this tool and %s under the same name, %q; rename one of them",
			ErrTool, made.Name, other, made.wire)
	}
	if r.tools == nil {
		r.tools, r.wires = map[string]registered{}, map[string]string{}
	}
	r.tools[made.Name] = made
	r.wires[made.wire] = made.Name
	return nil
}

// Tool returns the current definition of a tool.
func (r *Registry) Tool(name string) (workflow.Tool, bool) {
	t, ok := r.find(name)
	return t.pinned, ok
}

// All lists the tools by name.
func (r *Registry) All() []workflow.Tool {
	var out []workflow.Tool
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

// sorted lists the tools in the order of their names. A fixed order keeps the model's input the same in every
// request.
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

// Offered are the tools that a model may call.
type Offered []registered

// Offered returns the tools that an agent's model may call under the policy.
func (r *Registry) Offered(a approvers.Agent, p *approvers.Policy) Offered {
	var out Offered
	for _, t := range r.sorted() {
		if a.Offers(t.Name) && t.pinned.Callable(p) {
			out = append(out, t)
		}
	}
	return out
}

// Tokens estimates the number of tokens of the tools' definitions.
func (o Offered) Tokens() int { return toolsTokens(o) }

// named converts a name that the model wrote to the name of the tool. An unknown name is returned unchanged. The
// workflow later refuses the call.
func (r *Registry) named(wire string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if name, ok := r.wires[wire]; ok {
		return name
	}
	return wire
}
