package agent

import (
	"fmt"
	"maps"
	"slices"

	"countersign/agent/pins"
)

// source has the tools of one tool source.
type source struct {
	trusted bool                  // the tools need no pins
	pinned  map[string]registered // tools in the definitions that the operator pinned
	live    map[string]registered // tools in the definitions that the source offers
	faults  map[string]error      // the errors of offered tools that can't be registered
	heard   bool                  // the source has listed its tools at least once since the start
}

// Pin sets the pinned tools of a source from the lock file, and replaces earlier pins. Until the source lists its
// tools, the registry uses the pinned definitions. The pinned tools need no Run function, because a run waits until the
// source has listed its tools.
func (r *Registry) Pin(name string, pinned []Tool) []error {
	var errs []error
	made := map[string]registered{}
	for _, t := range pinned {
		var want string
		t.Run, t.Asks = r.waits(t.Name, &want), false
		m, err := prepare(t)
		want = m.pinned.Hash
		if err == nil && m.hash == "" {
			err = fmt.Errorf("%w: %s: it has no definition that could be pinned", ErrTool, t.Name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		made[t.Name] = m
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.source(name).pinned = made
	return append(errs, r.join(name)...)
}

// Replace sets the list of tools that a source offers. Tools that can't be registered are left out. For each of these
// tools, Replace returns an error that wraps [ErrTool]. Callers must not call Replace because a source is temporarily
// unreachable: its tools stay registered, and their runs report that the source is unreachable.
func (r *Registry) Replace(name string, tools []Tool) []error {
	var errs []error
	made, faults := map[string]registered{}, map[string]error{}
	for _, t := range tools {
		m, err := prepare(t)
		if _, twice := made[t.Name]; err == nil && twice {
			err = fmt.Errorf("%w: %s: its source offers it twice", ErrTool, t.Name)
		}
		if err != nil {
			errs, faults[t.Name] = append(errs, err), err
			continue
		}
		made[t.Name] = m
	}
	for t := range faults {
		delete(made, t) // if two tools have the same name, both are left out
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.source(name)
	s.live, s.faults, s.heard = made, faults, true
	return append(errs, r.join(name)...)
}

// Trust exempts a source from pins. Use Trust only for sources that are part of this program.
func (r *Registry) Trust(name string) []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.source(name).trusted = true
	return r.join(name)
}

// Remove drops a source with its tools and pins.
func (r *Registry) Remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave(name)
	delete(r.sources, name)
	r.announce()
}

// Sources lists the names of the known sources, sorted.
func (r *Registry) Sources() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.sources))
}

func (r *Registry) source(name string) *source {
	if r.sources == nil {
		r.sources = map[string]*source{}
	}
	if r.sources[name] == nil {
		r.sources[name] = &source{}
	}
	return r.sources[name]
}

// leave removes a source's tools from the registry.
func (r *Registry) leave(name string) {
	for tool, t := range r.tools {
		if t.source == name {
			delete(r.tools, tool)
			delete(r.wires, t.wire)
		}
	}
}

// join adds a source's tools to the registry. Each tool is compared with its pin.
func (r *Registry) join(name string) []error {
	var errs []error
	r.leave(name)
	tools := r.sources[name].joined()
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		t := tools[tool]
		t.source = name
		t.pinned.Source = name
		if err := r.add(t); err != nil {
			errs = append(errs, err)
		}
	}
	r.announce()
	return errs
}

// joined compares each offered tool with its pin, and returns the tools for the registry.
func (s *source) joined() map[string]registered {
	out := map[string]registered{}
	for name, t := range s.live {
		if t.hash != "" && !s.trusted {
			t.state = pins.New
			t.pinned.Blocked = "nobody has pinned its definition yet"
		}
		if pin, ok := s.pinned[name]; ok && t.state == pins.New {
			t.state, t.pinned.Blocked = pins.Same, ""
			if pin.hash != t.hash {
				t.state, t.before = pins.Drifted, pin.Definition
				t.pinned.Blocked = "its definition changed since it was pinned"
			}
		}
		out[name] = t
	}
	for name, pin := range s.pinned {
		if _, offered := s.live[name]; offered {
			continue
		}
		pin.state = pins.Waiting
		switch {
		case s.faults[name] != nil:
			pin.state, pin.pinned.Blocked = pins.Drifted, "its definition changed since it was pinned, to one that can't be used"
			pin.fault = s.faults[name]
		case s.heard:
			pin.state, pin.pinned.Blocked = pins.Gone, "its source does not offer it any more, or not as a tool that can be used"
		}
		out[name] = pin
	}
	return out
}
