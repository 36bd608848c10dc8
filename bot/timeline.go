package bot

import (
	"fmt"

	"countersign/approvers"
)

// happened says what has happened to a request, oldest first, from its records. What Slack was shown is said once; secrets and reasons are not in the records' facts.
func (s scene) happened(records []approvers.AuditRecord) (lines []*prose) {
	shown := false
	for _, a := range records {
		if a.Kind == approvers.AuditShown && a.Facts["to"] != "" && a.Actor == "" {
			if shown {
				continue
			}
			shown = true
		}
		line := s.event(a)
		if line.empty() {
			continue
		}
		lines = append(lines, new(prose).at(a.At, dayTime).say(" · ").also(line))
	}
	return lines
}

// event says in words what one record means; empty where that is no news for people.
func (s scene) event(a approvers.AuditRecord) *prose {
	f := a.Facts
	by := func(words string) *prose { return new(prose).person(a.Actor, "").say(" " + words) }
	switch a.Kind {
	case approvers.AuditProposed:
		return say("The agent asked for it.")
	case approvers.AuditShown:
		switch f["surface"] {
		case "view":
			return by("read all of its arguments.")
		case actReveal:
			return by("was shown the masked values.")
		}
		if a.Actor != "" {
			return new(prose) // what somebody acted on: the decision says it
		}
		return say("Put before those who decide.")
	case approvers.AuditDenied:
		return by("tried to " + tried(f["kind"]) + " and may not.")
	case approvers.AuditDecided:
		return by(did[approvers.DecisionKind(f["kind"])] + s.inRole(f["role"]) + ".")
	case approvers.AuditAdvanced:
		return say("It went on, with " + f["risk"] + " risk.")
	case approvers.AuditApproved:
		return say("All who were needed have agreed.")
	case approvers.AuditReplanned:
		return say("The policy became stricter while it waited.")
	case approvers.AuditReopened:
		return say("The policy became stricter, so it waits again.")
	case approvers.AuditEscalated:
		if f["again"] != "" {
			return say("Nobody had decided: everybody was told once more.")
		}
		return say("Nobody had decided: " + s.title(f["role"]) + " was told, and may decide too.")
	case approvers.AuditReminded:
		return say("Those who had not decided were reminded.")
	case approvers.AuditPreviewed:
		return new(prose).code(name(f["by"])).say(previewedWords[f["state"]])
	case approvers.AuditReworded:
		return say("The words that it was asked for in were edited or deleted.")
	case approvers.AuditInvited:
		return new(prose).person(approvers.PersonID(f["person"]), "").say(" was asked too" + s.inRole(f["role"]) + ".")
	case approvers.AuditRemarked:
		return by("left " + remarkWords[f["kind"]] + ".")
	case approvers.AuditGranted:
		return say("A permission for calls like it was " + f["what"] + ".")
	case approvers.AuditClosed:
		return new(prose).strong(closedWords(approvers.State(f["state"]))).also(ender(a.Actor)).say(".")
	case approvers.AuditExecuting:
		return say("It was started.")
	case approvers.AuditExecuted:
		return say("It ran: " + f["state"] + ".")
	case approvers.AuditUnknown:
		return say("It was started, and nobody knows how it ended. People are asked.")
	case approvers.AuditReported:
		return by("said what became of it.")
	case approvers.AuditReturned:
		return say("The agent was told.")
	case approvers.AuditErased:
		return say("What was written about it was erased.")
	}
	return new(prose)
}

// did says what a decision was.
var did = map[approvers.DecisionKind]string{approvers.Approve: "approved it", approvers.Reject: "was against it", approvers.Modify: "changed its arguments"}

// tried says what somebody tried who may not.
func tried(kind string) string {
	if words := map[string]string{"approve": "approve it", "reject": "reject it", "modify": "change it", "withdraw": "withdraw it"}[kind]; words != "" {
		return words
	}
	return "do something with it"
}

var remarkWords = map[string]string{"question": "a question", "answer": "an answer", "comment": "a comment"}

// closedWords says how a request ended.
func closedWords(s approvers.State) string {
	words := map[approvers.State]string{
		approvers.Rejected: "Rejected", approvers.Expired: "Expired", approvers.Withdrawn: "Withdrawn", approvers.Revoked: "Approval taken back",
		approvers.Voided: "Voided", approvers.Refused: "Refused by the policy",
	}[s]
	if words == "" {
		return "Ended"
	}
	return words
}

func ender(who approvers.PersonID) *prose {
	if who == "" {
		return new(prose)
	}
	return say(" by ").person(who, "")
}

func (s scene) inRole(role string) string {
	if role == "" {
		return ""
	}
	return " as " + s.title(role)
}

// maxHappened is how many lines of what happened are told at once; what came before the newest is counted.
const maxHappened = 15

// newest keeps a page of lines, the newest on the first page, and says how many came before.
func newest(lines []*prose, page int) (kept []*prose, pages int) {
	pages = max(1, (len(lines)+maxHappened-1)/maxHappened)
	page = min(max(0, page), pages-1)
	end := len(lines) - page*maxHappened
	begin := max(0, end-maxHappened)
	kept = lines[begin:end]
	if begin > 0 {
		kept = append([]*prose{say(fmt.Sprintf("… %s before that.", plural(begin, "line")))}, kept...)
	}
	return kept, pages
}

// previewedWords are what became of asking a tool what a call would do.
var previewedWords = map[string]string{
	"asked": " was asked, by a dry run, what it would do.", "made": " said what it would do.", "failed": " was asked what it would do, and there was no answer.",
}
