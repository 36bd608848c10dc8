package bot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render/form"
	"countersign/store"
)

// Slack sends these events when a person opens the agent, or views another channel beside the agent. An app that is
// configured as an assistant, with threads of its own, gets the assistant_thread events. An app that is configured as
// an agent gets app_context_changed and app_home_opened instead.
const (
	threadStarted  = "assistant_thread_started"
	threadContext  = "assistant_thread_context_changed"
	contextChanged = "app_context_changed"
	tabMessages    = "messages" // the Messages tab, in app_home_opened events
)

// assistantThread is the subject of the events about an assistant's threads.
type assistantThread struct {
	User    string `json:"user_id"`
	Channel string `json:"channel_id"`
	Thread  string `json:"thread_ts"`
	Context struct {
		Channel string `json:"channel_id"`
	} `json:"context"`
}

// appContext lists the items that a person views beside the agent, the most relevant item first.
type appContext struct {
	Entities []struct {
		Type  string `json:"type"`
		Value any    `json:"value"`
	} `json:"entities"`
}

// channel returns the viewed channel, or "" if there is none.
func (c appContext) channel() string {
	for _, e := range c.Entities {
		if id, ok := e.Value.(string); ok && e.Type == "slack#/types/channel_id" {
			return id
		}
	}
	return ""
}

// viewedChannels caches which channel each person views. The channel is only a hint for the model, so the bot keeps it
// only in memory.
type viewedChannels struct {
	mu sync.Mutex
	by map[string]viewedChannel // the viewed channels, by user id
}

type viewedChannel struct {
	channel string
	at      time.Time
}

// viewedChannelTTL is the lifetime of an entry of viewedChannels, and maxViewedChannels is the maximum number of
// entries.
const (
	viewedChannelTTL  = 15 * time.Minute
	maxViewedChannels = 5000
)

// update records the channel that an event names.
func (l *viewedChannels) update(e event, now time.Time) {
	user, channel := e.Assistant.User, e.Assistant.Context.Channel
	if e.Type == contextChanged || e.Type == "app_home_opened" {
		user, channel = e.userID(), e.Context.channel()
	}
	if user == "" || e.Type != contextChanged && e.Type != threadContext && e.Type != threadStarted && e.Type != "app_home_opened" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil || len(l.by) >= maxViewedChannels {
		l.by = map[string]viewedChannel{}
	}
	l.by[user] = viewedChannel{channel, now}
}

// channelOf returns the channel that a person views beside the agent.
func (l *viewedChannels) channelOf(user string, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.by[user]; now.Sub(at.at) < viewedChannelTTL {
		return at.channel
	}
	return ""
}

// viewedChannelNote returns a note for the model. The note names the channel that the person viewed while writing the
// message. Slack names the channel in the message's event or in an earlier event.
func (b *messageHandler) viewedChannelNote(ctx context.Context, e event) string {
	channel := e.AppContext.channel()
	if channel == "" {
		channel = b.viewedChannels.channelOf(e.userID(), b.Now())
	}
	if channel == "" || !e.dm() || channel == e.channelID() {
		return ""
	}
	called, err := b.channels.Name(ctx, channel)
	if err != nil || called == "" {
		return "" // the bot is not in the channel, so the model must not learn of the channel
	}
	return fmt.Sprintf("(They wrote this while looking at the channel #%s, %s. That may be what they mean by \"here\"; it is not an instruction.)", called, channel)
}

// opensAgent reports whether an event says that a person opened the agent in order to write.
func (e event) opensAgent() bool {
	return e.Type == threadStarted && e.Assistant.User != "" || e.Type == "app_home_opened" && e.Tab == tabMessages && e.userID() != ""
}

// greet shows the suggested messages of the policy's prompts to a person who opened the agent. They are only
// suggestions, so the bot does not retry a failed call.
func (b *messageHandler) greet(ctx context.Context, row store.Inbox, e event) error {
	user, channel, thread := e.Assistant.User, e.Assistant.Channel, e.Assistant.Thread
	if e.Type != threadStarted { // an agent's prompts are not in a thread, but above the input field
		user, channel, thread = e.userID(), e.channelID(), ""
	}
	who, err := b.users.Who(ctx, user, false)
	if err != nil {
		return err
	}
	if err := b.Intake.Done(ctx, row.ID, ""); err != nil {
		return err
	}
	agent, ok := b.Views.Policy().AgentFor(approvers.ChannelRef{Channel: channel, DM: true})
	if !ok || len(agent.Prompts) == 0 {
		return nil
	}
	if denied := agent.MayAsk(who); denied != nil {
		return nil //nolint:nilerr // no prompts to offer to a person who may not ask
	}
	p := slack.AssistantThreadsSetSuggestedPromptsParameters{Title: "Ask in your own words, for example:", ChannelID: channel, ThreadTS: thread}
	for _, prompt := range agent.Prompts {
		p.AddPrompt(prompt.Title, prompt.Message)
	}
	if err := b.api.SetAssistantThreadsSuggestedPromptsContext(ctx, p); err != nil {
		b.Log.InfoContext(ctx, "no prompts could be shown", "inbox", row.ID, "error", err)
	}
	return nil
}

// sessionStopped is the event for a click on the stop button that Slack itself shows for an agent.
const sessionStopped = "agent_session_stopped"

// aboutAgent reports whether an event is about the agent's own area in Slack, and not about a message.
func (e event) aboutAgent() bool {
	return e.opensAgent() || e.Type == sessionStopped && e.channelID() != "" && e.userID() != ""
}

// stopSession handles a click on Slack's stop button. stopSession stops the agent's work in the thread of the button.
func (b *messageHandler) stopSession(ctx context.Context, row store.Inbox, e envelope) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	who, err := b.users.Who(ctx, e.Event.userID(), false)
	if err != nil {
		return err
	}
	turn, err := b.Views.TurnAt(ctx, me.Team, e.Event.channelID(), e.Event.ThreadTS)
	if err == nil && turn == "" && e.Event.dm() { // the top level of a direct message is one conversation
		turn, err = b.Views.TurnAt(ctx, me.Team, e.Event.channelID(), "")
	}
	if err != nil {
		return err
	}
	err = b.Turns.StopBy(ctx, workflow.Click{Inbox: row.ID, At: row.ReceivedAt, Who: who, Turn: turn, Channel: e.Event.channelID()})
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	if d.Code != approvers.DeniedNothing && d.Code != approvers.DeniedNotFound { // with these two codes there is nothing left to stop
		to := ephemeralReply{user: e.Event.userID(), channel: e.Event.channelID(), thread: e.Event.ThreadTS}
		b.ephemeral.reply(ctx, to, form.DeniedAskerText(d, approvers.ChannelRef{DM: e.Event.dm()}))
	}
	return nil
}
