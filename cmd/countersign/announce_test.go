package main

import "testing"

// The demo of somebody's own policy names a call that can be made there, and of several one that waits for somebody.
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
		b := openBox(t, policy)
		if got := suggestion(b.toolbox, b.ps.active.Load()); got != want {
			t.Errorf("%q, want %q, of\n%s", got, want, policy)
		}
	}
	b := openBox(t, "") // what nobody pinned can't be called
	f := openShifting(t, map[string]string{"send": "Sends."})
	b.becomes(f.entry("crm", ""))
	b.begin()
	if got := suggestion(b.toolbox, b.ps.active.Load()); got != "" {
		t.Errorf("of what is blocked: %q", got)
	}
}
