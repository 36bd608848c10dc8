package desk

import (
	"errors"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// notify tells one person something about a request by direct message. step says which question or edit it is about.
func (t *tx) notify(request string, who approvers.PersonID, note store.Note, step int) error {
	if !onSlack(who) {
		return nil
	}
	return t.want(store.Surface{Kind: store.SurfaceNotice, Ref: request, Request: request, Step: step, To: toUser + who.User(), Note: note})
}

// onSlack reports whether a person can be written to. The operator at the command line can't.
func onSlack(who approvers.PersonID) bool { return strings.Contains(string(who), "/") }

// invited records that a person was added to the stage, and shows them the card by direct message. Whose card is there already is told that it
// was handed on to them.
func (t *tx) invited(r approvers.Request, i approvers.Invite) error {
	facts := map[string]string{"person": string(i.Who), "role": i.Role, "by": string(i.By), "digest": r.Digest}
	actor := i.By
	if i.Away { // whoever is away did nothing now
		actor, facts["why"] = "", "away"
	}
	if err := t.audit(r.ID, approvers.AuditInvited, actor, facts, nil); err != nil {
		return err
	}
	surfaces, err := t.SurfacesOf(r.ID)
	if err != nil {
		return err
	}
	for _, s := range surfaces {
		if isCard(s.Kind) && s.To == toUser+i.Who.User() && s.State != store.SurfaceUnreachable && s.State != store.SurfaceGone {
			return errors.Join(t.again([]store.Surface{s}, false), t.notify(r.ID, i.Who, store.NoteInvited, 0))
		}
	}
	if i.Away { // nobody chose to send them this one: they are not flooded with what others would have got
		return t.wantInLine(r, toUser+i.Who.User())
	}
	return t.wantAt(r, store.SurfaceCard, toUser+i.Who.User(), "")
}

// tellFallen tells those whose decision counts no more since this move: somebody else changed the arguments, or the policy became stricter.
func (t *tx) tellFallen(before, r approvers.Request) error {
	step := 0
	if len(r.Edits) > len(before.Edits) {
		step = len(r.Edits)
	}
	for _, who := range fallen(before, r) {
		if err := t.notify(r.ID, who, store.NoteFallen, step); err != nil {
			return err
		}
	}
	return nil
}

// fallen lists those whose decision counts no more since this move. Whoever made the move sees what it did.
func fallen(before, r approvers.Request) []approvers.PersonID {
	var mover approvers.PersonID
	if len(r.Decisions) > len(before.Decisions) {
		mover = r.Decisions[len(r.Decisions)-1].By
	}
	var out []approvers.PersonID
	for i, d := range before.Decisions {
		if !d.Fallen && r.Decisions[i].Fallen && d.By != mover && !slices.Contains(out, d.By) {
			out = append(out, d.By)
		}
	}
	return out
}
