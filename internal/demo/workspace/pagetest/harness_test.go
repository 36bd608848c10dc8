package pagetest

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"countersign/internal/demo/workspace"
	"countersign/internal/testkit"
)

// harness is a workspace with an app whose command repeats its text or opens a form.
type harness struct {
	*testing.T
	http  *httptest.Server
	api   *slack.Client
	heard chan socketmode.Event  // commands and interactions
	opens slack.ModalViewRequest // the form that the command opens
}

// asked is the time of the requests in the bot's golden files. The workspace's clock starts at this time.
var asked = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func newHarness(t *testing.T) *harness {
	seed, start := workspace.OpenSeed(), time.Now()
	seed.Hint = workspace.SeedHint{} // no hint: pictures show only the bot's messages
	s, err := workspace.New(workspace.Config{
		Seed: seed, Now: func() time.Time { return asked.Add(time.Since(start)) }, AckTimeout: testkit.Patience, TriggerTTL: testkit.Patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	o := &harness{T: t, http: httptest.NewServer(s.Handler()), heard: make(chan socketmode.Event, 100), opens: form()}
	t.Cleanup(o.http.Close)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	o.api = slack.New(workspace.DemoBotToken, slack.OptionAppLevelToken(workspace.DemoAppToken), slack.OptionAPIURL(o.http.URL+"/api/"))
	client := socketmode.New(o.api)
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		if err := client.RunContext(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("socket mode: %v", err)
		}
	})
	running.Go(func() { o.serve(ctx, client, sync.OnceFunc(func() { close(ready) })) })
	t.Cleanup(func() { cancel(); running.Wait() })
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatal("the app does not connect")
	}
	return o
}

// serve acknowledges all envelopes, and answers commands.
func (o *harness) serve(ctx context.Context, client *socketmode.Client, ready func()) {
	for {
		var e socketmode.Event
		select {
		case <-ctx.Done():
			return
		case e = <-client.Events:
		}
		if e.Type == socketmode.EventTypeHello {
			ready()
		}
		if e.Request == nil || e.Request.EnvelopeID == "" {
			continue
		}
		var answer any
		command, isCommand := e.Data.(slack.SlashCommand)
		if isCommand && command.Text != "form" {
			answer = slack.Msg{ResponseType: slack.ResponseTypeEphemeral, Text: "You wrote: " + command.Text}
		}
		if err := client.Ack(*e.Request, answer); err != nil {
			o.Error(err)
		}
		if isCommand && command.Text == "form" {
			if _, err := o.api.OpenView(command.TriggerID, o.opens); err != nil {
				o.Error(err)
			}
		}
		if e.Type != socketmode.EventTypeEventsAPI {
			o.heard <- e
		}
	}
}

// next returns the app's next command or interaction.
func (o *harness) next() socketmode.Event {
	o.Helper()
	select {
	case e := <-o.heard:
		return e
	case <-time.After(time.Minute):
		o.Fatal("the app received nothing")
		return socketmode.Event{}
	}
}

func plain(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
}

func option(value, text, description string) *slack.OptionBlockObject {
	if description == "" {
		return slack.NewOptionBlockObject(value, plain(text), nil)
	}
	return slack.NewOptionBlockObject(value, plain(text), plain(description))
}

// form returns a modal with one field of each kind.
func form() slack.ModalViewRequest {
	input := func(block, label, hint string, element slack.BlockElement) *slack.InputBlock {
		out := slack.NewInputBlock(block, plain(label), nil, element)
		if hint != "" {
			out.Hint = plain(hint)
		}
		return out
	}
	optional := func(block *slack.InputBlock) *slack.InputBlock { return block.WithOptional(true) }
	number := slack.NewNumberInputBlockElement(nil, "hours", true)
	number.InitialValue = "8"
	day := slack.NewDatePickerBlockElement("until")
	day.InitialDate = "2026-03-09"
	why := slack.NewPlainTextInputBlockElement(plain("In a sentence"), "why")
	why.Multiline = true
	reach := slack.NewRadioButtonsBlockElement("reach", option("yes", "Yes, in an emergency", "By telephone only"), option("no", "No", ""))
	reach.InitialOption = reach.Options[0]
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: plain("You are away"), Submit: plain("Save"), Close: plain("Cancel"), CallbackID: "away",
		Blocks: slack.Blocks{BlockSet: []slack.Block{
			slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, "While you are away, *somebody else* decides for you.", false, false), nil,
				slack.NewAccessory(slack.NewOverflowBlockElement("more", option("help", "Help", ""), option("rules", "The rules", "What a delegate may do")))),
			input("delegate", "Who decides for you?", "Somebody with the same authority.", slack.NewOptionsSelectBlockElement(slack.OptTypeUser, plain("Choose a person"), "delegate")),
			optional(input("tell", "Who is told?", "", slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeUser, plain("Choose people"), "tell"))),
			input("reach", "Can you be reached?", "", reach),
			optional(input("what", "What is handed over?", "", slack.NewCheckboxGroupsBlockElement("what", option("refunds", "Refunds", ""), option("accounts", "Accounts", "Deleting and cancelling")))),
			input("kind", "Why?", "", slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plain("Choose a reason"), "kind", option("holiday", "Holiday", ""), option("ill", "Illness", ""))),
			input("until", "Until", "", day),
			input("hours", "Hours a day", "", number),
			optional(input("why", "Anything else?", "", why)),
		}},
	}
}
