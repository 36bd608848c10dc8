package workspaceclient

import (
	"encoding/json"
	"testing"
)

func TestText(t *testing.T) {
	blocks := `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"Ask "},{"type":"user","user_id":"U1"},
		{"type":"text","text":" by ","style":{"bold":true}},{"type":"date","timestamp":5,"format":"{time}","fallback":"noon"}]}]},
		{"type":"context","elements":[{"type":"plain_text","text":"Small print."}]},
		{"type":"section","text":{"type":"mrkdwn","text":"*More*"},"accessory":{"type":"button","text":{"type":"plain_text","text":"Press"}}}]`
	if got, want := Text(json.RawMessage(blocks)), "Ask <@U1> by noon\nSmall print.\n*More*"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, broken := range []string{"", "[", `[{"type":`, `{"text":"x"`} {
		Text(json.RawMessage(broken)) // must not panic
	}
}

func TestPlain(t *testing.T) {
	got := Plain("<@U1> &amp; <!date^5^{time}|noon>: <https://a.example|see> in <#C1> &lt;b&gt;", func(id string) string { return "Ada" })
	if want := "Ada & noon: see in #C1 <b>"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
