package approvers

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Client is another agent. The policy allows the agent to ask about calls of tools.
type Client struct {
	Name     string
	Title    string
	Token    string // SHA-256 of its token, in hex; empty: it has none
	OAuth    *OAuth // which tokens of an authorization server are its; nil: none
	Agent    string // the agent whose tools, overrides, mode and budgets hold for it
	Owner    string // id of the Slack user who answers for it
	Tools    []string
	Audience string // the audience of its receipts
	Webhook  *Webhook

	MaxPending     int           // requests that may wait for people at one time
	Requests       Limit         // requests that may be put before people; zero: no limit
	RejectionHolds time.Duration // how long a rejection also holds for identical calls; zero: not at all
	OutcomeWithin  time.Duration // how long a run by the client may take before people are asked what happened
	Hold           time.Duration // how long a call over MCP is held before it is answered without a decision

	// ActsFor is the Slack user whom the client represents. The token of the client's request proves this. If the
	// client acts for no user, ActsFor is empty. Until is the time at which the token expires. If the token never
	// expires, Until is zero. The policy does not set these two fields.
	ActsFor string
	Until   time.Time
}

// OAuth says which tokens of an authorization server belong to a client.
type OAuth struct {
	Issuer    string
	Subject   string   // sub of the client's own tokens, and of act in the tokens of people for whom it acts
	Person    string   // the claim with the Slack user id of such a person; empty: the client acts for nobody
	Algorithm string   // by which all of its tokens are signed
	Allow     []string // permitted private networks and hosts of the issuer
}

// Same reports whether two clients have the same name and the same credentials. If a client has no credentials, Same
// returns false.
func (c Client) Same(o Client) bool {
	if c.Name != o.Name || c.Token != o.Token || (c.OAuth == nil) != (o.OAuth == nil) {
		return false
	}
	if c.OAuth == nil {
		return c.Token != ""
	}
	a, b := *c.OAuth, *o.OAuth
	return a.Issuer == b.Issuer && a.Subject == b.Subject && a.Person == b.Person && a.Algorithm == b.Algorithm && slices.Equal(a.Allow, b.Allow)
}

// Owns reports whether a request of the client belongs to the person whom the client represents now. If a token proved
// that the client asked for a person, the request belongs to this person only. It does not belong to another person or
// to the client itself.
func (c Client) Owns(asked Caller) bool {
	if c.ActsFor == "" {
		return !asked.Proven
	}
	return asked.Proven && asked.For.User() == c.ActsFor
}

// Webhook is the address for notifications to a client about its changed requests.
type Webhook struct {
	URL     string
	Secrets []string // the names of environment variables, each with a secret; every message is signed with all of them
	Allow   []string // permitted private networks and hosts
}

// Target identifies a webhook. If the policy file changes the webhook, the target is another one.
func (w *Webhook) Target() string {
	b := appendPart(nil, "countersign/webhook/v1")
	for _, part := range slices.Concat([]string{w.URL}, w.Secrets, []string{""}, w.Allow) {
		b = appendPart(b, part)
	}
	return SumOf(b).String()
}

// Client finds a client by name.
func (p *Policy) Client(name string) (Client, bool) {
	i := slices.IndexFunc(p.Clients, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return p.Clients[i], true
}

// ClientOf finds the client that has a token. The function compares only the hashes, so the duration of the search
// reveals nothing about the tokens.
func (p *Policy) ClientOf(token string) (Client, bool) {
	sum := sha256.Sum256([]byte(token))
	hash := hex.EncodeToString(sum[:])
	i := slices.IndexFunc(p.Clients, func(c Client) bool { return c.Token == hash })
	if i < 0 {
		return Client{}, false
	}
	return p.Clients[i], true
}

// MayUse reports whether the client may ask for calls of a tool. Built-in tools belong to a conversation in Slack, so
// no client may ask for their calls.
func (c Client) MayUse(p *Policy, tool string) bool {
	a, ok := p.Agent(c.Agent)
	_, builtIn := BuiltIn(tool)
	return ok && !builtIn && a.Offers(tool) && (slices.Contains(c.Tools, "*") || slices.Contains(c.Tools, tool))
}

// CallerMode says who runs the tool after the approval.
type CallerMode string

// The modes.
const (
	ExecuteMode CallerMode = "execute" // Countersign
	DecideMode  CallerMode = "decide"  // the caller
)

// Caller is the client that asked for a call, with the client's data at that time.
type Caller struct {
	Name   string     `json:"name"`
	Title  string     `json:"title"`
	Owner  PersonID   `json:"owner"`
	For    PersonID   `json:"for,omitempty"`    // the person for whom it acts; empty: it names nobody
	Proven bool       `json:"proven,omitempty"` // it is proven that it acts for this person
	Mode   CallerMode `json:"mode"`
	Edits  bool       `json:"edits,omitempty"`  // approvers may change the arguments
	Starts bool       `json:"starts,omitempty"` // Countersign runs the call, but after an approval only once the caller asks for its result
}

// The id under which a caller acts begins with callerPrefix.
const callerPrefix = "caller:"

// CallerID returns the id under which a caller acts.
func CallerID(name string) PersonID { return PersonID(callerPrefix + name) }

// Caller returns the name in the id of a caller, or "" for other ids.
func (p PersonID) Caller() string {
	name, ok := strings.CutPrefix(string(p), callerPrefix)
	if !ok {
		return ""
	}
	return name
}

// Identity returns the identity with which the caller acts on its own requests.
func (c *Caller) Identity() Identity { return Identity{ID: CallerID(c.Name), Name: c.Title} }

// Decides reports whether the caller itself runs the tool.
func (c *Caller) Decides() bool { return c != nil && c.Mode == DecideMode }

// Begins reports whether an approved call begins only when the caller claims the call or asks for its result.
func (c *Caller) Begins() bool { return c.Decides() || c != nil && c.Starts }

// Scope identifies the calls of a caller for one person. It is used where other calls are identified by their
// conversation.
func (c *Caller) Scope() string {
	if c.For == "" {
		return callerPrefix + c.Name
	}
	return callerPrefix + c.Name + "/" + string(c.For)
}

// IsCallerScope reports whether s identifies the calls of a caller, and not a conversation.
func IsCallerScope(s string) bool { return strings.HasPrefix(s, callerPrefix) }

// Requesters returns the requesters of a call: the caller, the caller's owner, and the person whom the caller provably
// represents.
func (c *Caller) Requesters() []PersonID {
	out := []PersonID{CallerID(c.Name), c.Owner}
	if c.Proven && !slices.Contains(out, c.For) {
		out = append(out, c.For)
	}
	return out
}

// claimed returns the person whom the caller claims to represent, without proof. The claimed person may not decide the
// request, and gets no rights from the claim.
func (c *Caller) claimed() []PersonID {
	if c == nil || c.For == "" || c.Proven {
		return nil
	}
	return []PersonID{c.For}
}

// bars reports whether a plan's requesters include a person. A caller names people by the ids of this workspace, so
// bars also compares these ids.
func bars(r Request, who Identity) bool {
	return slices.ContainsFunc(r.Plan.Requesters, func(p PersonID) bool {
		return p == who.ID || r.Facts.Caller != nil && p.Caller() == "" && (p.User() == who.ID.User() || who.Local != "" && p.User() == who.Local)
	})
}

// UndeclaredHash returns a hash in place of the definition of a tool that only its caller knows.
func UndeclaredHash(tool string) string {
	return SumOf(appendPart(appendPart(nil, "countersign/undeclared-tool/v1"), tool)).String()
}
