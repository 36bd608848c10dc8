package workspace

import (
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
)

func TestStreams(t *testing.T) {
	b := newHarness(t)
	parent := b.say("sam", "#support", "hi", "")
	recipients := slack.MsgOptionCompose(slack.MsgOptionRecipientUserID("U0100"), slack.MsgOptionRecipientTeamID("T0001"))
	for _, test := range []struct {
		with slack.MsgOption
		code string
	}{
		{slack.MsgOptionRecipientTeamID("T0001"), "missing_recipient_user_id"},
		{slack.MsgOptionRecipientUserID("U0100"), "missing_recipient_team_id"},
		{slack.MsgOptionCompose(recipients, slack.MsgOptionTS("1.000000")), "thread_not_found"},
		{slack.MsgOptionCompose(recipients, slack.MsgOptionRecipientTeamID("T0999")), "team_not_found"},
		{slack.MsgOptionCompose(recipients, slack.MsgOptionMarkdownText(chars(12001))), "msg_blocks_too_long"},
	} {
		if _, _, err := b.api.StartStream("C0001", test.with); code(err) != test.code {
			t.Errorf("start: %v, want %s", err, test.code)
		}
	}
	if _, _, err := b.api.StartStream("C0001", recipients, slack.MsgOptionMarkdownText(chars(12000))); err != nil {
		t.Errorf("12,000 characters: %v", err)
	}
	channel, ts, err := b.api.StartStream("C0001", recipients, slack.MsgOptionTS(parent), slack.MsgOptionMarkdownText("Let me "))
	if err != nil {
		t.Fatal(err)
	}
	last := func() any { list := b.messages("sam", "C0001", parent); return list[len(list)-1] }
	if m := last(); dig(m, "streaming_state") != "in_progress" || dig(m, "text") != "Let me " {
		t.Errorf("started: %v", m)
	}
	task := slack.NewTaskUpdateChunk("t1", "Look for the order")
	task.Status = slack.TaskCardStatusInProgress
	done := slack.TaskUpdateChunk{Type: slack.StreamChunkTaskUpdate, ID: "t1", Status: slack.TaskCardStatusComplete, Output: "found"}
	for _, option := range []slack.MsgOption{slack.MsgOptionMarkdownText("look."), slack.MsgOptionChunks(task), slack.MsgOptionChunks(done, slack.NewMarkdownTextChunk("It is paid."))} {
		if _, _, err := b.api.AppendStream(channel, ts, option); err != nil {
			t.Fatal(err)
		}
	}
	if m := last(); dig(m, "text") != "Let me look.It is paid." || dig(m, "blocks", "1", "status") != "complete" || dig(m, "blocks", "1", "title") != "Look for the order" {
		t.Errorf("appended: %v", m)
	}
	if _, _, _, err := b.api.UpdateMessage(channel, ts, text("x")); code(err) != "streaming_state_conflict" {
		t.Errorf("an update meanwhile: %v", err)
	}
	if _, _, err := b.api.AppendStream(channel, ts); code(err) != "no_text" {
		t.Errorf("nothing appended: %v", err)
	}
	if r := b.form("chat.appendStream", obj{"channel": channel, "ts": ts, "chunks": arr{obj{"type": "song"}}}); r.code() != "invalid_chunks" {
		t.Errorf("an unknown chunk: %v", r)
	}
	if _, _, err := b.api.StopStream(channel, ts, slack.MsgOptionBlocks(slack.NewDividerBlock())); err != nil {
		t.Fatal(err)
	}
	if m := last(); dig(m, "streaming_state") != "completed" || dig(m, "blocks", "last", "type") != "divider" {
		t.Errorf("stopped: %v", m)
	}
	if _, _, err := b.api.AppendStream(channel, ts, slack.MsgOptionMarkdownText("x")); code(err) != "message_not_in_streaming_state" {
		t.Errorf("after the end: %v", err)
	}
	theirs := b.say("sam", "#support", "hi", "")
	if _, _, err := b.api.AppendStream("C0001", theirs, slack.MsgOptionMarkdownText("x")); code(err) != "message_not_owned_by_app" {
		t.Errorf("into somebody else's: %v", err)
	}
}

func TestPlansAndIdleStreams(t *testing.T) {
	b := newHarness(t)
	dm, _ := b.srv.channels.openDM("U0100", "U0BOT")
	channel, ts, err := b.api.StartStream(dm.ID, slack.MsgOptionTaskDisplayMode(slack.TaskDisplayModePlan),
		slack.MsgOptionChunks(slack.NewPlanUpdateChunk("Refund"), slack.NewTaskUpdateChunk("1", "Find"), slack.NewTaskUpdateChunk("2", "Pay")))
	if err != nil {
		t.Fatal(err)
	}
	m := b.messages("sam", "U0BOT", "")[0]
	if dig(m, "blocks", "0", "type") != "plan" || dig(m, "blocks", "0", "title") != "Refund" || len(dig(m, "blocks", "0", "tasks").([]any)) != 2 {
		t.Errorf("the plan: %v", m)
	}
	b.clock.advance(5*time.Minute + time.Second)
	if _, _, err := b.api.AppendStream(channel, ts, slack.MsgOptionMarkdownText("x")); code(err) != "message_not_in_streaming_state" {
		t.Errorf("after a long silence: %v", err)
	}
}

func TestStatusEndsByItselfAndWithAnAnswer(t *testing.T) {
	b := newHarness(t)
	parent := b.say("sam", "#support", "hi", "")
	set := func(status string) {
		t.Helper()
		if err := b.api.SetAssistantThreadsStatus(slack.AssistantThreadsSetStatusParameters{ChannelID: "C0001", ThreadTS: parent, Status: status, LoadingMessages: []string{"Looking", "Counting"}}); err != nil {
			t.Fatal(err)
		}
	}
	shown := func() any {
		return dig(b.must(b.get("/people/sam/channels/C0001/messages?thread_ts="+parent)).body, "status", parent)
	}
	set("is thinking")
	if s := shown(); dig(s, "text") != "is thinking" || dig(s, "loading_messages", "1") != "Counting" {
		t.Errorf("status: %v", s)
	}
	b.clock.advance(2 * time.Minute)
	if s := shown(); s != nil {
		t.Errorf("after two minutes: %v", s)
	}
	set("is thinking")
	if _, _, err := b.api.PostMessage("C0001", text("done"), slack.MsgOptionTS(parent)); err != nil || shown() != nil {
		t.Errorf("after an answer: %v %v", shown(), err)
	}
	set("is thinking")
	if set(""); shown() != nil {
		t.Errorf("cleared: %v", shown())
	}
	prompts := slack.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: "C0001", ThreadTS: parent, Title: "Try"}
	for range 4 {
		prompts.AddPrompt("Refund", "Refund ORD-123")
	}
	if err := b.api.SetAssistantThreadsSuggestedPrompts(prompts); err != nil {
		t.Fatal(err)
	}
	if r := b.get("/people/sam/channels/C0001/messages?thread_ts=" + parent); r.text("prompts", "3", "message") != "Refund ORD-123" || r.text("prompts_title") != "Try" {
		t.Errorf("prompts: %v", r)
	}
	prompts.AddPrompt("Fifth", "x")
	if err := b.api.SetAssistantThreadsSuggestedPrompts(prompts); !strings.HasPrefix(code(err), "invalid_arguments") {
		t.Errorf("five prompts: %v", err)
	}
}
