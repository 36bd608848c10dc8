package view

import (
	"context"

	"countersign/approvers"
	"countersign/store"
)

// readGrant reads a grant, and the conversation in which a person gave the grant.
func (m *Model) readGrant(hash func(tool string) string, r store.Reader, id string) error {
	g, err := r.Grant(id)
	if err != nil {
		return err
	}
	m.Grant = &g
	if g.State == approvers.GrantLive && m.Now.Before(g.Until) {
		m.Stalled = g.Stalled(approvers.DecisionContext{Policy: m.Policy, Now: m.Now}, hash(g.Tool))
	}
	if g.Conversation == "" || approvers.IsCallerScope(g.Conversation) {
		return nil
	}
	m.Conversation, err = r.Conversation(g.Conversation)
	return err
}

// GrantOf reads the grant under which an execution ran. If the execution ran without a grant, or the grant is erased,
// GrantOf returns nil. Retention keeps the grants of stored executions, except for grants whose chain an earlier
// program has deleted.
func GrantOf(r store.Reader, e approvers.Execution) (*approvers.Grant, error) {
	if e.GrantUse == 0 {
		return nil, nil
	}
	g, err := r.Grant(e.Grant)
	if err != nil {
		return nil, store.IgnoreNotFound(err)
	}
	return &g, nil
}

// GrantOwnerOf returns the person who gave the grant under which an execution ran. If the execution ran without a
// grant, or the grant is erased, GrantOwnerOf returns "".
func GrantOwnerOf(r store.Reader, e approvers.Execution) (approvers.PersonID, error) {
	g, err := GrantOf(r, e)
	if g == nil || err != nil {
		return "", err
	}
	return g.By, nil
}

// Grants lists the grants in force, oldest first. Each entry has the grant's conversation, and the direct message about
// the grant to the person in the parameter "who".
func (v *Reader) Grants(ctx context.Context, who approvers.PersonID) (out []ListedGrant, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		out = nil
		open, err := r.OpenGrants("")
		if err != nil {
			return err
		}
		for _, g := range open {
			if g.State != approvers.GrantLive || !v.now().Before(g.Until) {
				continue
			}
			vm, err := listGrant(r, g, who)
			if err != nil {
				return err
			}
			out = append(out, vm)
		}
		return nil
	})
	return out, err
}

// ListedGrant is an entry of the list that Grants returns.
type ListedGrant struct {
	Grant        approvers.Grant
	Conversation store.Conversation   // zero: the grant applies to all of the agent's conversations
	Own          *store.OutboxMessage // the direct message to the person about the grant; nil: there is none, Slack refused it, or it was removed
}

func listGrant(r store.Reader, g approvers.Grant, who approvers.PersonID) (ListedGrant, error) {
	vm := ListedGrant{Grant: g}
	var err error
	if g.Conversation != "" && !approvers.IsCallerScope(g.Conversation) {
		if vm.Conversation, err = r.Conversation(g.Conversation); err != nil {
			return vm, err
		}
	}
	messages, err := r.OutboxMessagesOf(g.ID)
	for _, s := range messages {
		if s.To == store.ToUser+who.User() && s.State != store.OutboxUnreachable && s.State != store.OutboxRemoved {
			vm.Own = &s
		}
	}
	return vm, err
}
