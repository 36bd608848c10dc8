package evidence

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/approvers"
)

// sentence describes a record in words.
func (s Story) sentence(e Entry) string {
	f, who := e.Facts, s.who(e.Actor)
	begin := capitalized(who)
	switch e.Kind {
	case approvers.AuditProposed:
		return s.proposed(f)
	case approvers.AuditShown:
		return "Slack showed " + s.cardOf(f) + " " + s.where(f) + "."
	case approvers.AuditDenied:
		return begin + " tried to " + verb(f["kind"]) + " and was refused: " + refusal(f["code"]) + "."
	case approvers.AuditDecided:
		return s.decided(f, begin)
	case approvers.AuditAdvanced:
		return "It moved to stage " + f["stage"] + ", with " + f["risk"] + " risk."
	case approvers.AuditApproved:
		return "One run was allowed."
	case approvers.AuditClosed:
		return closed(e, who)
	case approvers.AuditReopened:
		return "The approval was taken back by the policy: " + f["why"] + "."
	case approvers.AuditReplanned:
		return replanned(f)
	case approvers.AuditEscalated:
		return s.escalated(f)
	case approvers.AuditPreviewed:
		return previewed(f)
	case approvers.AuditReminded:
		return plural(f["people"], "person who had not decided was", "people who had not decided were") + " reminded."
	case approvers.AuditInvited:
		why := by(e.Actor, who)
		if f["why"] == "away" {
			why = ", who stands in for somebody away"
		}
		return s.who(approvers.PersonID(f["person"])) + " was added to the stage as " + f["role"] + why + "."
	case approvers.AuditRemarked:
		return begin + " left " + remark(f["kind"]) + " on the card."
	case approvers.AuditMessageEdited:
		return messageEdited(f)
	case approvers.AuditExecuting:
		return s.executing(f)
	case approvers.AuditExecuted:
		return s.executed(f)
	case approvers.AuditUnknown:
		return whyUnknown[approvers.Loss(f["why"])] + " Whether it acted was not known; people were asked."
	case approvers.AuditReported:
		return begin + " reported: " + spaced(f["report"]) + "."
	case approvers.AuditReturned:
		return s.returned(f)
	case approvers.AuditGranted:
		return "A grant was " + f["what"] + by(approvers.PersonID(or(f["by"], string(e.Actor))), s.who(approvers.PersonID(or(f["by"], string(e.Actor))))) + "."
	case approvers.AuditErased:
		return "What people wrote and were shown was erased" + by(e.Actor, who) + ". The records and their hashes stay."
	}
	return s.plain(e, who)
}

// whyUnknown says why the outcome of a run was unknown.
var whyUnknown = map[approvers.Loss]string{
	approvers.LossStopped:     "The process stopped while the tool ran.",
	approvers.LossUnclear:     "No clear answer of the tool was recorded.",
	approvers.LossPaused:      "All work was paused while the tool ran.",
	approvers.LossTurnStopped: "The agent was stopped while the tool ran.",
	approvers.LossUnreported:  "The client that ran the tool did not report the outcome.",
	approvers.LossRestored:    "The store was restored from a backup that was made before the run ended.",
	approvers.LossDamaged:     "The record of the run was damaged.",
}

// plain describes a record by its kind.
func (s Story) plain(e Entry, who string) string {
	switch e.Kind {
	case approvers.AuditAnswered:
		return capitalized(who) + " answered the question."
	case approvers.AuditStarted:
		return "Countersign " + e.Facts["version"] + " started."
	case approvers.AuditAdopted:
		return "The Slack app " + e.Facts["app"] + " replaced the app " + e.Facts["replaced"] + "."
	case approvers.AuditPolicy:
		return inForce(e.Facts)
	case approvers.AuditRestored:
		return restored(e.Facts, by(e.Actor, who))
	}
	return spaced(string(e.Kind)) + by(e.Actor, who) + "."
}

// inForce describes a record about the policy and the pins in force.
func inForce(f map[string]string) string {
	line := "The policy " + f["policy"][:min(12, len(f["policy"]))]
	if f["policy"] == f["before_policy"] {
		line = "Other pins"
	}
	line += " came into force"
	if f["process"] != "" {
		line += ", loaded by " + f["process"]
	}
	return line + "."
}

// restored describes a record about a restored store. The parameter named by has the operator who restored it.
func restored(f map[string]string, by string) string {
	faults := ""
	if f["faults"] == "accepted" {
		faults = " with faults"
	}
	if f["head"] != "" {
		return "The loss of head " + f["head"] + " was accepted" + faults + by + "."
	}
	return "The store was restored" + faults + " from " + f["backup"] + by + "."
}

func (s Story) proposed(f map[string]string) string {
	line := "The model asked for " + f["tool"]
	asker := approvers.PersonID(f["asker"])
	switch {
	case asker.Caller() != "":
		line = capitalized(s.who(asker)) + " asked for " + f["tool"]
		if person := person(f); person != "" {
			line += ", on behalf of " + s.who(person)
		}
	case asker != "":
		line = "Asked by " + s.who(asker) + ", the model asked for " + f["tool"]
	}
	switch f["verdict"] {
	case "error":
		return line + " with a call that could not be accepted; nobody was asked."
	case "inquiry":
		return line + ", to put a question to the requesters."
	case string(approvers.Auto):
		return line + ": " + f["risk"] + " risk, which the policy lets run without asking."
	case string(approvers.Observed):
		return line + ": " + f["risk"] + " risk. Nothing ran, because the policy only observes."
	}
	line += ": " + f["risk"] + " risk"
	if f["stages"] != "" {
		line += ", to be allowed by " + listed(f["stages"])
	}
	return line + "."
}

func (s Story) escalated(f map[string]string) string {
	role := "the role " + f["role"] + " was asked"
	switch {
	case f["again"] != "":
		return "It was not decided yet: everybody was told again."
	case f["why"] == "deactivated":
		return "The account of " + s.who(approvers.PersonID(f["person"])) + " is deactivated: " + role + "."
	case f["why"] == "nobody":
		return "Nobody else could decide it: " + role + "."
	case f["why"] == "too_few":
		return "Fewer people could decide it than the stage needs: " + role + "."
	}
	return "It was not decided yet: " + role + " as well."
}

func messageEdited(f map[string]string) string {
	if f["remark"] != "" {
		return "An answer on the card was " + f["what"] + " in Slack afterwards; the card kept the answer and noted the change."
	}
	return "The message that asked for it was " + f["what"] + " in Slack after the agent had read it."
}

func (s Story) decided(f map[string]string, who string) string {
	line := who + " " + map[string]string{"approve": "approved", "reject": "rejected", "modify": "changed the arguments of"}[f["kind"]] + " it"
	switch {
	case f["break_glass"] != "":
		line += " at the command line (break glass), for the stages that remained"
	case f["role"] != "":
		line += " as " + f["role"]
	}
	if ms, err := strconv.ParseInt(f["took"], 10, 64); err == nil {
		line += ", " + (time.Duration(ms) * time.Millisecond).String() + " after the card first showed it"
	}
	return line + "."
}

func replanned(f map[string]string) string {
	line := "The policy became stricter: now " + f["risk"] + " risk, stages " + listed(f["stages"]) + "."
	if f[approvers.FactRestarted] == "true" {
		line += " The first stage began again."
	}
	return line
}

// closed describes the end of a request.
func closed(e Entry, who string) string {
	if isLost(e.Facts) {
		return "It ended as " + e.Facts["state"] + ", because the store was restored from a backup. It is not known whether it was decided and ran after the backup."
	}
	return "It ended as " + e.Facts["state"] + by(e.Actor, who) + "."
}

// isLost reports whether a record says that a request ended because the store was restored from a backup.
func isLost(f map[string]string) bool { return f["why"] == string(approvers.LossRestored) }

func (s Story) executing(f map[string]string) string {
	line := "The tool was started"
	if try := f["try"]; try != "" && try != "1" {
		line = "The tool was started again, as try " + try + ", under the same key"
	}
	if f["runs"] != "" {
		line = capitalized(s.who(approvers.CallerID(f["runs"]))) + " claimed the call, to run the tool itself"
	}
	if f["grant"] != "" {
		line += ", under the grant " + f["grant"]
	}
	return line + "."
}

// executed describes the end of a run. Of a client's run, only the client knows the end.
func (s Story) executed(f map[string]string) string {
	if f["unrun"] != "" {
		return "The tool was not called."
	}
	if client := s.runner(); client != "" {
		return capitalized(s.who(client)) + " reported that the tool ended: " + f["state"] + "."
	}
	return "The tool ended: " + f["state"] + "."
}

// returned describes the result of the call. The history does not record when a client reads the result.
func (s Story) returned(f map[string]string) string {
	outcome := spaced(f["outcome"])
	if client := s.client(); client != "" {
		return "The result for " + s.who(client) + " was recorded: " + outcome + "."
	}
	return "The model was given the result: " + outcome + "."
}

// cardOf describes the message that a record is about.
func (s Story) cardOf(f map[string]string) string {
	switch f[approvers.FactShownAs] {
	case "bundle":
		return "the card with all calls of the step"
	case "escalation":
		return "the card, as an escalation,"
	case "unknown":
		return "the question about the outcome of the run"
	case "view":
		return "all arguments, up to the last page,"
	case "home":
		return "the call on a Home tab"
	case "reveal":
		return "the masked values"
	}
	return "the card"
}

// where describes the recipient of a message.
func (s Story) where(f map[string]string) string {
	kind, at, _ := strings.Cut(f["to"], ":")
	switch kind {
	case "user":
		if f["channel"] == "" { // a form, or a Home tab
			return "to " + s.user(at) + " alone"
		}
		return "to " + s.user(at) + ", by direct message"
	case "channel":
		return "in " + at
	case "conversation":
		return "in the conversation"
	}
	return "in " + f["channel"]
}

// refusal returns the reason of a refused attempt in words.
func refusal(code string) string {
	return or(map[approvers.Code]string{
		approvers.DeniedNotMember: "not in a role that may decide it", approvers.DeniedGroup: "not in the user group that is asked",
		approvers.DeniedUnnamed: "Slack refused to name the members of a user group",
		approvers.DeniedSelf:    "a requester can't decide it", approvers.DeniedTool: "the role may not decide about this tool",
		approvers.DeniedCeiling: "the risk is above what the role may approve", approvers.DeniedCounted: "the person had decided already",
		approvers.DeniedResolved: "it had ended already", approvers.DeniedLate: "the deadline had passed", approvers.DeniedStale: "the arguments had changed",
		approvers.DeniedNoGrants: "the policy does not allow it", approvers.DeniedBreakGlass: "the policy does not allow it",
	}[approvers.Code(code)], spaced(code))
}

func verb(kind string) string {
	return or(map[string]string{
		"report": "report on it", "hand on": "hand it on", "ask again": "ask for it again", "allow more": "allow more such calls",
		"accepted": "accept it", "declined": "decline it", "revoked": "revoke it",
		"answer elicitation": "answer the tool's question", "decline elicitation": "decline the tool's question",
		"break glass": "approve it at the command line", "overrule": "reject it at the command line",
	}[kind], spaced(kind)+" it")
}

func remark(kind string) string {
	return or(map[string]string{"question": "a question for the requester", "answer": "an answer", "comment": "a comment"}[kind], "a remark")
}

func by(id approvers.PersonID, who string) string {
	if id == "" {
		return ""
	}
	return ", by " + who
}

// spaced converts a code to words.
func spaced(code string) string { return strings.ReplaceAll(code, "_", " ") }

func listed(stages string) string { return strings.ReplaceAll(stages, ",", ", then ") }

func plural(n, one, many string) string {
	if n == "1" {
		return n + " " + one
	}
	return n + " " + many
}

// previewed describes a tool preview and its result.
func previewed(f map[string]string) string {
	how := "Before anybody decided, the tool " + f["by"]
	if f["dry_run"] != "" {
		how += ", in a dry run,"
	}
	switch f["state"] {
	case "asked":
		return how + " was asked what the call would do."
	case "made":
		return how + " said what the call would do."
	}
	return how + " was asked what the call would do, and there was no answer."
}

// Sentence describes one record in words.
func (s Story) Sentence(a approvers.AuditRecord) string { return s.sentence(Entry{AuditRecord: a}) }

// closer names the person who closed a request that nobody had decided before.
func (s Story) closer(e Entry) string {
	switch {
	case isLost(e.Facts):
		return "decision unknown"
	case e.Actor != "":
		return s.name(e.Actor)
	}
	return "nobody decided"
}

// proposal says who was asked about a call, and what became of the call, as far as the record of the proposal shows it.
func (s Story) proposal(f map[string]string) (who, how string) {
	switch {
	case s.Asked:
		return "people were asked instead", "see the request"
	case f["grant"] != "": // the verdict is still that people must approve
		return "under a grant", "not run"
	case f["verdict"] == string(approvers.Ask):
		return "nobody yet", "waits for " + listed(f["stages"])
	case f["verdict"] == "error":
		return "nobody was asked", "could not be accepted"
	case f["verdict"] == "inquiry":
		return "nobody yet", "waits for an answer"
	}
	return "nobody was asked", "not run"
}

// Decision returns the time of the request's last decision, or of the request's end. If there was no decision and no
// end, Decision returns the time of the proposal. Decision also returns a short text: who decided the request, and
// how the request ended.
func (s Story) Decision() (at time.Time, words string) {
	if len(s.Entries) == 0 {
		return at, ""
	}
	at = s.Entries[0].At
	who, how := s.proposal(s.Entries[0].Facts)
	votes := &tally{stage: 1}
	var deciders []vote
	for _, e := range s.Entries {
		votes.take(e)
		f := e.Facts
		switch e.Kind {
		case approvers.AuditDecided:
			at = e.At
		case approvers.AuditAnswered:
			who, how, at = s.name(e.Actor), "answered", e.At
		case approvers.AuditAdvanced, approvers.AuditReplanned, approvers.AuditReopened:
			how = "waits for " + listed(f["stages"])
		case approvers.AuditEscalated:
			if f["again"] == "" {
				how += "; " + f["role"] + " was asked, too"
			}
		case approvers.AuditApproved:
			how = "approved, not run yet"
		case approvers.AuditClosed:
			how, at = f["state"], e.At
			if how == string(approvers.Rejected) {
				deciders = votes.against()
			} else if len(votes.allowed()) == 0 {
				who = s.closer(e)
			}
			if isLost(f) {
				how += ", may have run"
			}
		case approvers.AuditExecuting:
			how = "running"
		case approvers.AuditExecuted:
			how = map[string]string{"succeeded": "ran", "failed": "failed"}[f["state"]]
		case approvers.AuditUnknown:
			how = "outcome unknown"
		case approvers.AuditReported:
			how = "reported: " + spaced(f["report"])
		}
	}
	if len(deciders) == 0 {
		deciders = slices.Concat(votes.edited(), votes.allowed())
	}
	if len(deciders) > 0 {
		names := make([]string, len(deciders))
		for i, v := range deciders {
			names[i] = s.decider(v.Entry)
		}
		who = strings.Join(names, ", ")
	}
	return at, who + " · " + how
}

// decider returns a person's name, with the role under which the person decided.
func (s Story) decider(e Entry) string {
	as := e.Facts["role"]
	if e.Facts["break_glass"] != "" {
		as = "break glass"
	}
	if e.Facts["kind"] == string(approvers.Modify) {
		as += ", changed it"
	}
	if as == "" {
		return s.name(e.Actor)
	}
	return s.name(e.Actor) + " (" + strings.TrimPrefix(as, ", ") + ")"
}

// name returns a person's name without the id, or a client's name.
func (s Story) name(id approvers.PersonID) string {
	switch {
	case id.Login() != "":
		return "operator " + id.Login()
	case id.Caller() != "":
		return "client " + id.Caller()
	case s.Names[id] != "":
		return s.Names[id]
	}
	return id.User()
}
