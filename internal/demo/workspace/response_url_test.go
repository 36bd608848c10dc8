package workspace

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

// clicked posts a card, presses the card's button as Ada, and returns the response URL.
func (b *harness) clicked(app *bot, ephemeral bool) (responseURL, ts string) {
	b.t.Helper()
	blocks := slack.MsgOptionBlocks(slack.NewActionBlock("b", slack.NewButtonBlockElement("go", "v", slack.NewTextBlockObject("plain_text", "Go", false, false))))
	var err error
	if ephemeral {
		ts, err = b.api.PostEphemeral("C0001", "U0001", text("only ada"), blocks)
	} else {
		_, ts, err = b.api.PostMessage("C0001", text("card"), blocks)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.must(b.post("/people/ada/actions", obj{"channel": "C0001", "ts": ts, "action_id": "go"}))
	for {
		if click, ok := wait(b.t, app.events).Data.(slack.InteractionCallback); ok {
			if click.Container.IsEphemeral != ephemeral || (click.Message.Timestamp == "") != ephemeral {
				b.t.Errorf("the click: %+v", click)
			}
			return click.ResponseURL, ts
		}
	}
}

func (b *harness) respond(url string, body obj) reply {
	b.t.Helper()
	raw, _ := json.Marshal(body)
	resp, err := http.Post(url, "application/json", bytes.NewReader(raw))
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	out := reply{status: resp.StatusCode}
	if err := json.NewDecoder(resp.Body).Decode(&out.body); err != nil {
		b.t.Fatal(err)
	}
	return out
}

func TestResponseURLsWorkFiveTimesAndForThirtyMinutes(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	url, _ := b.clicked(app, false)
	if r := b.respond(url, obj{"blocks": arr{obj{"type": "nonsense"}}}); r.status != 400 || r.code() != "invalid_blocks" {
		t.Errorf("a bad answer: %v", r)
	}
	for range 5 { // the refused answer does not count as a use
		b.must(b.respond(url, obj{"text": "for ada"}))
	}
	if r := b.respond(url, obj{"text": "once more"}); r.status != 404 || r.code() != "used_url" {
		t.Errorf("a sixth time: %v", r)
	}
	if got := b.messages("ada", "C0001", ""); len(got) != 6 || dig(got[5], "is_ephemeral") != true {
		t.Errorf("ada sees %v", got)
	}
	url, _ = b.clicked(app, false)
	b.clock.advance(30 * time.Minute)
	b.must(b.respond(url, obj{"text": "just in time", "response_type": "in_channel"}))
	b.clock.advance(time.Second)
	if r := b.respond(url, obj{"text": "too late"}); r.status != 404 || r.code() != "expired_url" {
		t.Errorf("after thirty minutes: %v", r)
	}
	if r := b.respond(b.http.URL+"/response/none", obj{"text": "x"}); r.status != 404 {
		t.Errorf("an invented one: %v", r)
	}
}

func TestResponseURLsReplaceAndDelete(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	for _, ephemeral := range []bool{false, true} {
		url, ts := b.clicked(app, ephemeral)
		if _, _, _, err := b.api.SendMessage("", slack.MsgOptionReplaceOriginal(url), text("replaced")); err != nil {
			t.Fatal(err)
		}
		list := b.messages("ada", "C0001", "")
		last := list[len(list)-1]
		if dig(last, "ts") != ts || dig(last, "text") != "replaced" || dig(last, "blocks") != nil {
			t.Errorf("ephemeral %v, replaced: %v", ephemeral, last)
		}
		if r := b.respond(url, obj{"delete_original": true, "text": "bye"}); r.status != 400 || r.code() != "invalid_arguments" {
			t.Errorf("delete_original with a text: %v", r)
		}
		if _, _, _, err := b.api.SendMessage("", slack.MsgOptionDeleteOriginal(url)); err != nil {
			t.Fatal(err)
		}
		if after := b.messages("ada", "C0001", ""); len(after) != len(list)-1 {
			t.Errorf("ephemeral %v, deleted: %v", ephemeral, after)
		}
	}
}

// An ephemeral answer to a click in a thread appears in the thread.
func TestAnswersAppearWhereTheClickWas(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	parent := b.say("sam", "C0001", "x", "")
	_, ts, err := b.api.PostMessage("C0001", text("card"), slack.MsgOptionTS(parent), slack.MsgOptionBlocks(
		slack.NewActionBlock("b", slack.NewButtonBlockElement("go", "v", slack.NewTextBlockObject("plain_text", "Go", false, false)))))
	if err != nil {
		t.Fatal(err)
	}
	b.must(b.post("/people/ada/actions", obj{"channel": "C0001", "ts": ts, "action_id": "go"}))
	for {
		if click, ok := wait(t, app.events).Data.(slack.InteractionCallback); ok {
			b.must(b.respond(click.ResponseURL, obj{"text": "seen"}))
			break
		}
	}
	if list := b.messages("ada", "C0001", parent); len(list) != 3 || dig(list[2], "text") != "seen" {
		t.Errorf("the thread: %v", list)
	}
}
