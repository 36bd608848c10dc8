package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"countersign/agent"
	"countersign/agent/httptool"
	"countersign/agent/mcp"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
)

// builtIn returns a registry with the agent's built-in tools.
func builtIn() (*agent.Registry, error) {
	r := new(agent.Registry)
	for _, t := range agent.BuiltIns() {
		if err := r.Register(t); err != nil {
			return nil, fmt.Errorf("built-in tools: %w", err)
		}
	}
	return r, nil
}

// Offline returns the tools of a policy that are known without a connection to a server. These are built-in tools,
// tools that the policy declares, and tools that the lock file pins. The parameter path is the path of the policy file.
// An empty path means a built-in policy, which has no lock file. Errors in the policy's sources are [yamldoc.Problems].
// An error in the lock file is a [LockError].
func Offline(file *config.File, path string) (*agent.Registry, error) {
	lock, err := ReadLock(path)
	if err != nil {
		return nil, err
	}
	return OfflineWith(file, lock, pins.Beside(path))
}

// OfflineWith is like Offline, with the pins as a parameter. The parameter lockName is the name of the lock file in
// errors.
func OfflineWith(file *config.File, lock pins.Lock, lockName string) (*agent.Registry, error) {
	r, err := builtIn()
	if err != nil {
		return nil, err
	}
	if errs := register(r, file, declare(file, lock, nil)).Errors(); len(errs) > 0 {
		return nil, errs
	}
	client := mcp.Open(mcp.Config{Servers: file.Servers}) // never run
	for _, s := range file.Servers {
		if err := errors.Join(pin(r, client, s.Name, lock)...); err != nil {
			return nil, &LockError{fmt.Errorf("%s can't be used: %w. Pin the tools again with countersign tools pin", lockName, err)}
		}
	}
	return r, nil
}

// Described converts tools to the form that package check uses.
func Described(tools *agent.Registry) []check.Tool {
	out := []check.Tool{}
	for _, t := range tools.All() {
		out = append(out, check.Tool{Name: t.Name, Schema: t.Schema, Source: t.Source, Effect: t.Effect})
	}
	return out
}

// httpSource is the source of the tools in the policy's http section. A server's name can't have spaces, so no server
// has this name.
const httpSource = "the policy's http section"

// apiPrefix is the prefix of the source name of an OpenAPI file's tools. The rest of the source name is the file's
// name in the policy. No server's name begins with this prefix.
const apiPrefix = "openapi."

// declared has the tools of a source that needs no server. The source is the http section of the policy file, or an
// OpenAPI file.
type declared struct {
	source string
	tools  []agent.Tool
	pinned []agent.Tool
	own    bool // the policy's author wrote the definitions, so the tools need no pins
	found  yamldoc.Problems
}

// declare creates the tools of the policy's http section and of its OpenAPI files. If the parameter lookup is nil, the
// tools can be inspected, but can't run.
func declare(file *config.File, lock pins.Lock, lookup httptool.Lookup) []declared {
	tools, faults := httptool.Tools(file.HTTP, lookup)
	out := []declared{{source: httpSource, tools: tools, own: true, found: placed(file, httpSource, faults)}}
	for _, api := range file.OpenAPI {
		tools, faults := httptool.OpenAPI(api, lookup)
		source := apiPrefix + api.Name
		out = append(out, declared{source: source, tools: tools, pinned: pinnedOf(tools, lock.Of(source)), found: placed(file, source, faults)})
	}
	return out
}

// register registers declared tools. If the http section has errors, register omits all tools of the section.
// register returns the problems of all sources.
func register(r *agent.Registry, file *config.File, all []declared) yamldoc.Problems {
	var found yamldoc.Problems
	for _, d := range all {
		found = append(found, d.found...)
		if d.own {
			if len(d.found.Errors()) > 0 {
				continue
			}
			r.Trust(d.source)
		} else {
			found = append(found, placed(file, d.source, r.Pin(d.source, d.pinned))...)
		}
		found = append(found, placed(file, d.source, r.Replace(d.source, d.tools))...)
	}
	return found
}

// faults returns the errors of all sources, without the warnings.
func faults(all []declared) yamldoc.Problems {
	var found yamldoc.Problems
	for _, d := range all {
		found = append(found, d.found.Errors()...)
	}
	return found
}

// pinnedOf returns the pinned tools of a source that needs no server. For each pin, the result has the pinned
// definition in the offered tool of the same name, or in a placeholder if the source does not offer the tool.
func pinnedOf(live []agent.Tool, pinned []pins.Pin) []agent.Tool {
	var out []agent.Tool
	for _, p := range pinned {
		t := agent.Tool{Name: p.Tool, Description: "It is pinned, and not offered any more.", Schema: json.RawMessage(`{"type":"object"}`), Effect: approvers.Unprotected}
		if i := slices.IndexFunc(live, func(l agent.Tool) bool { return l.Name == p.Tool }); i >= 0 {
			t = live[i]
		}
		t.Definition = p.Definition
		out = append(out, t)
	}
	return out
}

// pin registers the pinned tools of a server.
func pin(r *agent.Registry, client *mcp.Client, server string, lock pins.Lock) []error {
	var errs []error
	var pinned []agent.Tool
	for _, p := range lock.Of(server) {
		t, err := client.Tool(server, p.Definition)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pinned = append(pinned, t)
	}
	return append(errs, r.Pin(server, pinned)...)
}

// Findings returns warnings about the policy's OpenAPI files, such as omitted operations, with the position in the
// policy file.
func Findings(file *config.File) yamldoc.Problems {
	var out yamldoc.Problems
	for _, api := range file.OpenAPI {
		out = append(out, apiFindings(file, api).Warnings()...)
	}
	return out
}

// SchemaFindings returns warnings about the schemas of tools, such as a pattern that is not checked, with the position of
// the tool or of its source in the policy file.
func SchemaFindings(file *config.File, tools *agent.Registry) yamldoc.Problems {
	var out yamldoc.Problems
	all, _ := tools.Status()
	for _, t := range all {
		path := "servers." + t.Tool.Source
		switch {
		case t.Tool.Source == "":
			path = "tools." + t.Tool.Name
		case t.Tool.Source == httpSource:
			path = "http." + t.Tool.Name
		case strings.HasPrefix(t.Tool.Source, apiPrefix):
			path = t.Tool.Source
		}
		for _, note := range t.Notes {
			out = append(out, file.Finding(yamldoc.Warning, path, t.Tool.Name+": "+note, ""))
		}
	}
	return out
}

// apiFindings returns the errors and warnings about one OpenAPI file.
func apiFindings(file *config.File, api config.OpenAPI) yamldoc.Problems {
	_, faults := httptool.OpenAPI(api, nil)
	return placed(file, apiPrefix+api.Name, faults)
}

// placed adds positions in the policy file to the faults of a source.
func placed(file *config.File, source string, faults []error) yamldoc.Problems {
	var out yamldoc.Problems
	for _, fault := range faults {
		p := &httptool.Problem{Path: source, Message: fault.Error()}
		errors.As(fault, &p)
		severity := yamldoc.Error
		if p.Warning {
			severity = yamldoc.Warning
		}
		out = append(out, file.Finding(severity, p.Path, p.Message, p.Hint))
	}
	return out
}
