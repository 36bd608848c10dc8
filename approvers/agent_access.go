package approvers

import (
	"slices"
	"strings"
)

// ChannelRef is a channel or direct message where somebody speaks to the bot.
type ChannelRef struct {
	Channel string // id
	Name    string // without the #; empty in a direct message
	DM      bool
}

// AgentFor returns the agent that answers in a channel. This agent is the first one in the policy file that names the
// channel or all channels. In a direct message, AgentFor returns the first agent that accepts direct messages.
func (p *Policy) AgentFor(at ChannelRef) (Agent, bool) {
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

func (a Agent) answersIn(at ChannelRef) bool {
	return slices.ContainsFunc(a.Channels, func(c string) bool {
		return c == "*" || c == at.Channel || (at.Name != "" && strings.TrimPrefix(c, "#") == at.Name)
	})
}

// MayAsk returns the reason why a person may not ask the agent, or nil.
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

// Offers reports whether the agent offers the tool to its model.
func (a Agent) Offers(tool string) bool {
	if tool == ToolReadResult && len(a.Tools) > 0 {
		return true // read_result only reads more of the result of a tool that the agent offers
	}
	return slices.Contains(a.Tools, "*") || slices.Contains(a.Tools, tool)
}
