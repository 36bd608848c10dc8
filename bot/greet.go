package bot

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/store"
)

// The events by which Slack tells that somebody opened the agent, and what they look at beside it. Which of them come depends on how the app is set up: as an
// assistant with threads of its own, or as an agent.
const (
	threadStarted  = "assistant_thread_started"
	threadContext  = "assistant_thread_context_changed"
	contextChanged = "app_context_changed"
	tabMessages    = "messages" // of app_home_opened
)

// assistantThread is what the events of an assistant's threads are about.
type assistantThread struct {
	User    string `json:"user_id"`
	Channel string `json:"channel_id"`
	Thread  string `json:"thread_ts"`
	Context struct {
		Channel string `json:"channel_id"`
	} `json:"context"`
}

// appContext is what somebody looks at beside the agent, the most relevant first.
type appContext struct {
	Entities []struct {
		Type  string `json:"type"`
		Value any    `json:"value"`
	} `json:"entities"`
}

// channel is the channel that somebody looks at; empty: none.
func (c appContext) channel() string {
	for _, e := range c.Entities {
		if id, ok := e.Value.(string); ok && e.Type == "slack#/types/channel_id" {
			return id
		}
	}
	return ""
}

// looks remember which channel people look at, for a while. It is a hint for the model, kept in memory only.
type looks struct {
	mu sync.Mutex
	by map[string]look // by user
}

type look struct {
	channel string
	at      time.Time
}

// How long it counts what somebody looked at, and of how many people it is remembered.
const (
	looksLast = 15 * time.Minute
	maxLooks  = 5000
)

// heed takes in what an event says of what somebody looks at.
func (l *looks) heed(e event, now time.Time) {
	user, channel := e.Assistant.User, e.Assistant.Context.Channel
	if e.Type == contextChanged || e.Type == "app_home_opened" {
		user, channel = e.userID(), e.Context.channel()
	}
	if user == "" || e.Type != contextChanged && e.Type != threadContext && e.Type != threadStarted && e.Type != "app_home_opened" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil || len(l.by) >= maxLooks {
		l.by = map[string]look{}
	}
	l.by[user] = look{channel, now}
}

// of is the channel that somebody looks at beside the agent.
func (l *looks) of(user string, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.by[user]; now.Sub(at.at) < looksLast {
		return at.channel
	}
	return ""
}

// beside says to the model which channel a message was written beside. Slack says it with the message itself, or before it.
func (b *Bot) beside(ctx context.Context, e event) string {
	channel := e.AppContext.channel()
	if channel == "" {
		channel = b.looks.of(e.userID(), b.Now())
	}
	if channel == "" || !e.dm() || channel == e.channelID() {
		return ""
	}
	called, err := b.places.name(ctx, channel)
	if err != nil || called == "" {
		return "" // the bot is not there, so it is none of its business
	}
	return fmt.Sprintf("(They wrote this while looking at the channel #%s, %s. That may be what they mean by \"here\"; it is no instruction.)", called, channel)
}

// opened reports whether an event says that somebody opened the agent to write to it.
func (e event) opened() bool {
	return e.Type == threadStarted && e.Assistant.User != "" || e.Type == "app_home_opened" && e.Tab == tabMessages && e.userID() != ""
}

// greet shows whoever opened the agent what they could ask it for, by the policy. It is help, not state: nothing is tried again.
func (b *Bot) greet(ctx context.Context, row store.Inbox, e event) error {
	user, channel, thread := e.Assistant.User, e.Assistant.Channel, e.Assistant.Thread
	if e.Type != threadStarted { // an agent's prompts stand above where people write, and in no thread
		user, channel, thread = e.userID(), e.channelID(), ""
	}
	who, err := b.who(ctx, user, false)
	if err != nil {
		return err
	}
	if err := b.Desk.Done(ctx, row.ID, ""); err != nil {
		return err
	}
	agent, ok := b.Desk.Policy().AgentFor(approvers.Place{Channel: channel, DM: true})
	if !ok || len(agent.Prompts) == 0 {
		return nil
	}
	if denied := agent.MayAsk(who); denied != nil {
		return nil //nolint:nilerr // there is nothing that they could be offered
	}
	p := slack.AssistantThreadsSetSuggestedPromptsParameters{Title: "Ask in your own words, for example:", ChannelID: channel, ThreadTS: thread}
	for _, prompt := range agent.Prompts {
		p.AddPrompt(prompt.Title, prompt.Message)
	}
	if err := b.api.SetAssistantThreadsSuggestedPromptsContext(ctx, p); err != nil {
		b.Log.Info("no prompts could be shown", "error", err)
	}
	return nil
}
