package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"countersign/approvers"
	"countersign/bot/directory"
	"countersign/bot/slackapi"
	"countersign/store"
)

// askScopes is how often the bot asks Slack for its scopes while scopes are missing. Slack does not report added
// scopes.
const askScopes = time.Minute

// MissingScopes returns the missing scopes that the policy's features need.
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
	}) || kind == approvers.MemberGroup && len(groupsOf(p)) > 0
}

// groupsOf lists the user groups that the policy's roles and stages name, by id or handle.
func groupsOf(p *approvers.Policy) (groups []string) {
	for _, role := range p.Approvers {
		groups = append(groups, role.Groups()...)
	}
	stages := slices.Clone(p.Defaults.UnknownTool.Stages)
	for _, t := range p.Tools {
		stages = append(stages, t.Stages...)
		for _, rule := range t.Rules {
			stages = append(stages, rule.Stages...)
		}
	}
	for _, a := range p.Agents {
		for _, o := range a.Overrides {
			stages = append(stages, o.Stages...)
		}
	}
	for _, s := range stages {
		if s.Group != "" {
			groups = append(groups, s.Group)
		}
	}
	return groups
}

// Permissions compares the scopes of the bot token with the scopes that the policy needs. Permissions is safe for
// concurrent use.
type Permissions struct {
	*core
	changed chan struct{} // signals that Slack's latest answer has other scopes than the previous one
	retries atomic.Int64  // how often refused cards, answers and questions were tried again
}

func newPermissions(k *core) *Permissions {
	return &Permissions{core: k, changed: make(chan struct{}, 1)}
}

// rescoped records that the scopes have changed. The function never waits.
func (p *Permissions) rescoped() {
	select {
	case p.changed <- struct{}{}:
	default: // the change is already signalled
	}
}

// missing returns the scopes that the bot token lacks, according to Slack's latest answer.
func (p *Permissions) missing() []Scope {
	granted := p.api.Scopes()
	if len(granted) == 0 {
		return nil
	}
	return MissingScopes(granted, p.Views.Policy())
}

// Complete returns nil, or an error that names the missing scopes of the bot token and the features that need them.
func (p *Permissions) Complete(context.Context) error {
	var lacks []string
	for _, s := range p.missing() {
		lacks = append(lacks, fmt.Sprintf("%s (the bot can't %s)", s.Name, s.For))
	}
	if len(lacks) == 0 {
		return nil
	}
	return errors.New("the bot token lacks " + strings.Join(lacks, ", ") + ". Add them on the app's page OAuth & Permissions, and reinstall the app")
}

// watch works at the start and after each change of the scopes: it logs the missing scopes, and tries refused cards,
// answers and questions again.
func (p *Permissions) watch(ctx context.Context) {
	if len(p.api.Scopes()) == 0 {
		p.ask(ctx)
	}
	p.examine(ctx)
	for {
		waiting, cancel := context.WithTimeout(ctx, askScopes)
		select {
		case <-p.changed:
			p.Log.InfoContext(ctx, "the scopes of the bot token have changed", "scopes", p.api.Scopes())
			p.users.ForgetGroups()
			p.examine(ctx)
		case <-waiting.Done():
			if ctx.Err() == nil && len(p.missing()) > 0 {
				p.ask(ctx)
			}
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
	}
}

// ask makes a call only to learn the scopes, because Slack's answer names them.
func (p *Permissions) ask(ctx context.Context) {
	if _, err := p.api.AuthTestContext(ctx); err != nil {
		p.Log.DebugContext(ctx, "Slack did not say which scopes the bot token has", "error", err)
	}
}

// examine tells the operator which scopes are missing, and tries refused cards, answers and questions again.
func (p *Permissions) examine(ctx context.Context) {
	for _, s := range p.missing() {
		p.Log.ErrorContext(ctx, "the bot token lacks a scope; add it on the app's page OAuth & Permissions, and reinstall the app", "scope", s.Name, "needed_for", s.For)
	}
	p.retryUnreached(ctx)
}

// retryUnreached tries refused cards, answers and questions again, because the cause may be gone.
func (p *Permissions) retryUnreached(ctx context.Context) {
	p.retries.Add(1)
	p.retry(ctx)
}

// afterRefusal is called after a refusal was recorded. The parameter "before" is the value of retries when the refused
// call began. If a retry began during the call, the cause of the refusal may have ended. In this case, afterRefusal
// tries all refused messages again.
func (p *Permissions) afterRefusal(ctx context.Context, before int64) {
	if p.retries.Load() != before {
		p.retry(ctx)
	}
}

func (p *Permissions) retry(ctx context.Context) {
	if err := p.Outbox.RetryUnreached(ctx); err != nil && ctx.Err() == nil {
		p.Log.WarnContext(ctx, "refused cards, answers and questions could not be tried again", "error", err)
	}
}

// isUnpermitted reports whether Slack refused a call because of a missing scope.
func isUnpermitted(err error) bool { return slackapi.ErrorCode(err) == "missing_scope" }

// isAddressed reports whether a delivery is for the bot, and not only a message between other people.
func isAddressed(row store.Inbox, self *fetchedOnce[directory.Self]) bool {
	if row.Kind != store.InboxEvent {
		return true
	}
	e, err := readEnvelope(row.Payload)
	me, known := self.known()
	return err == nil && (e.Event.Type == "app_mention" || e.Event.Type == "message" && (e.Event.dm() || known && mentions(e.Event.Text, me.User)))
}
