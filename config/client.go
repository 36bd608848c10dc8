package config

import (
	"net/url"
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

// tokenHash matches the hash of a client's token, in the form that the policy file uses.
var tokenHash = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// readClient reads one client. The map tokens has the names of the clients that were read before. Its keys are the
// hashes of the clients' tokens, and the issuers with the subjects and client_ids.
func readClient(e yamldoc.Entry, tokens map[string]string) approvers.Client {
	c := approvers.Client{
		Name: e.Key, Title: e.Key, Audience: e.Key, MaxPending: clientPending, RejectionHolds: clientRejectionHolds, OutcomeWithin: clientOutcomeWithin, Hold: clientHold,
	}
	if !roleName.MatchString(e.Key) {
		e.Wrong("is not a valid name for a client", "a name has 1 to 64 letters, digits, _ and -")
	}
	f := e.Value.Fields("title", "token", "agent", "owner", "tools", "audience", "caps", "rejection_holds", "outcome_within", "hold", "webhook", "oauth")
	needClientKeys(e, f)
	if text, ok := f.Free("title", "the client's name for people"); ok {
		c.Title = text
	}
	if v, ok := f["token"]; ok {
		c.Token = readTokenHash(v, e.Key, tokens)
	}
	if v, ok := f["oauth"]; ok {
		c.OAuth = readClientOAuth(v, e.Key, tokens)
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
			v.Wrong("sets no limit", "add pending: 20 or requests: 60/h")
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
	if v, ok := f["webhook"]; ok {
		c.Webhook = readWebhook(v)
	}
	return c
}

// needClientKeys reports the required keys that a client lacks.
func needClientKeys(e yamldoc.Entry, f yamldoc.Fields) {
	for _, need := range [][2]string{
		{"token", `token: "sha256:…"; countersign client add makes a token, and prints this line`},
		{"agent", "agent: and the name of an agent, whose tools, overrides, mode and budgets hold for the client"},
		{"owner", "owner: and the Slack user id of the person who answers for the client"},
		{"tools", `which tools the client may ask for: tools: [issue_refund], or ["*"] for every tool of its agent`},
	} {
		if e.Value.IsMapping() && !f.Has(need[0]) && (need[0] != "token" || !f.Has("oauth")) {
			e.Wrong(need[0]+" is missing", "add "+need[1])
		}
	}
}

// tokenAlgorithms are the algorithms by which access tokens may be signed. The first algorithm is the default.
var tokenAlgorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}

// claimName matches the names of claims. Some of these names are addresses.
var claimName = regexp.MustCompile(`^[!-~]{1,200}$`)

// readClientOAuth reads the keys that say which access tokens belong to a client. readClientOAuth refuses two clients
// with the same issuer, and the same subject or client_id, because the gateway could not distinguish these clients.
func readClientOAuth(v yamldoc.Value, client string, tokens map[string]string) *approvers.OAuth {
	o := &approvers.OAuth{Algorithm: tokenAlgorithms[0]}
	f := v.Fields("issuer", "subject", "client_id", "person", "algorithm", "allow")
	if v.IsMapping() && !f.Has("issuer") {
		v.Wrong("issuer is missing", "add issuer: https://login.example.com, exactly as its tokens name it in iss")
	}
	if v.IsMapping() && !f.Has("subject") && !f.Has("client_id") {
		v.Wrong("subject or client_id is missing", "add subject: and the client's id at the issuer, which its tokens have as sub, or as sub of act. "+
			"If people sign in with the client, add client_id: and the id that their tokens have as client_id or azp")
	}
	if f.Has("client_id") && !f.Has("person") {
		v.Wrong("person is missing", "add person: and the claim with the Slack user id of the person who has signed in, such as slack_user_id")
	}
	if v, ok := f["issuer"]; ok {
		o.Issuer = readPlainAddress(v)
	}
	if text, ok := f.Free("subject", "the client's id at the issuer"); ok {
		o.Subject = text
	}
	if text, ok := f.Free("client_id", "the client's id at the issuer"); ok {
		o.ClientID = text
	}
	if v, ok := f["person"]; ok {
		if text, ok := v.Free("the claim with the Slack user id of the person, such as slack_user_id"); ok && !claimName.MatchString(text) {
			v.Wrong(yamldoc.Quote(text)+" is not the name of a claim", "write the claim with the Slack user id of the person, such as slack_user_id")
		} else if ok {
			o.Person = text
		}
	}
	if text, ok := f.Choice("algorithm", tokenAlgorithms); ok {
		o.Algorithm = text
	}
	if v, ok := f["allow"]; ok {
		o.Allow = readPermits(v)
	}
	for _, claim := range []struct{ key, id string }{{"subject", o.Subject}, {"client_id", o.ClientID}} {
		if o.Issuer == "" || claim.id == "" {
			continue
		}
		id := claim.key + " " + o.Issuer + " " + claim.id
		if other, taken := tokens[id]; taken {
			v.Wrong("is also the "+claim.key+" of "+other, "register a client of its own at the issuer")
		}
		tokens[id] = client
	}
	return o
}

// readWebhook reads the settings of a client's webhook.
func readWebhook(v yamldoc.Value) *approvers.Webhook {
	w := &approvers.Webhook{}
	f := v.Fields("url", "secret", "allow")
	for _, need := range [][2]string{
		{"url", `url: "https://ci.example.com/countersign"`},
		{"secret", `secret: "${CI_WEBHOOK_SECRET}", a variable of the environment with a secret, such as whsec_… of 32 random bytes in base64`},
	} {
		if v.IsMapping() && !f.Has(need[0]) {
			v.Wrong(need[0]+" is missing", "add "+need[1])
		}
	}
	if v, ok := f["url"]; ok {
		w.URL = readPlainAddress(v)
	}
	if v, ok := f["secret"]; ok {
		w.Secrets = readWebhookSecrets(v)
	}
	if v, ok := f["allow"]; ok {
		w.Allow = readPermits(v)
	}
	return w
}

// readPlainAddress reads an address without variables. An unencrypted address is accepted only if its host is this
// machine.
func readPlainAddress(v yamldoc.Value) string {
	text := readServerURL(v, false)
	u, err := url.Parse(text)
	switch {
	case len(Variables(text)) > 0:
		v.Wrong("has a variable of the environment in it", "write the URL itself")
	case err == nil && u.Scheme == "http" && !onThisMachine(u.Hostname()):
		v.Wrong("would be reached without encryption", "write https://")
	}
	return text
}

// mostWebhookSecrets limits the secrets of a webhook. While a secret is being replaced, a webhook has two secrets.
const mostWebhookSecrets = 4

// readWebhookSecrets reads one secret or a list of secrets. Each secret is given as the name of an environment
// variable.
func readWebhookSecrets(v yamldoc.Value) []string {
	items := []yamldoc.Value{v}
	if v.IsList() {
		items, _ = v.List(`["${NEW_SECRET}", "${OLD_SECRET}"]`)
		if n := len(items); n == 0 || n > mostWebhookSecrets {
			v.Wrongf("write one to four secrets", "has %d secrets", n)
			return nil
		}
	}
	var names []string
	for _, item := range items {
		text, ok := "", true
		if !item.IsNumber() {
			text, ok = item.Free(`"${CI_WEBHOOK_SECRET}"`)
		}
		switch name := referred(text); {
		case !ok:
		case text != "${"+name+"}" || !variableName.MatchString(name):
			item.Hide()
			item.Wrong("is not the name of a variable", `keep the secret in the environment, and write "${NAME}" here`)
		default:
			names = append(names, name)
		}
	}
	return names
}

// readTokenHash reads the hash of a client's token. readTokenHash refuses two clients with the same token, because
// the gateway could not distinguish these clients.
func readTokenHash(v yamldoc.Value, client string, tokens map[string]string) string {
	text, ok := v.Free(`the hash of a token: "sha256:…"`)
	if !ok {
		return ""
	}
	if !tokenHash.MatchString(text) {
		v.Hide()
		v.Wrong("is not the SHA-256 of a token", `write "sha256:" and 64 digits from 0 to f; countersign client add makes a token, and prints its hash. Never write the token itself`)
		return ""
	}
	if other, taken := tokens[text]; taken {
		v.Wrong("is also the token of "+other, "make a token of its own: countersign client add "+client)
	}
	tokens[text] = client
	return text[len("sha256:"):]
}
