package approvers

import "time"

// A store that is put back from a backup remembers nothing of what happened since the backup was made. What was open then may have been decided and run
// meanwhile, so nothing of it may be decided or run again: it ends, and everybody is told that somebody has to check.

// LostTrack says of what was open when a backup was made why it ended.
func LostTrack(taken time.Time) string {
	return "the bot's data was put back from a backup of " + taken.UTC().Format("2006-01-02 15:04:05 UTC") +
		"; what happened after that is not known here, so it may have been decided, and run: check before it is asked for again"
}

// lostGuidance is what the model can do about such a call.
const lostGuidance = "It is not known whether it was run. Do not call it again; tell the person that somebody has to check first."

// LostResult is what the model is told of a call that was open, and that nobody was asked about.
func LostResult(tool string, taken time.Time) Result {
	return Result{Status: OutcomeVoided, Tool: tool, Reason: LostTrack(taken), Guidance: lostGuidance}
}

// Lose ends an open request of a store that was put back from a backup, which was made at the given time.
func (r Request) Lose(in Deciding, taken time.Time) (Request, *Denied) {
	r, denied := r.Void(in, LostTrack(taken))
	if denied == nil {
		r.Lost = true
	}
	return r, denied
}

// Lose ends a grant of a store that was put back from a backup: how often it was used since is not known. An offer ends as if it were declined.
func (g Grant) Lose(who Identity, now time.Time) Grant {
	if g.State == GrantOffered {
		return g.close(GrantDeclined, who.ID, who.Name, now)
	}
	return g.close(GrantRevoked, who.ID, who.Name, now)
}
