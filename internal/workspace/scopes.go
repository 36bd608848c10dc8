package workspace

import (
	"slices"
	"strings"
)

// kindScope is the family of scopes that a kind of channel belongs to: channels:read and groups:history, for instance.
var kindScope = map[string]string{"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}

// kindsMissing is the scope that a call lacks for the kind of channel that it is about: where several scopes allow a method, each allows it for its own kind.
func (s *Server) kindsMissing(m method, c *call) string {
	if len(s.app.Scopes) == 0 || !strings.HasPrefix(m.scope, "channels:") || !strings.Contains(m.scope, "|") {
		return ""
	}
	first, _, _ := strings.Cut(m.scope, "|")
	_, what, _ := strings.Cut(first, ":")
	var kinds []string
	if ch := s.channels[c.text("channel")]; ch != nil {
		kinds = []string{ch.kind()}
	}
	for _, t := range c.words("types") {
		kinds = append(kinds, channelTypes[t])
	}
	for _, kind := range kinds {
		if scope := kindScope[kind] + ":" + what; kindScope[kind] != "" && !slices.Contains(s.app.Scopes, scope) {
			return scope
		}
	}
	return ""
}

// eventScopes are the scopes without which an app gets no event, by the beginning of its name: alternatives are separated by |. Others need none.
var eventScopes = []struct{ name, scope string }{
	{"message.channels", "channels:history"}, {"message.groups", "groups:history"}, {"message.im", "im:history"}, {"message.mpim", "mpim:history"},
	{"app_mention", "app_mentions:read"}, {"channel_", "channels:read"}, {"group_", "groups:read"}, {"member_", "channels:read|groups:read"},
	{"user_", "users:read"}, {"team_join", "users:read"}, {"subteam_", "usergroups:read"}, {"dnd_", "dnd:read"}, {"reaction_", "reactions:read"},
}

// hears reports whether the app may be sent an event.
func (s *Server) hears(event string) bool {
	if len(s.app.Scopes) == 0 {
		return true
	}
	for _, e := range eventScopes {
		if strings.HasPrefix(event, e.name) {
			return slices.ContainsFunc(strings.Split(e.scope, "|"), func(scope string) bool { return slices.Contains(s.app.Scopes, scope) })
		}
	}
	return true
}
