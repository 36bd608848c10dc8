package bot

import (
	"context"

	"countersign/bot/render"
)

// reader returns a person's time format. If Slack does not provide it, times are in UTC.
func (b *Bot) reader(ctx context.Context, user string) render.Reader {
	u, err := b.users.User(ctx, user, false)
	if err != nil {
		return render.Reader{}
	}
	return render.Reader{Zone: render.ZoneOf(u), Locale: u.Locale}
}

// known returns a person's time format from Slack's recent answers, without a call.
func (b *Bot) known(user string) render.Reader {
	u, ok := b.users.Known(user)
	if !ok {
		return render.Reader{}
	}
	return render.Reader{Zone: render.ZoneOf(u), Locale: u.Locale}
}
