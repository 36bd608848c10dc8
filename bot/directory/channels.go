package directory

import (
	"context"
	"fmt"
	"strings"
	"time"

	"countersign/bot/slackapi"

	"github.com/slack-go/slack"
)

// channelTTL is how long a channel's name and id are cached. Events about channels invalidate them sooner.
const channelTTL = 10 * time.Minute

// Channels returns the names and ids of channels. Channels is safe for concurrent use.
type Channels struct {
	api   *slack.Client
	names *Cache[string]            // name by channel id
	own   *Cache[map[string]string] // id by name of the channels that the bot is in
	ids   *Cache[map[string]string] // id by name of all channels that the bot can see
	dms   *Cache[string]            // direct-message channel by user id
	ext   *Cache[bool]              // whether a channel is shared with another organisation, by channel id
	was   *Cache[bool]              // like ext, but with a longer lifetime; used while a rate limit delays the call
}

func NewChannels(api *slack.Client, now func() time.Time) *Channels {
	return &Channels{
		api: api, names: NewCache[string](now, channelTTL),
		own: NewCache[map[string]string](now, channelTTL), ids: NewCache[map[string]string](now, channelTTL),
		dms: NewCache[string](now, 24*time.Hour), ext: NewCache[bool](now, IdentityTTL), was: NewCache[bool](now, channelTTL),
	}
}

// missingScope is Slack's error code if the bot token lacks a permission. The code does not say whether the channel
// exists.
const missingScope = "missing_scope"

// Name returns the name of a channel, or "" for a channel that Slack does not show to the bot.
func (p *Channels) Name(ctx context.Context, channel string) (string, error) {
	return p.names.Get(ctx, channel, false, func() (string, error) {
		c, err := p.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: channel})
		if code := slackapi.ErrorCode(err); slackapi.IsUnreachable(code) && code != missingScope {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("conversations.info: %w", slackapi.WithDelay(err))
		}
		return c.Name, nil
	})
}

// IsShared reports whether people of other organisations are in a channel. If fresh is set, IsShared does not use the
// cached answer. If fresh is not set and Slack's rate limit delays the call, IsShared uses an earlier answer. This is
// safe, because an event would have invalidated an outdated answer.
func (p *Channels) IsShared(ctx context.Context, channel string, fresh bool) (bool, error) {
	ext, err := p.ext.Get(ctx, channel, fresh, func() (bool, error) {
		c, err := p.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: channel})
		if code := slackapi.ErrorCode(err); slackapi.IsUnreachable(code) && code != missingScope {
			return false, nil // a post in this channel fails with the same code
		}
		if err != nil {
			return false, fmt.Errorf("conversations.info: %w", slackapi.WithDelay(err))
		}
		return c.IsExtShared, nil
	})
	if err == nil {
		p.was.put(channel, ext)
	} else if was, ok := p.was.peek(channel); ok && slackapi.IsPutOff(err) && !fresh {
		return was, nil
	}
	return ext, err
}

// IsMember asks Slack whether the bot is in a channel.
func (p *Channels) IsMember(ctx context.Context, channel string) (bool, error) {
	c, err := p.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: channel})
	if err != nil {
		return false, fmt.Errorf("conversations.info: %w", slackapi.WithDelay(err))
	}
	return c.IsMember, nil
}

// errNoChannel is Slack's error for a channel that does not exist or that the bot cannot see.
var errNoChannel = slack.SlackErrorResponse{Err: "channel_not_found"}

// ID returns the id of a channel that the policy names as #name or by id. ID looks first among the channels that the
// bot is in, because a list of all channels of a large workspace takes many calls.
func (p *Channels) ID(ctx context.Context, channel string) (string, error) {
	if !strings.HasPrefix(channel, "#") && channelID(channel) {
		return channel, nil
	}
	name := strings.TrimPrefix(channel, "#")
	for i, from := range []struct {
		cache *Cache[map[string]string]
		fresh bool
		list  func(context.Context) (map[string]string, error)
	}{{p.own, false, p.listOwn}, {p.ids, false, p.list}, {p.ids, true, p.list}} { // the last list is not read from the cache, because the channel may be newer than the cached list
		ids, err := from.cache.Get(ctx, "", from.fresh, func() (map[string]string, error) { return from.list(ctx) })
		if err != nil && (i > 0 || slackapi.RetryDelay(err) > 0) { // if Slack refuses the first list, the second list has its names, too
			return "", err
		}
		if id, ok := ids[name]; ok {
			return id, nil
		}
	}
	return "", fmt.Errorf("#%s: %w", name, errNoChannel)
}

func channelID(s string) bool {
	return len(s) > 1 && strings.ContainsRune("CGD", rune(s[0])) && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// named lists the types of the channels that have a name.
var named = []string{"public_channel", "private_channel"}

func (p *Channels) listOwn(ctx context.Context) (map[string]string, error) {
	ids := map[string]string{}
	query := slack.GetConversationsForUserParameters{ExcludeArchived: true, Limit: 1000, Types: named}
	for more := true; more; more = query.Cursor != "" {
		channels, next, err := p.api.GetConversationsForUserContext(ctx, &query)
		if err != nil {
			return nil, fmt.Errorf("users.conversations: %w", slackapi.WithDelay(err))
		}
		for _, c := range channels {
			ids[c.Name] = c.ID
		}
		query.Cursor = next
	}
	return ids, nil
}

func (p *Channels) list(ctx context.Context) (map[string]string, error) {
	ids := map[string]string{}
	query := slack.GetConversationsParameters{ExcludeArchived: true, Limit: 1000, Types: named}
	err := EachChannel(ctx, p.api, query, func(c slack.Channel) { ids[c.Name] = c.ID })
	return ids, err
}

// EachChannel calls do for each channel that the bot can see.
func EachChannel(ctx context.Context, api *slack.Client, query slack.GetConversationsParameters, do func(slack.Channel)) error {
	for {
		channels, next, err := api.GetConversationsContext(ctx, &query)
		if err != nil {
			return fmt.Errorf("conversations.list: %w", slackapi.WithDelay(err))
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

// DirectMessages returns the id of the direct-message channel with a user, and opens it if necessary. If fresh is set,
// DirectMessages opens the channel even if its id is cached. Callers set fresh after Slack has reported that the cached
// channel does not exist.
func (p *Channels) DirectMessages(ctx context.Context, user string, fresh bool) (string, error) {
	return p.dms.Get(ctx, user, fresh, func() (string, error) {
		c, _, _, err := p.api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{user}})
		if err != nil {
			return "", fmt.Errorf("conversations.open: %w", slackapi.WithDelay(err))
		}
		return c.ID, nil
	})
}

// Invalidate drops the cached answers that an event makes invalid. channel is the channel of the event, if any.
func (p *Channels) Invalidate(event, channel string) {
	switch event {
	case "channel_rename", "group_rename", "channel_created", "channel_archive", "channel_unarchive", "channel_deleted", "channel_left", "group_left",
		"group_archive", "group_unarchive", "group_deleted", "member_joined_channel":
		p.names.forget("")
		p.own.forget("")
		p.ids.forget("")
	case ChannelShared, ChannelUnshared:
		p.ext.forget(channel)
		p.was.forget(channel)
	}
}

// These events report a change in the sharing of a channel with another organisation.
const (
	ChannelShared   = "channel_shared"
	ChannelUnshared = "channel_unshared"
)
