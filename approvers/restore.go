package approvers

import "time"

// A store that is restored from a backup lacks everything that happened after the backup. A call that is open in the
// backup may have been decided and run after the backup. So the restore ends all these calls, and nobody can decide or
// run them a second time. The bot tells people to check the outcome.

// LostTrack returns the reason that is stored when a restore ends a record that was open in the backup.
func LostTrack(taken time.Time) string {
	return "the bot's data was put back from a backup of " + taken.UTC().Format("2006-01-02 15:04:05 UTC") +
		"; what happened after that is not known here, so it may have been decided, and run: check before it is asked for again"
}

// lostGuidance is the advice to the model about a call that was open in the backup.
const lostGuidance = "It is not known whether it was run. Do not call it again; tell the person that somebody has to check first."

// LostResult returns the result, for the model, of a call that was open in the backup and had no request.
func LostResult(tool string, taken time.Time) Result {
	return Result{Status: OutcomeVoided, Tool: tool, Reason: LostTrack(taken), Guidance: lostGuidance}
}

// Lose ends a request that was open in the backup. taken is the time of the backup.
func (r Request) Lose(in DecisionContext, taken time.Time) (Request, []Event, *Denied) {
	r, events, denied := r.Void(in, LostTrack(taken))
	if denied == nil {
		r.Lost = true
	}
	return r, events, denied
}

// Lose ends a grant after a restore, because nobody knows how often the grant was used after the backup. If the grant
// is only an offer, Lose declines the offer.
func (g Grant) Lose(who Identity, now time.Time) Grant {
	if g.State == GrantOffered {
		return g.close(GrantDeclined, who.ID, who.Name, now)
	}
	return g.close(GrantRevoked, who.ID, who.Name, now)
}
