package bot

import (
	"context"
	"errors"
)

// Run receives from Slack until ctx ends: through Socket Mode, or over HTTP where Config.Listen says so. It returns early only where Slack refuses a token, or
// where nobody can listen: while Slack can't be reached it tries again.
func (b *Bot) Run(ctx context.Context) error {
	if err := b.Check(ctx); errors.Is(err, ErrToken) {
		return err
	}
	defer b.side.Wait()
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	b.side.Go(func() { b.governor.contact.watch(watching) })
	b.side.Go(func() { b.learnPlaces(watching) })
	if b.overHTTP() {
		return b.serveRequests(ctx)
	}
	return b.readSockets(ctx)
}

// overHTTP reports which of the two ways Slack delivers on.
func (b *Bot) overHTTP() bool { return b.Listen != nil }
