package config

import (
	"regexp"
	"time"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// Defaults and limits of a client.
const (
	clientPending        = 100
	mostClientPending    = 1000
	clientRejectionHolds = 10 * time.Minute
	clientOutcomeWithin  = time.Hour
	clientHold           = 45 * time.Second
	longestClientHold    = time.Hour
)

// tokenHash is the form in which the policy has a client's token.
var tokenHash = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// readClient reads one client. tokens has the clients that were read before, by the hash of their token.
func readClient(e yamldoc.Entry, tokens map[string]string) approvers.Client {
	c := approvers.Client{
		Name: e.Key, Title: e.Key, Audience: e.Key, MaxPending: clientPending, RejectionHolds: clientRejectionHolds, OutcomeWithin: clientOutcomeWithin, Hold: clientHold,
	}
	if !roleName.MatchString(e.Key) {
		e.Wrong("no client can be called that", "a name has 1 to 64 letters, digits, _ and -")
	}
	f := e.Value.Fields("title", "token", "agent", "owner", "tools", "audience", "caps", "rejection_holds", "outcome_within", "hold")
	for _, need := range [][2]string{
		{"token", `token: "sha256:…"; countersign client add makes a token, and prints this line`},
		{"agent", "agent: and the name of an agent, whose tools, overrides, mode and budgets hold for the client"},
		{"owner", "owner: and the Slack user id of the person who answers for the client"},
		{"tools", `which tools the client may ask for: tools: [issue_refund], or ["*"] for every tool of its agent`},
	} {
		if e.Value.IsMapping() && !f.Has(need[0]) {
			e.Wrong(need[0]+" is missing", "add "+need[1])
		}
	}
	if text, ok := f.Free("title", "the client's name for people"); ok {
		c.Title = text
	}
	if v, ok := f["token"]; ok {
		c.Token = readTokenHash(v, e.Key, tokens)
	}
	if text, ok := f.Free("agent", "the name of an agent"); ok {
		c.Agent = text
	}
	if v, ok := f["owner"]; ok {
		if text, ok := v.Free("a Slack user id such as U0123ABCD"); ok && userID.MatchString(text) {
			c.Owner = text
		} else if ok {
			v.Wrong(yamldoc.Quote(text)+" is not a Slack user id", "write an id such as U0123ABCD, which Slack shows in the person's profile")
		}
	}
	if v, ok := f["tools"]; ok {
		c.Tools = v.Texts(`[issue_refund], or ["*"] for every tool of its agent`, `a tool's name, or "*"`)
	}
	if text, ok := f.Free("audience", "the name of the resource for which receipts are made"); ok {
		c.Audience = text
	}
	if v, ok := f["caps"]; ok {
		caps := v.Fields("pending", "requests")
		caps.Count("pending", &c.MaxPending, mostClientPending)
		if l, ok := caps["requests"]; ok {
			c.Requests, _ = readLimitOr(l, "would let the client ask for nothing", "leave it out for no cap")
		}
		if v.IsMapping() && len(caps) == 0 {
			v.Wrong("bounds nothing", "add pending: 20 or requests: 60/h")
		}
	}
	if v, ok := f["rejection_holds"]; ok {
		if v.Is("never") {
			c.RejectionHolds = 0
		} else if d, ok := v.DurationOr(", or never"); ok {
			c.RejectionHolds = d
		}
	}
	f.Duration("outcome_within", &c.OutcomeWithin)
	f.Duration("hold", &c.Hold)
	if c.Hold > longestClientHold {
		f["hold"].Wrong("is too long", "a call is held for an hour at most: hold: 1h")
	}
	return c
}

// readTokenHash reads the hash of a client's token. Two clients with one token could not be told apart.
func readTokenHash(v yamldoc.Value, client string, tokens map[string]string) string {
	text, ok := v.Free(`the hash of a token: "sha256:…"`)
	if !ok {
		return ""
	}
	if !tokenHash.MatchString(text) {
		v.Wrong("is not the SHA-256 of a token", `write "sha256:" and 64 digits from 0 to f; countersign client add makes a token, and prints its hash. Never write the token itself`)
		return ""
	}
	if other, taken := tokens[text]; taken {
		v.Wrong("is also the token of "+other, "make a token of its own: countersign client add "+client)
	}
	tokens[text] = client
	return text[len("sha256:"):]
}
