package scenario

import (
	"context"
	"regexp"
)

// pauseLines has the lines that pause everything. A person types the slash command, and then clicks the button that the
// command shows.
var pauseLines = []line{
	{"NAME pauses: an incident", regexp.MustCompile(`^(\w+) (pauses|tries to pause): (.+)$`), func(m []string) (action, error) {
		do := click{who: m[1], label: "Pause everything", tries: m[2] != "pauses"}
		return happens(func(ctx context.Context, p *player) error {
			if err := p.command(ctx, do.who, "a DM", "/countersign pause "+m[3]); err != nil {
				return err
			}
			if err := p.settle(ctx); err != nil {
				return err
			}
			return p.click(ctx, do)
		})
	}},
}
