package bot

import (
	"context"
	"errors"
)

// Run receives from Slack until ctx ends, through Socket Mode or, if Config.Listen is set, over HTTP. It returns early
// only if Slack refuses a token or the bot can't listen. While Slack can't be reached, it retries.
func (b *Bot) Run(ctx context.Context) error {
	if err := b.Check(ctx); errors.Is(err, ErrToken) {
		return err
	}
	defer b.side.Wait()
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	b.side.Go(func() { b.api.Watch(watching) })
	b.side.Go(func() { b.lookUpCardChannels(watching) })
	if b.overHTTP() {
		return b.serveRequests(ctx)
	}
	return b.readSockets(ctx)
}

// overHTTP reports whether Slack delivers over HTTP and not through Socket Mode.
func (b *Bot) overHTTP() bool { return b.Listen != nil }
