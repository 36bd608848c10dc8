package config

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// Fixture is a call for testing a policy, with the expected result. docs/explain.md describes the file format.
type Fixture struct {
	Name       string // a name for people; may be empty
	Line       int    // line in the file of fixtures; zero: the fixture is not from a file
	Tool       string
	Args       json.RawMessage
	Requesters []string // user ids of the requesters, the last speaker last; empty: unspecified
	Authors    []string // user ids of the other authors of the model's input
	Client     string   // the client that asks. Then Requesters, Authors, Agent, Channel and DM are empty. Empty: a person asks
	Mode       approvers.CallerMode
	For        string // user id of the person for whom the client acts; empty: nobody
	Proven     bool   // an access token proves that the client acts for this person
	Agent      string // empty: the first agent of the policy
	Channel    string
	DM         bool
	At         time.Time // the time of the call; zero: the time of the run
	Expect     Expectation
}

// Expectation is the expected result of a fixture. Empty fields are not compared.
type Expectation struct {
	Verdict string
	Risk    approvers.Risk
	Who     []string // the expected stages, such as "team-lead", "2 x finance-director" or "a or b"; empty but not nil: nobody is asked
	Why     string   // a text that must be part of one of the reasons
}

// Empty reports whether nothing is expected.
func (e Expectation) Empty() bool {
	return e.Verdict == "" && e.Risk == 0 && e.Who == nil && e.Why == ""
}

// ReadFixtures reads a file of fixtures. The error is [yamldoc.Problems].
func ReadFixtures(path string) ([]Fixture, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, yamldoc.Problems{{File: path, Message: "can't be read: " + plainCause(err), Hint: "name a file of fixtures; docs/explain.md has an example"}}
	}
	return ParseFixtures(path, data)
}

// ParseFixtures parses a file's content: a list of fixtures, each with at least a tool. name is the file's name in
// problems.
func ParseFixtures(name string, data []byte) ([]Fixture, error) {
	doc, root, ok := yamldoc.Parse(name, "docs/explain.md", data)
	var out []Fixture
	if ok {
		items, _ := root.List("- {tool: issue_refund, args: {amount: 600}, expect: {verdict: ask}}")
		for _, item := range items {
			out = append(out, readFixture(item))
		}
		if len(items) == 0 && root.ProblemCount() == 0 {
			root.Wrong("has no fixture", "write at least one: - {tool: issue_refund, args: {amount: 600}}")
		}
	}
	if err := doc.Problems().Err(); err != nil {
		return nil, err
	}
	return out, nil
}

func readFixture(v yamldoc.Value) Fixture {
	x := Fixture{Line: v.Line(), Args: json.RawMessage("{}")}
	f := v.Fields("name", "tool", "args", "client", "mode", "on_behalf_of", "proven", "requester", "authors", "agent", "channel", "dm", "at", "expect")
	x.Name, _ = f.Free("name", "what the fixture is about")
	if f.Has("tool") {
		var ok bool
		if x.Tool, ok = f.Free("tool", "a tool's name"); ok && !toolName.MatchString(x.Tool) {
			f["tool"].Wrong(yamldoc.Quote(x.Tool)+" is not a valid name for a tool", "a name has 1 to 64 letters, digits, _, . and -")
		}
	} else if v.IsMapping() {
		v.Wrong("names no tool", "add tool: and its name")
	}
	if a, ok := f["args"]; ok {
		x.Args = readArguments(a)
	}
	readClientOf(f, &x)
	x.Requesters = readUsers(f, "requester")
	x.Authors = readUsers(f, "authors")
	x.Agent, _ = f.Free("agent", "an agent's name")
	if text, ok := f.Free("channel", `a channel id, as conversation.channel has it`); ok {
		if x.Channel = text; !IsChannelID(text) {
			f["channel"].Wrong(yamldoc.Quote(text)+" is not a channel id", "write one such as C0123ABCD: Slack shows it in the channel's details")
		}
	}
	f.Flag("dm", &x.DM)
	if a, ok := f["at"]; ok {
		x.At, _ = readInstant(a)
	}
	if e, ok := f["expect"]; ok {
		x.Expect = readExpectation(e)
	}
	return x
}

// readClientOf reads the keys of a fixture that are about a client's call.
func readClientOf(f yamldoc.Fields, x *Fixture) {
	x.Client, _ = f.Free("client", "a client's name")
	if mode, ok := f.Choice("mode", callerModes); ok {
		x.Mode = approvers.CallerMode(mode)
	}
	if who := readUsers(f, "on_behalf_of"); len(who) > 0 {
		x.For = who[0]
	}
	f.Flag("proven", &x.Proven)
	if f.Has("proven") && f.Has("client") && !f.Has("on_behalf_of") {
		f["proven"].Wrong("belongs to a call on behalf of a person", "add on_behalf_of: and the person's user id, or remove proven")
	}
	for _, key := range []string{"mode", "on_behalf_of", "proven"} {
		if f.Has(key) && !f.Has("client") {
			f[key].Wrong("belongs to a call of a client", "add client: and its name, or remove "+key)
		}
	}
	for _, key := range []string{"requester", "authors", "agent", "channel", "dm"} {
		if f.Has(key) && f.Has("client") {
			f[key].Wrong("belongs to a call that a person asks for", "remove it, or client: the client's owner, agent and mode follow from the policy")
		}
	}
}

var callerModes = []string{string(approvers.DecideMode), string(approvers.ExecuteMode)}

// readUsers reads one user id or a list of user ids, if the key is present.
func readUsers(f yamldoc.Fields, key string) (out []string) {
	v, ok := f[key]
	if !ok {
		return nil
	}
	items := []yamldoc.Value{v}
	if v.IsList() {
		items, _ = v.List("[U0100, U0002]")
	}
	for _, item := range items {
		text, ok := item.Free("a user id such as U0123ABCD")
		switch {
		case !ok:
		case !IsUserID(text):
			item.Wrong(yamldoc.Quote(text)+" is not a user id", "write one such as U0123ABCD: Slack shows it in a person's profile")
		default:
			out = append(out, text)
		}
	}
	return out
}

// IsChannelID reports whether a text has the form of the id of a channel or a direct message in Slack.
func IsChannelID(text string) bool {
	return channelID.MatchString(text) || strings.HasPrefix(text, "D") && channelID.MatchString("C"+text[1:])
}

// IsUserID reports whether a text has the form of a Slack user id.
func IsUserID(text string) bool { return userID.MatchString(text) }

var verdicts = []string{string(approvers.Auto), string(approvers.Ask), string(approvers.Refuse), string(approvers.Observed)}

func readExpectation(v yamldoc.Value) Expectation {
	var e Expectation
	f := v.Fields("verdict", "risk", "who", "why")
	if d, ok := f["verdict"]; ok {
		text, read := d.Text(yamldoc.OneOf(verdicts))
		if e.Verdict = text; read && !slices.Contains(verdicts, text) {
			d.Wrong(yamldoc.Quote(text)+" is not a verdict", "write "+yamldoc.OneOf(verdicts))
		}
	}
	readRiskKey(f, "risk", &e.Risk)
	if w, ok := f["who"]; ok {
		e.Who = append([]string{}, w.Texts(`[team-lead, "2 x finance-director"]`, "a stage")...)
	}
	e.Why, _ = f.Free("why", "a part of the reason")
	return e
}

// readInstant reads a time in RFC 3339 format.
func readInstant(v yamldoc.Value) (time.Time, bool) {
	text, ok := v.Text("a time such as 2026-12-24T18:00:00+01:00")
	if !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		v.Wrong(yamldoc.Quote(text)+" is not a time", "write it as 2026-12-24T18:00:00Z, or with its zone: 2026-12-24T18:00:00+01:00")
		return t, false
	}
	return t, true
}

// readArguments reads a call's arguments: a mapping, or JSON as text. Numbers keep their digits.
func readArguments(v yamldoc.Value) json.RawMessage {
	if v.IsText() {
		text, _ := v.Text(`a mapping, or JSON such as '{"amount": 600}'`)
		return json.RawMessage(text)
	}
	if v.Readable() && !v.IsMapping() {
		v.Wrongf(`write a mapping such as {amount: 600}, or JSON in quotes`, "%s is not a mapping of arguments", v.Shown())
		return nil
	}
	return v.JSON(approvers.MaxArgs)
}
