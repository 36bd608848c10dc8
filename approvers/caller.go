package approvers

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Client is an agent outside of Countersign that may submit tool calls. The policy lists the clients.
type Client struct {
	Name     string
	Title    string
	Token    string // SHA-256 of the client's token, in hex; empty: the client has no such token
	OAuth    *OAuth // which tokens of an authorization server the client can use; nil: none
	Agent    string // the agent whose tools, overrides, mode and budgets apply to the client
	Owner    string // id of the Slack user who is responsible for the client
	Tools    []string
	Audience string // the audience of the client's receipts
	Webhook  *Webhook

	MaxPending     int           // how many of the client's requests may wait for a decision at the same time
	Requests       Limit         // how many of the client's requests may be shown to people; zero: no limit
	RejectionHolds time.Duration // for how long after a rejection identical calls are rejected too; zero: not at all
	OutcomeWithin  time.Duration // when a client runs a tool itself: the time within which the client must report the outcome; then people are asked
	Hold           time.Duration // how long a call over MCP waits for a decision; after this time, the client is told that there is no decision yet

	// ActsFor is the Slack user whom the client represents. The token of the client's request proves that the client
	// represents this user. If the client represents nobody, ActsFor is empty. Until is the time at which the token
	// expires. If the token never expires, Until is zero. ActsFor and Until do not come from the policy.
	ActsFor string
	Until   time.Time
}

// OAuth says which tokens of an authorization server belong to a client.
type OAuth struct {
	Issuer string
	// Subject is the client's name at the issuer: the claim sub in the client's own tokens, and act.sub in the tokens of
	// people for whom the client acts. If Subject is empty, the client has no such tokens.
	Subject string
	// ClientID is the claim client_id or azp in the tokens of people who have signed in with the client. If ClientID is
	// empty, nobody can sign in.
	ClientID  string
	Person    string   // the claim with the Slack user id of the person; empty: the client acts for nobody
	Algorithm string   // the algorithm with which all of the client's tokens are signed
	Allow     []string // private networks and hosts at which the bot may reach the issuer
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
	return a.Issuer == b.Issuer && a.Subject == b.Subject && a.ClientID == b.ClientID && a.Person == b.Person && a.Algorithm == b.Algorithm && slices.Equal(a.Allow, b.Allow)
}

// Owns reports whether a request belongs to the person whom the client represents at present. If the client represents
// nobody, Owns reports whether the request belongs to the client itself. Owns does not check that the request came from
// this client. If a token proved that the client asked on behalf of a person, the request belongs to this person, and
// not to the client. If the record of this person may be lost, the request belongs to nobody.
func (c Client) Owns(asked Caller) bool {
	if asked.PersonLost && c.OAuth != nil && c.OAuth.Person != "" {
		return false
	}
	if c.ActsFor == "" {
		return !asked.Proven
	}
	return asked.Proven && asked.For.User() == c.ActsFor
}

// Webhook is the address to which the bot sends notifications about changes of a client's requests.
type Webhook struct {
	URL     string
	Secrets []string // the names of environment variables, each with a secret; every message is signed with all of them
	Allow   []string // private networks and hosts at which the bot may reach the webhook
}

// Target returns an id of the webhook's configuration. The id changes if the policy file changes the webhook.
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

// ClientOf finds the client that has a token. ClientOf compares only hashes of tokens, so the duration of the search
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

// MayUse reports whether the client may ask for calls to a tool. Built-in tools belong to a conversation in Slack, so
// no client may ask for calls to built-in tools.
func (c Client) MayUse(p *Policy, tool string) bool {
	a, ok := p.Agent(c.Agent)
	_, builtIn := BuiltIn(tool)
	return ok && !builtIn && a.Offers(tool) && (slices.Contains(c.Tools, "*") || slices.Contains(c.Tools, tool))
}

// CallerMode says who runs the tool after the approval.
type CallerMode string

// The modes.
const (
	ExecuteMode CallerMode = "execute" // Countersign runs the tool
	DecideMode  CallerMode = "decide"  // the caller runs the tool
)

// Caller is the client that asked for a call, with the client's data at that time.
type Caller struct {
	Name   string     `json:"name"`
	Title  string     `json:"title"`
	Owner  PersonID   `json:"owner"`
	For    PersonID   `json:"for,omitempty"`    // the person for whom the caller acts; empty: the caller names nobody
	Proven bool       `json:"proven,omitempty"` // a token proved that the caller acts for this person
	Mode   CallerMode `json:"mode"`
	Edits  bool       `json:"edits,omitempty"`  // approvers may change the arguments
	Starts bool       `json:"starts,omitempty"` // Countersign runs the call; an approved call runs only when the caller asks for the result

	PersonLost bool `json:"person_lost,omitempty"` // the store lost the record that shows for which person the caller acted
}

// callerPrefix is the beginning of the id under which a caller acts.
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

// Begins reports whether an approved call waits for its caller: the call begins only when the caller claims it or asks
// for its result.
func (c *Caller) Begins() bool { return c.Decides() || c != nil && c.Starts }

// Scope identifies all calls that a caller makes for one person. Calls of Countersign's own agents are identified by
// their conversation instead.
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

// claimed returns the person whom the caller claims to represent, if no token proves the claim. The claimed person may
// not decide the request, and gains no rights by the claim.
func (c *Caller) claimed() []PersonID {
	if c == nil || c.For == "" || c.Proven {
		return nil
	}
	return []PersonID{c.For}
}

// Among reports whether a person is one of the requesters. A caller names people by their user ids in this workspace, so
// the function also compares these user ids if the requesters are those of a caller.
func (who Identity) Among(requesters []PersonID, ofCaller bool) bool {
	return slices.ContainsFunc(requesters, func(p PersonID) bool {
		return p == who.ID || ofCaller && p.Caller() == "" && who.HasUser(p.User())
	})
}

// bars reports whether a person is one of the requesters in the request's plan.
func bars(r Request, who Identity) bool { return who.Among(r.Plan.Requesters, r.Facts.Caller != nil) }

// asked reports whether a person asked for the call of a request.
func asked(r Request, who Identity) bool {
	return who.Among(r.Facts.Requesters, r.Facts.Caller != nil)
}

// UndeclaredHash returns the hash that stands for the definition of a tool which only its caller knows.
func UndeclaredHash(tool string) string {
	return SumOf(appendPart(appendPart(nil, "countersign/undeclared-tool/v1"), tool)).String()
}
