package main

import (
	"fmt"
	"testing"
)

// The demo with a user's own policy suggests a call that can be made under this policy. If there are several such
// calls, the demo suggests a call that waits for approval.
func TestSuggestion(t *testing.T) {
	t.Parallel()
	const look = `http:
  weather.look: {description: d, url: "https://a.example/{place}", method: GET, arguments: {type: object, properties: {place: {type: string}}, required: [place]}}
`
	for policy, want := range map[string]string{
		"": "",
		look + "tools: {weather.look: {risk: low}}\n": "call weather.look place=…",
		look + "  weather.say: {description: d, url: \"https://a.example/\", method: POST, arguments: {type: object, properties: {a: {type: string}, b: {type: string}}, required: [a, b]}}\n" +
			"tools: {weather.look: {risk: low}, weather.say: {risk: high}}\n": "call weather.say a=… b=…",
	} {
		c, _ := openCatalog(t, policy)
		if got := suggestion(c, c.Policy()); got != want {
			t.Errorf("%q, want %q, of\n%s", got, want, policy)
		}
	}
	c, begin := openCatalog(t, fmt.Sprintf(crmEntry, openToolServer(t, "send"))) // a tool without a pin can't be called
	begin()
	if got := suggestion(c, c.Policy()); got != "" {
		t.Errorf("of what is blocked: %q", got)
	}
}
