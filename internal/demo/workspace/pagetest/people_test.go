package pagetest

import (
	"testing"

	"github.com/slack-go/slack"
)

const (
	messages = "[data-testid=messages] [data-testid=message]"
	modal    = "[data-testid=modal][open]"
)

// The test uses a real browser. It sends two messages at once, and tries a slash command, a form with a person picker
// and radio buttons, a person's quiet time, the button that stops a stream, and files.
func TestBrowser(t *testing.T) {
	b := openBrowser(newHarness(t))
	b.quick()
	b.command()
	b.form()
	b.quiet()
	b.stop()
	b.files()
}

// The method "files" attaches two files to a message, and removes one of them before sending.
func (b *browser) files() {
	b.Helper()
	b.become("U0100", "C0001")
	b.page.Until("files are chosen", `(() => {
		const input = document.querySelector("[data-testid=composer-files]");
		const chosen = new DataTransfer();
		chosen.items.add(new File(["order,amount\nORD-1,20\n"], "orders.csv"));
		chosen.items.add(new File(["no"], "secret.txt"));
		input.files = chosen.files;
		input.dispatchEvent(new Event("change"));
		return true;
	})()`)
	b.sees(".chips-row .chip", "secret.txt")
	b.page.Until("one is taken back", `(() => { document.querySelector("[aria-label='Remove secret.txt']")?.click(); return !document.querySelector("[aria-label='Remove secret.txt']"); })()`)
	b.focus("[data-testid=composer]")
	b.keys("Here are the orders")
	b.page.Shot("files-attached")
	b.press("Enter")
	b.sees(messages, "orders.csv")
	b.page.Shot("files-sent")
	history, err := b.api.GetConversationHistory(&slack.GetConversationHistoryParameters{ChannelID: "C0001", Limit: 1})
	if err != nil || len(history.Messages) != 1 || len(history.Messages[0].Files) != 1 {
		b.Fatalf("the app reads %+v, %v", history, err)
	}
	if f := history.Messages[0].Files[0]; f.Name != "orders.csv" || f.Size != 22 || f.User != "U0100" || history.Messages[0].SubType != "file_share" {
		b.Errorf("the file is %+v in a message of the kind %q", f, history.Messages[0].SubType)
	}
}

// stop presses Slack's own button that stops a streamed answer.
func (b *browser) stop() {
	b.Helper()
	_, root, err := b.api.PostMessage("C0001", slack.MsgOptionText("A question.", false))
	if err != nil {
		b.Fatal(err)
	}
	recipient := slack.MsgOptionCompose(slack.MsgOptionTS(root), slack.MsgOptionRecipientUserID("U0100"), slack.MsgOptionRecipientTeamID("T0001"))
	channel, ts, err := b.api.StartStream("C0001", recipient, slack.MsgOptionMarkdownText("An answer that goes on and on"))
	if err != nil {
		b.Fatal(err)
	}
	b.become("U0100", "C0001/"+root)
	b.sees("[data-testid=message]", "An answer that goes on")
	b.page.Shot("stream")
	b.click("[data-testid=stop]", "Stop")
	b.page.Until("the stream has ended", `!document.querySelector("[data-testid=stop]")`)
	b.page.Shot("stream-stopped")
	if _, _, err := b.api.AppendStream(channel, ts, slack.MsgOptionMarkdownText(" and on")); err == nil || err.Error() != "stopped_by_user" {
		b.Errorf("appending to a stopped stream: %v", err)
	}
}

// The method "quick" sends a message while the previous message is still being sent.
func (b *browser) quick() {
	b.become("U0100", "C0001")
	b.page.Until("two are sent at once", `(() => {
		const field = document.querySelector("[data-testid=composer]");
		for (const text of ["the first of two", "the second of two"]) {
			field.value = text;
			field.dispatchEvent(new Event("input", {bubbles: true}));
			field.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true}));
		}
		return true;
	})()`)
	b.sees(messages, "the first of two")
	b.sees(messages, "the second of two")
}

func (b *browser) command() {
	b.become("U0100", "C0001")
	b.focus("[data-testid=composer]")
	b.keys("/")
	b.sees("[data-testid=completion-option]", "/countersign")
	b.page.Shot("command-offered")
	b.press("Tab")
	b.keys("delegate to @ken")
	b.sees("[data-testid=completion-option]", "Kenji")
	b.press("Tab")
	b.keys("until monday")
	b.press("Enter")
	b.sees(messages+"[data-ephemeral]", "Only visible to you")
	b.sees(messages+"[data-ephemeral]", "You wrote: delegate to @Kenji until monday")
	b.page.Shot("command-answered")
	if c := b.next().Data.(slack.SlashCommand); c.Text != "delegate to <@U0004|kenji> until monday" || c.ChannelName != "support" || c.UserName != "sam" {
		b.Errorf("the app received %+v", c)
	}

	_, ts, err := b.api.PostMessage("C0001", slack.MsgOptionText("A thread begins.", false))
	if err != nil {
		b.Fatal(err)
	}
	b.become("U0100", "C0001/"+ts)
	b.focus("[data-testid=thread-composer]")
	b.keys("/countersign list")
	b.press("Enter")
	b.sees("[data-testid=composer-error]", "Slash commands don’t work inside threads")
	b.page.Shot("command-in-a-thread")
}

func (b *browser) form() {
	b.become("U0001", "C0001")
	b.focus("[data-testid=composer]")
	b.keys("/countersign form")
	b.press("Enter")
	b.sees(modal, "You are away")
	b.next()
	b.page.Shot("form")
	b.focus(modal + " [data-testid=users_select]")
	b.keys("ken")
	b.sees("[data-testid=option]", "Kenji")
	b.page.Shot("form-person")
	b.press("Enter")
	b.focus(modal + " [data-testid=multi_users_select]")
	b.keys("ing")
	b.sees("[data-testid=option]", "Ingrid")
	b.press("Enter")
	b.keys("teo")
	b.sees("[data-testid=option]", "Teo")
	b.press("Enter")
	b.click(modal+" [data-testid=radio_buttons] label", "No")
	b.click(modal+" [data-testid=checkboxes] label", "Accounts")
	b.page.Shot("form-chosen")
	b.click("[data-testid=modal-submit]", "Save")
	b.sees(modal+" [data-testid=field-error]", "required")
	b.page.Shot("form-incomplete")
	b.focus(modal + " [data-testid=static_select]")
	b.keys("hol")
	b.press("Enter")
	b.click(modal+" [data-testid=overflow]", "")
	b.sees("[data-testid=menu-item]", "The rules")
	b.page.Shot("form-overflow")
	b.click("[data-testid=menu-item]", "The rules")
	if a := b.next().Data.(slack.InteractionCallback).ActionCallback.BlockActions[0]; a.ActionID != "more" || a.SelectedOption.Value != "rules" {
		b.Errorf("the menu: %+v", a)
	}
	b.click("[data-testid=modal-submit]", "Save")
	state := b.next().Data.(slack.InteractionCallback).View.State.Values
	if state["delegate"]["delegate"].SelectedUser != "U0004" || len(state["tell"]["tell"].SelectedUsers) != 2 || state["reach"]["reach"].SelectedOption.Value != "no" ||
		len(state["what"]["what"].SelectedOptions) != 1 || state["kind"]["kind"].SelectedOption.Value != "holiday" || state["until"]["until"].SelectedDate != "2026-03-09" ||
		state["hours"]["hours"].Value != "8" || state["why"]["why"].Value != "" {
		b.Errorf("the form: %+v", state)
	}
	b.page.Until("the form is closed", `document.querySelector("`+modal+`") === null`)
}

func (b *browser) quiet() {
	b.become("U0004", "U0100") // Kenji opens his DM with Sam
	b.focus("[data-testid=composer]")
	b.keys("I am off.")
	b.press("Enter")
	b.sees(messages, "I am off.")
	b.click("[data-testid=pause]", "")
	b.sees("[data-testid=menu-item]", "Pause until tomorrow at 9:00 AM")
	b.page.Shot("pause")
	b.click("[data-testid=menu-item]", "Pause for 1 hour")
	b.page.Until("the sign stands by one's own name", `document.querySelector("[data-testid=you] [data-testid=quiet]") !== null`)
	b.page.Shot("paused")
	b.become("U0100", "U0004")
	b.page.Until("others see the sign", `["#sidebar", "#rail", ".place-head", ".message"].every(where => document.querySelector(where + " [data-testid=quiet][data-user=U0004]"))`)
	b.sees(".place-topic", "Notifications paused until")
	b.page.Shot("paused-for-others")
	b.become("U0004", "U0100")
	b.click("[data-testid=pause]", "")
	b.click("[data-testid=menu-item]", "Resume notifications")
	b.page.Until("the sign goes", `document.querySelector("[data-testid=quiet]") === null`)
}
