package bot

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/slack-go/slack/slackevents"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/internal/demo/workspace"
)

// calls maps the client's functions to Web API methods and their scopes, according to Slack's reference pages. If the
// scope of a method depends on the kind of channel, the map has the scope for each kind of channel.
var calls = map[string]struct {
	method string
	scopes []string
}{
	"AuthTestContext":                            {"auth.test", nil},
	"StartSocketModeContext":                     {"apps.connections.open", nil}, // needs connections:write of the app-level token
	"PostMessageContext":                         {"chat.postMessage", []string{"chat:write"}},
	"PostMessageWithResponseContext":             {"chat.postMessage", []string{"chat:write"}},
	"PostEphemeralContext":                       {"chat.postEphemeral", []string{"chat:write"}},
	"UpdateMessageContext":                       {"chat.update", []string{"chat:write"}},
	"DeleteMessageContext":                       {"chat.delete", []string{"chat:write"}},
	"GetPermalinkContext":                        {"chat.getPermalink", nil},
	"GetConversationInfoContext":                 {"conversations.info", []string{"channels:read", "groups:read", "mpim:read"}}, // never called for direct messages
	"GetConversationsContext":                    {"conversations.list", []string{"channels:read", "groups:read"}},
	"GetConversationsForUserContext":             {"users.conversations", []string{"channels:read", "groups:read", "im:read", "mpim:read"}},
	"OpenConversationContext":                    {"conversations.open", []string{"im:write"}},
	"GetConversationHistoryContext":              {"conversations.history", []string{"channels:history", "groups:history", "im:history", "mpim:history"}},
	"GetConversationRepliesContext":              {"conversations.replies", []string{"channels:history", "groups:history", "im:history", "mpim:history"}},
	"GetUserInfoContext":                         {"users.info", []string{"users:read"}},
	"GetBotInfoContext":                          {"bots.info", []string{"users:read"}},
	"GetUserByEmailContext":                      {"users.lookupByEmail", []string{"users:read.email"}},
	"GetUserGroupsContext":                       {"usergroups.list", []string{"usergroups:read"}},
	"GetUserGroupMembersContext":                 {"usergroups.users.list", []string{"usergroups:read"}},
	"GetDNDInfoContext":                          {"dnd.info", []string{"dnd:read"}},
	"OpenViewContext":                            {"views.open", nil},
	"UpdateViewContext":                          {"views.update", nil},
	"PublishViewContext":                         {"views.publish", nil},
	"SetAssistantThreadsStatusContext":           {"assistant.threads.setStatus", []string{"chat:write"}},
	"StartStreamContext":                         {"chat.startStream", []string{"chat:write"}},
	"AppendStreamContext":                        {"chat.appendStream", []string{"chat:write"}},
	"StopStreamContext":                          {"chat.stopStream", []string{"chat:write"}},
	"SetAssistantThreadsSuggestedPromptsContext": {"assistant.threads.setSuggestedPrompts", []string{"assistant:write"}},
	"GetUploadURLExternalContext":                {"files.getUploadURLExternal", []string{"files:write"}},
	"CompleteUploadExternalContext":              {"files.completeUploadExternal", []string{"files:write"}},
	"UploadToURL":                                {"the address that files.getUploadURLExternal names", nil},
}

// Some features make no call, but need a scope. features maps a name in the code to the scope that the feature of this
// name needs.
var features = map[string]string{"agent_view": "assistant:write", "slash_commands": "commands", "url_private": "files:read"}

// The app requests exactly the scopes that the code's calls and events need.
func TestScopesAreWhatTheCodeNeeds(t *testing.T) {
	t.Parallel()
	used, named := source(t)
	needed := map[string]bool{}
	for f := range used {
		c, ok := calls[f]
		if !ok {
			t.Errorf("the code calls %s: add its method of the Web API and its scopes to this list", f)
		}
		for _, s := range c.scopes {
			needed[s] = true
		}
	}
	for f := range calls {
		if !used[f] {
			t.Errorf("nothing calls %s any more: remove it from this list", f)
		}
	}
	for _, scope := range features {
		needed[scope] = true
	}
	asked := map[string]bool{}
	for _, s := range Scopes() {
		if len(s.Events) > 0 {
			needed[s.Name] = true
		}
		asked[s.Name] = true
		if s.For == "" {
			t.Errorf("%s does not say what it is for", s.Name)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(needed)), slices.Sorted(maps.Keys(asked))); diff != "" {
		t.Errorf("the scopes that are needed (-) and those that are asked for (+) differ:\n%s", diff)
	}

	named["app_home_opened"] = HomeTab
	heard := map[string]bool{}
	for _, event := range events() {
		kind, _, _ := strings.Cut(event, ".") // Slack delivers the event message.im with the type message
		heard[kind] = true
	}
	for event := range slackevents.EventsAPIInnerEventMapping {
		name := string(event)
		switch {
		case named[name] && !heard[name] && !beside[name]:
			t.Errorf("the code handles the event %s, but the app does not subscribe to it", name)
		case heard[name] && !named[name]:
			t.Errorf("the app subscribes to %s, but the code does not handle it", name)
		}
	}
}

// The map "beside" lists events that the app does not subscribe to, because Slack sends another event with the same
// meaning.
var beside = map[string]bool{
	"user_profile_changed": true, // Slack also sends user_change
	"member_left_channel":  true, // the bot itself gets channel_left and group_left
}

// notCalls lists the functions of slackapi.Client that make no call to the Web API themselves.
var notCalls = map[string]bool{"Hear": true, "SetTokens": true, "Scopes": true, "Available": true, "Worth": true, "Watch": true, "UpdatesScarce": true, "Client": true}

// sources returns the files of this package and of the packages below it.
func sources(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"*.go", "*/*.go", "*/*/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	return paths
}

// source returns the client's functions that the code uses, and every string literal in the code.
func source(t *testing.T) (used, named map[string]bool) {
	t.Helper()
	used, named = map[string]bool{}, map[string]bool{}
	for _, path := range sources(t) {
		if strings.HasSuffix(path, "_test.go") || path == "manifest.go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				of, field := n.X.(*ast.SelectorExpr)
				plain, name := n.X.(*ast.Ident)
				if notCalls[n.Sel.Name] {
					return true
				}
				if field && of.Sel.Name == "api" || name && plain.Name == "api" && strings.HasSuffix(n.Sel.Name, "Context") {
					used[n.Sel.Name] = true
				}
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
					named[s] = true
				}
			}
			return true
		})
	}
	return used, named
}

// The demo workspace grants the scopes of the manifest, and sends the events to which the manifest subscribes. So if
// the manifest lacks a scope or an event, the demo workspace fails.
func TestTheDemoIsInstalledFromTheManifest(t *testing.T) {
	t.Parallel()
	m, app := newManifest(ManifestOptions{Name: "Countersign"}), workspace.DemoSeed().App
	if diff := cmp.Diff(m.OAuth.Scopes.Bot, app.Scopes); diff != "" {
		t.Errorf("scopes of the manifest (-) and of the demo's app (+):\n%s", diff)
	}
	if diff := cmp.Diff(m.Settings.Events.Events, app.Events); diff != "" {
		t.Errorf("events of the manifest (-) and of the demo's app (+):\n%s", diff)
	}
	var shortcuts []workspace.SeedShortcut
	for _, s := range Shortcuts() {
		shortcuts = append(shortcuts, workspace.SeedShortcut{Name: s.Name, CallbackID: s.CallbackID, Type: s.Type})
	}
	if diff := cmp.Diff(shortcuts, app.Shortcuts); diff != "" {
		t.Errorf("shortcuts of the manifest (-) and of the demo's app (+):\n%s", diff)
	}
	var commands []workspace.SeedCommand
	for _, c := range m.Features.Commands {
		commands = append(commands, workspace.SeedCommand{Command: c.Command, Description: c.Description, UsageHint: c.Hint, ShouldEscape: c.Escape})
	}
	if diff := cmp.Diff(commands, app.Commands); diff != "" {
		t.Errorf("commands of the manifest (-) and of the demo's app (+):\n%s", diff)
	}
}

// manifestSchema returns Slack's own schema of manifests.
func manifestSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	f, err := os.Open("testdata/manifest.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("manifest.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestManifestIsValid(t *testing.T) {
	t.Parallel()
	schema := manifestSchema(t)
	for name, o := range map[string]ManifestOptions{
		"manifest_socket": {Name: "Countersign"},
		"manifest_http":   {URL: "https://bot.example.com/", Name: "Support Desk", Prompts: []approvers.Prompt{{Title: "Find an order", Message: "Where is order ORD-123?"}}},
		"":                {Name: strings.Repeat("𝕏", MaxAppName), Prompts: make([]approvers.Prompt, 9)},
	} {
		raw, err := Manifest(o)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name != "" {
			bottest.Golden(t, name, json.RawMessage(raw))
		}
	}
	for _, name := range []string{"", strings.Repeat("x", MaxAppName+1)} {
		if _, err := Manifest(ManifestOptions{Name: name}); err == nil {
			t.Errorf("the name %q was accepted, but Slack refuses it", name)
		}
	}
}
