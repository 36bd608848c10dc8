package bot

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// knownPlace is how long a channel's name and id are used again. An event on a renamed channel drops them sooner.
const knownPlace = 10 * time.Minute

// places remembers channels.
type places struct {
	api   *slack.Client
	names *memory[string]            // name by channel id
	ids   *memory[map[string]string] // channel id by name
	dms   *memory[string]            // direct-message channel by user id
	ext   *memory[bool]              // whether a channel is shared with another organisation, by its id
	was   *memory[bool]              // the same, for longer: what counts while Slack takes no more such questions
}

func newPlaces(api *slack.Client, now func() time.Time) *places {
	return &places{
		api: api, names: newMemory[string](now, knownPlace), ids: newMemory[map[string]string](now, knownPlace),
		dms: newMemory[string](now, 24*time.Hour), ext: newMemory[bool](now, trusted), was: newMemory[bool](now, knownPlace),
	}
}

// name is a channel's name; empty for one that Slack does not show to the bot.
func (p *places) name(ctx context.Context, channel string) (string, error) {
	return p.names.get(channel, false, func() (string, error) {
		c, err := p.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: channel})
		if gone[errorCode(err)] {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("conversations.info: %w", slow(err))
		}
		return c.Name, nil
	})
}

// shared reports whether people of other organisations are in a channel. fresh asks Slack anew. Where Slack takes no more questions for now an answer from
// before counts: events would have dropped it.
func (p *places) shared(ctx context.Context, channel string, fresh bool) (bool, error) {
	ext, err := p.ext.get(channel, fresh, func() (bool, error) {
		c, err := p.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: channel})
		if gone[errorCode(err)] {
			return false, nil // posting says so too
		}
		if err != nil {
			return false, fmt.Errorf("conversations.info: %w", slow(err))
		}
		return c.IsExtShared, nil
	})
	if err == nil || isPutOff(err) && !fresh {
		return p.was.get(channel, err == nil, func() (bool, error) { return ext, err })
	}
	return ext, err
}

// errNoChannel is what Slack itself answers for a channel that it does not know, or does not show to the bot.
var errNoChannel = slack.SlackErrorResponse{Err: "channel_not_found"}

// errNoThread is what Slack answers for a thread that is not there any more, where it does not post to the channel instead.
var errNoThread = slack.SlackErrorResponse{Err: "thread_not_found"}

// channel finds the id of a channel that the policy names as #name or by id.
func (p *places) channel(ctx context.Context, named string) (string, error) {
	if !strings.HasPrefix(named, "#") && channelID(named) {
		return named, nil
	}
	named = strings.TrimPrefix(named, "#")
	for _, fresh := range []bool{false, true} { // it may be younger than what is remembered
		ids, err := p.ids.get("", fresh, func() (map[string]string, error) { return p.list(ctx) })
		if err != nil {
			return "", err
		}
		if id, ok := ids[named]; ok {
			return id, nil
		}
	}
	return "", fmt.Errorf("#%s: %w", named, errNoChannel)
}

func channelID(s string) bool {
	return len(s) > 1 && strings.ContainsRune("CGD", rune(s[0])) && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

func (p *places) list(ctx context.Context) (map[string]string, error) {
	ids := map[string]string{}
	query := slack.GetConversationsParameters{ExcludeArchived: true, Limit: 1000, Types: []string{"public_channel", "private_channel"}}
	err := eachChannel(ctx, p.api, query, func(c slack.Channel) { ids[c.Name] = c.ID })
	return ids, err
}

// eachChannel goes through the channels that the bot can see.
func eachChannel(ctx context.Context, api *slack.Client, query slack.GetConversationsParameters, do func(slack.Channel)) error {
	for {
		channels, next, err := api.GetConversationsContext(ctx, &query)
		if err != nil {
			return fmt.Errorf("conversations.list: %w", slow(err))
		}
		for _, c := range channels {
			do(c)
		}
		if next == "" {
			return nil
		}
		query.Cursor = next
	}
}

// dm opens the direct messages with a user, or finds them open.
func (p *places) dm(ctx context.Context, user string) (string, error) {
	return p.dms.get(user, false, func() (string, error) {
		c, _, _, err := p.api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{user}})
		if err != nil {
			return "", fmt.Errorf("conversations.open: %w", slow(err))
		}
		return c.ID, nil
	})
}

// heed forgets what an event says has changed.
func (p *places) heed(e event) {
	switch e.Type {
	case "channel_rename", "group_rename", "channel_created", "channel_archive", "channel_unarchive", "channel_deleted", "channel_left", "group_left",
		"group_archive", "group_unarchive", "group_deleted", "member_joined_channel":
		p.names.forget("")
		p.ids.forget("")
	case channelShared, channelUnshared:
		p.ext.forget(e.channelID())
		p.was.forget(e.channelID())
	}
}
