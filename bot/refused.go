package bot

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers/workflow/settings"
	"countersign/bot/render/block"
	"countersign/bot/slackapi"
)

// A workspace or its plan may lack kinds of blocks or methods. Slack then refuses messages that use them. This file
// sends messages in spite of such refusals. The bot records a refused kind or method in the store, and does not use it
// for a while. Then the bot tries the kind or method again.

// These values are how long the bot avoids a refused feature. After that time, the workspace may accept the feature, so
// the bot tries it again.
const (
	kindRefused   = 24 * time.Hour
	usualRefused  = time.Hour // for a kind of block that Slack has had for years
	methodRefused = time.Hour
	methodFailed  = 10 * time.Minute // for a method whose answers were not in Slack's format
)

// These are the names of refused features that are not kinds of blocks.
const (
	refusedStreams  = "chat.startStream"
	refusedFiles    = "files.getUploadURLExternal"
	refusedStatuses = "assistant.threads.setStatus"
	refusedMetadata = "metadata"
)

// refusedBySlack tracks the kinds of blocks and the methods that Slack refuses in this workspace. The store has a copy
// of the refusals.
type refusedBySlack struct {
	views  Views
	outbox Outbox
	log    *slog.Logger
	now    func() time.Time

	mu   sync.Mutex
	read bool
	by   map[string]settings.Refusal
}

func newRefusedBySlack(c Config) *refusedBySlack {
	return &refusedBySlack{views: c.Views, outbox: c.Outbox, log: c.Log, now: c.Now, by: map[string]settings.Refusal{}}
}

// known returns the features that Slack refuses now, by name.
func (r *refusedBySlack) known(ctx context.Context) map[string]settings.Refusal {
	r.readOnce(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	now, out := r.now(), map[string]settings.Refusal{}
	for what, one := range r.by {
		if one.Until.After(now) {
			out[what] = one
		}
	}
	return out
}

// readOnce reads the stored refusals, unless an earlier call has read them. readOnce does not hold the lock during the
// read, so other messages do not wait for a slow store.
func (r *refusedBySlack) readOnce(ctx context.Context) {
	r.mu.Lock()
	read := r.read
	r.mu.Unlock()
	if read {
		return
	}
	list, err := r.views.Refusals(ctx)
	if err != nil {
		r.log.DebugContext(ctx, "Slack's refusals could not be read from the store", "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = true
	for _, one := range list {
		if _, newer := r.by[one.What]; !newer { // another call recorded the refusal while the store was read
			r.by[one.What] = one
		}
	}
}

// has reports whether a refusal of a feature is in force. While it is in force, the bot does not use the feature.
func (r *refusedBySlack) has(ctx context.Context, what string) bool {
	_, yes := r.known(ctx)[what]
	return yes
}

// remember records that Slack refuses a feature. The function reports whether the refusal is new.
func (r *refusedBySlack) remember(ctx context.Context, what string, cause error, lasts time.Duration) (fresh bool) {
	if r.has(ctx, what) {
		return false
	}
	now := r.now()
	one := settings.Refusal{What: what, Since: now.UTC(), Until: now.Add(lasts).UTC(), Cause: slackapi.Explain(cause)}
	r.mu.Lock()
	r.by[what] = one
	r.mu.Unlock()
	if err := r.outbox.Refused(context.WithoutCancel(ctx), one); err != nil {
		r.log.WarnContext(ctx, "a refusal of Slack could not be stored; it is only remembered until the next start", "what", what, "error", err)
	}
	return true
}

// markMissing records that Slack does not have an optional method of its API, or does not let the app use it. The
// parameter "instead" is a text for the log. The text describes the bot's behaviour without the method.
func (r *refusedBySlack) markMissing(ctx context.Context, method, instead string, cause error) {
	lasts := methodRefused
	if slackapi.IsUnusable(cause) {
		lasts = methodFailed
	}
	if r.remember(ctx, method, cause, lasts) {
		r.log.WarnContext(ctx, "Slack refuses a method; "+instead, "method", method, "cause", slackapi.Explain(cause), "again_in", lasts)
	}
}

// simplest returns an outbox message without the kinds of blocks that Slack refuses.
func (r *refusedBySlack) simplest(ctx context.Context, d block.Rendered) block.Rendered {
	known := r.known(ctx)
	for i, m := range d.Messages {
		simpler, whole := block.Simplify(m, block.AsDrawn, func(kind string) bool { _, yes := known[kind]; return yes })
		d = d.With(i, simpler, whole)
	}
	return d
}

// inSimplerForms sends a message. If Slack refuses the blocks, inSimplerForms sends the message in simpler forms. The
// parameter last is the simplest form that it tries. inSimplerForms returns the accepted message, and whether the
// blocks of this message have all texts and buttons of m.
func (r *refusedBySlack) inSimplerForms(
	ctx context.Context, m block.Message, last block.Simplicity, send func(block.Message) error,
) (sent block.Message, whole bool, err error) {
	var cause error
	var newly []string // kinds of blocks that Slack named
	form, silent := block.AsDrawn, true
	for {
		refused := r.known(ctx)
		sent, whole = block.Simplify(m, form, func(kind string) bool { _, known := refused[kind]; return known || slices.Contains(newly, kind) })
		switch {
		case len(sent.Blocks) > 0:
		case last < block.TextOnly: // a Home tab consists only of blocks
			sent, whole = block.Simplify(m, form, func(string) bool { return false })
		default:
			form = block.TextOnly
		}
		err = send(sent)
		if err == nil || !slackapi.IsBlocksRefused(err) || form >= last {
			break
		}
		cause = err
		named, said := kindsNamed(sent, err)
		silent = silent && !said
		named = slices.DeleteFunc(named, func(kind string) bool { return slices.Contains(newly, kind) })
		if newly = append(newly, named...); len(named) == 0 {
			form = simplerThan(form, sent)
		}
	}
	if err != nil || cause == nil {
		return sent, whole, err
	}
	if silent { // Slack gave no reason: perhaps it refuses the content of this message, or a newer kind of block that the accepted form does not have
		newly = slices.DeleteFunc(m.Kinds(), func(kind string) bool { return slices.Contains(sent.Kinds(), kind) || block.IsUsualKind(kind) })
	}
	news := false
	for _, kind := range newly {
		lasts := kindRefused
		if block.IsUsualKind(kind) {
			lasts = usualRefused
		}
		news = r.remember(ctx, kind, cause, lasts) || news
	}
	if news || len(newly) == 0 {
		r.log.WarnContext(ctx, "Slack refuses blocks; the message is shown in a simpler form", "kinds", newly, "form", int(form), "cause", slackapi.Explain(cause))
	}
	return sent, whole, nil
}

// sendContent calls send with the content of a message, in a form that Slack accepts.
func (r *refusedBySlack) sendContent(ctx context.Context, m block.Message, send func(...slack.MsgOption) error) error {
	_, _, err := r.inSimplerForms(ctx, m, block.TextOnly, func(m block.Message) error { return send(options(m)...) })
	return err
}

// simplerThan returns the next simpler form in which the sent message would look different.
func simplerThan(form block.Simplicity, sent block.Message) block.Simplicity {
	if form == block.AsDrawn && !slices.ContainsFunc(sent.Kinds(), func(kind string) bool { return !block.IsUsualKind(kind) }) {
		return block.SectionsOnly
	}
	return form + 1
}

// kindsNamed returns the kinds of blocks that Slack's error names as not accepted. Any complaint about a block of a
// newer kind counts as a refusal of this kind. The result "said" is false if Slack gave no reason.
func kindsNamed(m block.Message, err error) (kinds []string, said bool) {
	faults, said := slackapi.BlockFaults(err)
	for _, f := range faults {
		kind := f.Name
		if !slices.Contains(m.Kinds(), kind) {
			if kind != "" || f.Index >= len(m.Blocks) { // the message has no such kind or block
				continue
			}
			kind = string(m.Blocks[f.Index].BlockType())
		}
		if (f.Kind || !block.IsUsualKind(kind)) && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, said
}

// If Slack answers each call to a method, but never in the format of the Web API, the method may not exist in this
// workspace. After a few tries, the method counts as missing. An outage of Slack does not have this effect, because the
// circuit breaker stops calls earlier.

// mostUnusable is the number of tries after which a method counts as missing, and after which a refused message counts
// as unreachable even if the bot does not know Slack's code.
const mostUnusable = 6

type triesKey struct{}

// withTries stores in a context how often the work was tried before.
func withTries(ctx context.Context, tries int) context.Context {
	return context.WithValue(ctx, triesKey{}, tries)
}

// isRefusedRepeatedly reports whether Slack has refused work after several tries, with a code that is not about the token.
func isRefusedRepeatedly(ctx context.Context, err error) bool {
	tries, _ := ctx.Value(triesKey{}).(int)
	code := slackapi.ErrorCode(err)
	return tries >= mostUnusable && code != "" && slackapi.IsRefused(err) && !slackapi.IsTokenRefusal(code)
}

// hasNoMethod reports whether an error says that Slack lacks the method. hasNoMethod also returns true if, after
// several tries, no answer was in Slack's format.
func hasNoMethod(ctx context.Context, err error) bool {
	tries, _ := ctx.Value(triesKey{}).(int)
	return slackapi.IsMissing(err) || slackapi.IsUnusable(err) && tries >= mostUnusable
}
