package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
	"countersign/bot/slackapi"
	"countersign/internal/redact"
	"countersign/store"
)

// askScopes is how often the bot asks Slack for its scopes while some are missing. Slack does not report that somebody
// has added them.
const askScopes = time.Minute

// MissingScopes returns the scopes that the policy's features need and a token with the granted scopes does not have.
func MissingScopes(granted []string, p *approvers.Policy) (missing []Scope) {
	for _, s := range Scopes() {
		if !slices.Contains(granted, s.Name) && inUse(s.Name, p) {
			missing = append(missing, s)
		}
	}
	return missing
}

// inUse reports whether the policy uses the feature that needs a scope. p may be nil.
func inUse(scope string, p *approvers.Policy) bool {
	kind, depends := map[string]approvers.MemberKind{"usergroups:read": approvers.MemberGroup, "users:read.email": approvers.MemberEmail}[scope]
	if p == nil || !depends {
		return true
	}
	return slices.ContainsFunc(p.Approvers, func(r approvers.Role) bool {
		return slices.ContainsFunc(r.Members, func(m approvers.Member) bool { return m.Kind == kind })
	}) || kind == approvers.MemberGroup && usesStageGroups(p)
}

// usesStageGroups reports whether a stage asks for people of a user group.
func usesStageGroups(p *approvers.Policy) bool {
	grouped := func(stages []approvers.Stage) bool {
		return slices.ContainsFunc(stages, func(s approvers.Stage) bool { return s.Group != "" })
	}
	if slices.ContainsFunc(p.Tools, func(t approvers.ToolPolicy) bool {
		return grouped(t.Stages) || slices.ContainsFunc(t.Rules, func(r approvers.Rule) bool { return grouped(r.Stages) })
	}) {
		return true
	}
	for _, a := range p.Agents {
		for _, o := range a.Overrides {
			if grouped(o.Stages) {
				return true
			}
		}
	}
	return false
}

// missingScopes returns the scopes that the bot token lacks, as far as Slack has said.
func (b *Bot) missingScopes() []Scope {
	granted := b.api.Scopes()
	if len(granted) == 0 {
		return nil
	}
	return MissingScopes(granted, b.Views.Policy())
}

// Permitted returns an error that names the scopes that the bot token lacks, and what does not work without them.
func (b *Bot) Permitted(context.Context) error {
	var lacks []string
	for _, s := range b.missingScopes() {
		lacks = append(lacks, fmt.Sprintf("%s (the bot can't %s)", s.Name, s.For))
	}
	if len(lacks) == 0 {
		return nil
	}
	return errors.New("the bot token lacks " + strings.Join(lacks, ", ") + ". Add them on the app's page OAuth & Permissions, and reinstall the app")
}

// logScopes tells the operator which scopes are missing.
func (b *Bot) logScopes() {
	for _, s := range b.missingScopes() {
		b.Log.Log(context.Background(), slog.LevelError, "the bot token lacks a scope; add it on the app's page OAuth & Permissions, and reinstall the app", "scope", s.Name, "so the bot can't", s.For)
	}
}

// watchScopes names the missing scopes at the start and after each change. After a change it shows what nobody could be
// shown before.
func (b *Bot) watchScopes(ctx context.Context) {
	if _, err := b.whoAmI(ctx); err != nil {
		b.Log.Debug("Slack did not say which scopes the bot token has", "error", err)
	}
	b.logScopes()
	b.retryUnreached(ctx)
	for {
		waiting, cancel := context.WithTimeout(ctx, askScopes)
		select {
		case <-b.scopesChanged:
			b.Log.Info("the scopes of the bot token have changed", "scopes", b.api.Scopes())
			b.logScopes()
			b.retryUnreached(ctx)
		case <-waiting.Done():
			if ctx.Err() == nil && len(b.missingScopes()) > 0 {
				if _, err := b.api.AuthTestContext(ctx); err != nil { // the answer's header is read
					b.Log.Debug("Slack did not say which scopes the bot token has", "error", err)
				}
			}
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
	}
}

// retryUnreached tries the cards again that nobody could be shown, because the cause may be gone.
func (b *Bot) retryUnreached(ctx context.Context) {
	if err := b.Outbox.RetryUnreached(ctx); err != nil && ctx.Err() == nil {
		b.Log.Warn("requests that nobody could be shown are not tried again now", "error", err)
	}
}

// isUnpermitted reports whether Slack refused a call because of a missing scope.
func isUnpermitted(err error) bool { return slackapi.ErrorCode(err) == "missing_scope" }

// unpermitted ends a delivery that can't be handled because of a missing scope, and tells its sender at once.
func (b *Bot) unpermitted(ctx context.Context, row store.Inbox, cause error) error {
	b.Log.Error("a delivery was set aside, because the bot token lacks a scope; add it on the app's page OAuth & Permissions, and reinstall the app",
		"inbox", row.ID, "kind", string(row.Kind), "cause", slackapi.Explain(cause))
	if err := b.Intake.Done(ctx, row.ID, redact.Error(cause)); errors.Is(err, workflow.ErrHandled) || errors.Is(err, store.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	if r := senderOf(row); r.user != "" && b.addressed(row) {
		b.replyEphemeral(ctx, r, render.Unpermitted())
	}
	return nil
}

// addressed reports whether a delivery is meant for the bot: not a message of a channel that the bot only overhears.
func (b *Bot) addressed(row store.Inbox) bool {
	if row.Kind != store.InboxEvent {
		return true
	}
	e, err := readEnvelope(row.Payload)
	return err == nil && (e.Event.Type == "app_mention" || e.Event.Type == "message" && e.Event.dm())
}
