package bot

import (
	"context"
	"errors"

	"countersign/bot/transport"
)

// newTransport returns the transport that the configuration chooses. The bot is its handler.
func newTransport(b *Bot) transport.Transport {
	common := transport.Options{Handler: b, Log: b.Log, Now: b.Now}
	if b.overHTTP() {
		return transport.NewHTTP(transport.HTTPOptions{Options: common, Listen: b.Listen, SigningSecret: b.SigningSecret, Count: b.CountRequest})
	}
	refused := func(err error) bool { return errors.Is(err, ErrToken) }
	return transport.NewSocketMode(transport.SocketModeOptions{Options: common, Address: b.socketAddress, Final: refused, HTTP: b.HTTP})
}

// overHTTP reports whether Slack delivers over HTTP and not through Socket Mode.
func (b *Bot) overHTTP() bool { return b.Listen != nil }

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
	return b.transport.Run(ctx)
}

// Ready returns nil if the bot can receive from Slack, and Slack answers.
func (b *Bot) Ready(context.Context) error {
	if err := b.api.Available(); err != nil {
		return err
	}
	return b.transport.Ready()
}

// Arriving returns an error if, as far as the bot can know, nothing of Slack's arrives although the bot is ready.
func (b *Bot) Arriving() error { return b.transport.Arriving() }

// Worth reports whether calls to Slack may succeed now: Slack answers, or it is time to test whether it does.
func (b *Bot) Worth() bool { return b.api.Worth() }
