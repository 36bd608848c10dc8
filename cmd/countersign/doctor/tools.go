package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"countersign/agent/catalog"
	"countersign/cmd/countersign/cli"
	"countersign/config"
)

// tools connects to the policy's MCP servers, and compares their tools with the pins. tools calls no tool.
func (d *Doctor) tools(ctx context.Context, file *config.File, path string) {
	if len(file.Servers) == 0 {
		return
	}
	d.begin("Tools")
	r, err := catalog.Examine(ctx, file, path, cli.ThisBuild().Version)
	if err != nil {
		d.fail(cli.ExitFailed, "the tools can't be examined: "+err.Error(), "")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.Down)) {
		d.fail(cli.ExitFailed, fmt.Sprintf("the server %s can't be used: %s", name, r.Down[name]), "correct the policy's servers."+name+", or start the server")
	}
	for _, server := range file.Servers {
		if r.Down[server.Name] != "" {
			continue
		}
		var open []string
		tools := r.From(server.Name)
		for _, t := range tools {
			if r.Refusal(t) != "" || t.State.Open() {
				open = append(open, t.Tool.Name)
			}
		}
		if len(open) > 0 {
			d.warn(fmt.Sprintf("%s of the server %s not as pinned: %s", cli.Count(len(open), "tool"), server.Name, strings.Join(open, ", ")),
				"countersign tools --source "+server.Name+" says more")
			continue
		}
		d.ok("the server %s lists its tools (%d)", server.Name, len(tools))
	}
}
