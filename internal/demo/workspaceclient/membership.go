package workspaceclient

import (
	"context"
	"net/http"
)

// Invite adds people and bots to a channel that the person is in.
func (v Client) Invite(ctx context.Context, channel string, users ...string) error {
	return v.members(ctx, "invite", channel, users)
}

// Remove removes people and bots from a channel that the person is in.
func (v Client) Remove(ctx context.Context, channel string, users ...string) error {
	return v.members(ctx, "remove", channel, users)
}

func (v Client) members(ctx context.Context, what, channel string, users []string) error {
	return v.call(ctx, http.MethodPost, v.path(what), map[string]any{"channel": channel, "users": users}, nil)
}
