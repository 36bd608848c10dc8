package approvers

import (
	"slices"
	"strings"
)

// Place is where somebody speaks to the bot.
type Place struct {
	Channel string // id
	Name    string // without the #; empty in a direct message
	DM      bool
}

// AgentFor finds the agent that answers at a place: the first in file order whose channels name it. In a
// direct message it is the first agent that takes them.
func (p *Policy) AgentFor(at Place) (Agent, bool) {
	for _, a := range p.Agents {
		if at.DM && !a.NoDM {
			return a, true
		}
		if !at.DM && a.answersIn(at) {
			return a, true
		}
	}
	return Agent{}, false
}

func (a Agent) answersIn(at Place) bool {
	return slices.ContainsFunc(a.Channels, func(c string) bool {
		return c == "*" || c == at.Channel || (at.Name != "" && strings.TrimPrefix(c, "#") == at.Name)
	})
}

// MayAsk says why a person may not ask the agent, or nil.
func (a Agent) MayAsk(who Identity) *Denied {
	code := who.trouble()
	if code == DeniedGuest && a.AllowGuests {
		code = ""
	}
	if code != "" {
		return &Denied{Code: code}
	}
	return nil
}

// Offers reports whether the agent's model is offered the tool.
func (a Agent) Offers(tool string) bool {
	if tool == ToolReadResult && len(a.Tools) > 0 {
		return true // it only goes on with what a tool that is offered answered
	}
	return slices.Contains(a.Tools, "*") || slices.Contains(a.Tools, tool)
}
