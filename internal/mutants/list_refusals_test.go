//go:build !race

package mutants

func use(run string) campaign { return campaign{pkg: "./cmd/countersign", run: run} }

// refusalMutants break the code that handles refusals by Slack, and the code that reads the messages that the bot
// missed.
var refusalMutants = []mutant{
	{
		name: "a message that was read from a history is received again when Slack retries it",
		edits: []edit{
			{"bot/catch_up.go", "	id, _ := e.Event.messageID(&c.self)\n", "	id, _ := e.Event.messageID(&c.self)\n	id += \"/read\"\n"},
			{"approvers/workflow/receive_message.go", "return m.TS == u.TS && m.Author == u.Who.ID }", "return false }"},
		},
		by: []campaign{use("^TestCatchUp$/^socket_retries=true_10m0s_killed=false")},
	},
	{
		name:  "a message that was read from a history begins a conversation again when Slack retries it",
		edits: []edit{{"bot/catch_up.go", "	id, _ := e.Event.messageID(&c.self)\n", "	id, _ := e.Event.messageID(&c.self)\n	id += \"/read\"\n"}},
		by:    []campaign{use("^TestCatchUp$/^socket_retries=true_10m0s_killed=false")},
	},
	{
		name:  "histories are read without bounds",
		edits: []edit{{"bot/catch_up.go", "		if i >= mostChannels {\n", "		if i < 0 {\n"}},
		by:    []campaign{edge("^TestCatchUpBounds$")},
	},
	{
		name:  "channels that the bot could not read after a gap are not reported",
		edits: []edit{{"bot/catch_up.go", "		c.unread[slackapi.Explain(err)]++\n", ""}},
		by:    []campaign{use("^TestCatchUpWithoutScope$")},
	},
	{
		name:  "a request whose card nobody can see says nothing",
		edits: []edit{{"approvers/workflow/refused.go", "	if refused == nil {\n		return nil\n", "	if refused == nil || refused != nil {\n		return nil\n"}},
		by:    []campaign{inWorkflow("^TestNobodyCanSeeTheCard$"), edge("^TestCardThatReachedNobody$")},
	},
	{
		name:  "a card that reached nobody is not tried again",
		edits: []edit{{"approvers/workflow/refused.go", "	for _, s := range again {\n		if err := t.tryAgain(s); err != nil {\n", "	for _, s := range again[:0] {\n		if err := t.tryAgain(s); err != nil {\n"}},
		by:    []campaign{inWorkflow("^TestACardThatIsShownAgain$"), edge("^TestCardThatReachedNobody$")},
	},
	{
		name:  "the lead is not asked sooner although a card reached nobody",
		edits: []edit{{"approvers/unreached.go", "		r.EscalateAt = in.Now\n", ""}},
		by:    []campaign{inWorkflow("^TestTheLeadIfNobodyCanSeeTheCard$")},
	},
	{
		name:  "a refused question is given up",
		edits: []edit{{"approvers/workflow/refused.go", "err != nil || !needed {\n		return err\n", "err != nil || needed {\n		return err\n"}},
		by:    []campaign{inWorkflow("^TestARefusedQuestionIsAskedLater$")},
	},
	{
		name:  "a message whose blocks are refused is lost",
		edits: []edit{{"bot/refused.go", "		if err == nil || !slackapi.IsBlocksRefused(err) || form >= last {\n", "		if err == nil || form <= last {\n"}},
		by:    []campaign{use("^TestRefusals$/^buttons")},
	},
	{
		name:  "refused kinds of blocks are sent again and again",
		edits: []edit{{"bot/refused.go", "		if one.Until.After(now) {\n", "		if one.Until.Before(now) {\n"}},
		by:    []campaign{use("^TestRefusedKindsAreRemembered$")},
	},
	{
		name: "a card that can't be changed keeps its buttons",
		edits: []edit{
			{"bot/display.go", "		_, _, deleted := b.api.DeleteMessageContext(ctx, s.Channel, s.TS)", "		var deleted error"},
			{"bot/display.go", "	if s.ReplacedTS == \"\" {\n", "	if len(s.ReplacedTS) >= 0 {\n"},
		},
		by: []campaign{use("^TestRefusals$/^changes_cant")},
	},
	{
		name: "a message in the thread counts as the answer to an approver, whoever wrote it",
		edits: []edit{{"approvers/remark.go",
			"	if !asked(r, m.Who) {\n		return r, nil, &Denied{Code: DeniedNotRequester}\n	}\n	if question < 0",
			"	if question < 0"}},
		by: []campaign{edge("^TestAnswerByWriting$")},
	},
	{
		name:  "the asker's message in the thread does not count as an answer",
		edits: []edit{{"approvers/workflow/decide.go", "	if turn.State != approvers.TurnWaiting || u.Text == \"\" {\n", "	if turn.State == approvers.TurnWaiting || u.Text == \"\" {\n"}},
		by:    []campaign{edge("^TestAnswerByWriting$")},
	},
	{
		name: "every message of the asker in the thread counts as an answer",
		edits: []edit{
			{"approvers/workflow/decide.go", " && q.Kind == approvers.Question && !r.Answered(i)\n", " && q.Kind == approvers.Question\n"},
			{"approvers/remark.go", " || r.Remarks[question].Kind != Question || r.Answered(question) {\n", " || r.Remarks[question].Kind != Question {\n"},
		},
		by: []campaign{edge("^TestAnswerByWriting$")},
	},
}
