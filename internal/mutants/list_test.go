//go:build !race

package mutants

import "slices"

// The test campaigns that several mutants name.
var (
	crashPoints = inWorkflow("^TestCrashPoints$")
	crashImages = inWorkflow("^TestCrashImages$")
	kills       = campaign{pkg: "./cmd/countersign", run: "^TestKills$"}
	storeSuite  = campaign{pkg: "./store/bolt", run: "^TestConform", rapid: true}
	anyOrder    = domain("^TestEveryOrderOfEvents$")
	clockJumps  = campaign{pkg: "./cmd/countersign", run: "^TestLostPostsWhileTheClockJumps$"}
	storm       = campaign{pkg: "./cmd/countersign", run: "^TestStorm$"}
	tamperings  = campaign{pkg: "./cmd/countersign", run: "^TestTampering$"}
)

func inWorkflow(run string) campaign {
	return campaign{pkg: "./approvers/workflow", run: run, rapid: true}
}
func outages(kind string) campaign {
	return campaign{pkg: "./cmd/countersign", run: "^TestOutages$/^" + kind}
}
func domain(run string) campaign { return campaign{pkg: "./approvers", run: run, rapid: true} }

var mutants = slices.Concat(stateMutants, slackMutants, refusalMutants)

// stateMutants break the code that keeps, changes and shows state.
var stateMutants = []mutant{
	{
		name: "deliveries are acknowledged before they are stored", first: true,
		edits: []edit{{"bot/transport/socket_mode.go",
			"	answer, err := r.receive(r.work, d, &r.began)\n",
			"	_ = c.ack(envelope, nil)\n	answer, err := r.receive(r.work, d, &r.began)\n",
		}},
		by: []campaign{{pkg: "./bot/transport", run: "^TestSocketAcknowledgement$"}, {pkg: "./bot", run: "^TestFullDisk$"}, kills},
	},
	{
		name: "tools run before executing is durable", first: true,
		edits: []edit{
			{"approvers/workflow/claim.go",
				"			run, err = t.runs.claim(&e, givers)\n",
				"			if run, err = t.runs.claim(&e, givers); run {\n				return errLater\n			}\n"},
			{"approvers/workflow/claim.go",
				"		return err\n	})\n	return e, run, err\n}\n",
				"		return err\n	})\n	if errors.Is(err, errLater) {\n		err = nil\n	}\n	return e, run, err\n}\n\nvar errLater = errors.New(\"with its outcome\")\n"},
			{"approvers/workflow/finish.go",
				"		if e, err = e.Finish(ok, result, t.now); err != nil {\n",
				"		if e.State == approvers.ExecutionNone {\n			if _, err = t.runs.claim(&e, grantOwners{}); err != nil {\n				return err\n			}\n		}\n" +
					"		if e, err = e.Finish(ok, result, t.now); err != nil {\n"},
		},
		by: []campaign{crashPoints, kills},
	},
	{
		name: "another agent's repeated call is a new request, although it was not answered",
		edits: []edit{{"approvers/workflow/callers.go",
			"		if err != nil || last.Caller == nil || !last.Caller.Delivered.IsZero() {\n",
			"		if err != nil || last.Caller == nil || last.Caller.Request != \"\" {\n",
		}},
		by: []campaign{kills},
	},
	{
		name: "an approval is claimed for a coding agent that has hung up",
		edits: []edit{
			{"agent/hook/run.go", "		case h.hungUp(ctx):\n			return h.undecided(ctx, rec, r), false, nil\n", ""},
			{"agent/hook/run.go", "	if h.hungUp(ctx) {\n		h.notRun(r)\n		return Answer{}, errHungUp\n	}\n", "	_ = errHungUp\n"},
		},
		by: []campaign{{pkg: "./agent/hook", run: "^TestHangUp$"}},
	},
	{
		name:  "another session's call hides the request of a hook over HTTP",
		edits: []edit{{"approvers/workflow/callers.go", "		if err := t.keepLast(p); err != nil {\n			return \"\", false, err\n		}\n", "		_ = t.keepLast\n"}},
		by:    []campaign{inWorkflow("^TestCallersNamed$")},
	},
	{
		name:  "a hook over HTTP is answered in the format of its URL's event",
		edits: []edit{{"agent/hook/http.go", "cmp.Or(a.event, d.Event)", "d.Event"}},
		by:    []campaign{{pkg: "./agent/gateway/hookserver", run: "^TestRefused$"}},
	},
	{
		name: "records have no version guard", first: true,
		edits: []edit{{"store/bolt/record.go", "	if *version != old.version {\n", "	if false {\n"}},
		by:    []campaign{storeSuite},
	},
	{
		name: "the digest is not computed again before a run", first: true,
		edits: []edit{{"approvers/execution.go",
			"		return e, ErrNotStartable\n	}\n	if Digest(e.ID, e.Tool, e.ToolHash, e.Args) != e.Digest {\n		return e, ErrDigest\n	}\n	e.State, e.Owner",
			"		return e, ErrNotStartable\n	}\n	e.State, e.Owner"}},
		by: []campaign{inWorkflow("^TestStoredBytesThatWereChangedNeverRun$"), domain("^TestExecution")},
	},
	{
		name: "the audit is written after the commit", first: true,
		edits: []edit{
			{"approvers/workflow/workflow.go",
				"	refreshed map[refresh]bool\n",
				"	refreshed map[refresh]bool\n\n	late []func(*tx) error\n	over bool\n"},
			{"approvers/workflow/workflow.go",
				"	head, err := t.AuditHead(chain)\n",
				"	if !t.over {\n		t.late = append(t.late, func(t *tx) error { return t.audit(chain, kind, actor, facts, body) })\n		return nil\n	}\n" +
					"	head, err := t.AuditHead(chain)\n"},
			{"approvers/workflow/workflow.go",
				"	w.jobs.Notify(t.wakes, t.news()...)\n	w.tell(ctx, t.events)\n",
				"	if late := t.late; len(late) > 0 {\n		err = w.Store.Update(ctx, func(s store.Tx) error {\n" +
					"			after := &tx{Tx: s, w: w, now: w.Now(), policy: w.Policy(), wakes: map[store.TimerKind]store.Shares{}, over: true}\n" +
					"			for _, write := range late {\n				if err := write(after); err != nil {\n					return err\n				}\n			}\n			return nil\n		})\n" +
					"		if err != nil {\n			return err\n		}\n	}\n	w.jobs.Notify(t.wakes, t.news()...)\n	w.tell(ctx, t.events)\n"},
		},
		by: []campaign{crashPoints, crashImages},
	},
	{
		name: "the store answers before it has committed",
		edits: []edit{{"store/bolt/writer.go",
			"	err := w.commit()\n	w.rows.reset(nil)\n",
			"	for _, j := range w.batch {\n		j.finish(nil)\n	}\n	w.batch = w.batch[:0]\n	err := w.commit()\n	w.rows.reset(nil)\n"}},
		by: []campaign{crashImages, kills},
	},
	{
		name:  "the store does not sync",
		edits: []edit{{"store/bolt/open.go", "	db.AllocSize = growBy\n", "	db.AllocSize = growBy\n	db.NoSync = true\n"}},
		by:    []campaign{crashImages},
	},
	{
		name: "a commit that failed is taken for one that did nothing",
		edits: []edit{{"store/bolt/writer.go",
			"		return w.fail(err)\n	}\n	if err := w.identity.committed(",
			"		return err\n	}\n	if err := w.identity.committed("}},
		by: []campaign{{pkg: "./store/bolt", run: "Sync"}, {pkg: "./cmd/countersign", run: "^TestFailingDisk$"}},
	},
	{
		name: "a commit that failed is acknowledged",
		edits: []edit{{"bot/receive.go",
			"	if _, err = b.Intake.Receive(ctx, inboxRow(id, d), e.lane()); err != nil {\n		return err\n	}\n",
			"	_, err = b.Intake.Receive(ctx, inboxRow(id, d), e.lane())\n	_ = err\n"}},
		by: []campaign{{pkg: "./bot", run: "^TestFullDisk$"}, {pkg: "./cmd/countersign", run: "^TestFailingDisk$", env: []string{"COUNTERSIGN_FAULTS=3"}}},
	},
	{
		name:  "an approval is not used up by the run",
		edits: []edit{{"approvers/workflow/claim.go", "			return true, t.apply(consumed, events)\n", "			_, _ = consumed, events\n			return true, nil\n"}},
		by:    []campaign{crashPoints},
	},
	{
		name: "a run can be finished twice",
		edits: []edit{{"approvers/execution.go",
			"	if e.State != ExecutionExecuting {\n		return e, ErrNotRunning\n	}\n	e.State = ExecutionFailed\n",
			"	e.State = ExecutionFailed\n"}},
		by: []campaign{domain("^TestExecution")},
	},
	{
		name: "an interrupted run is repeated, whatever its effect",
		edits: []edit{
			{"approvers/workflow/unknown.go", "	return e.Effect != approvers.Unprotected && e.Tries < maxTries\n", "	return e.Tries < maxTries\n"},
			{"approvers/execution.go", "	if e.State != ExecutionExecuting || e.Effect == Unprotected {\n", "	if e.State != ExecutionExecuting {\n"},
		},
		by: []campaign{crashPoints, kills},
	},
	{
		name:  "an expiry does not wait for clicks that were received before it",
		edits: []edit{{"approvers/workflow/deadlines.go", "	if err != nil || !early {\n		return false, err\n", "	if err != nil || !early || early {\n		return false, err\n"}},
		by:    []campaign{inWorkflow("BeforeTheDeadline")},
	},
	{
		name:  "an approval is not checked again before the run",
		edits: []edit{{"approvers/workflow/claim.go", "		cur.now, cur.events = cur.now.Recheck(t.deciding(), args)\n", "		_ = args\n"}},
		by:    []campaign{inWorkflow("ThePolicy")},
	},
	{
		name: "a message that was deleted before it arrived is received",
		edits: []edit{{"approvers/workflow/receive_message.go",
			"	if result.Ignored, err = t.deleted(u.Channel.Channel, u.TS); err != nil || result.Ignored || u.Edited == \"\" {\n",
			"	if err != nil || u.Edited == \"\" {\n"}},
		by: []campaign{inWorkflow("^TestEditsOvertakeTheirMessage$")},
	},
	{
		name:  "an edit that comes late replaces a later one",
		edits: []edit{{"approvers/request.go", "w.Edit > was.Edit", "w.Edit != was.Edit"}},
		by:    []campaign{inWorkflow("^TestEditedAfterItWasRead$")},
	},
	{
		name:  "a lost message is taken for its repost",
		edits: []edit{{"bot/unconfirmed.go", "	of.n = uint64(times)\n", ""}, {"bot/unconfirmed.go", "	times, _ := m.Metadata.EventPayload[\"round\"].(float64)\n", ""}, {"bot/unconfirmed.go", "round{s.ID, s.Round}", "round{s.ID, 0}"}},
		by:    []campaign{{pkg: "./bot", run: "^TestLostPostOfAReplacedCard$"}},
	},
	{
		name:  "a reply to a thread that is gone is left in the channel",
		edits: []edit{{"bot/post.go", "at.thread != \"\" && message.Timestamp", "false && message.Timestamp"}},
		by:    []campaign{{pkg: "./bot", run: "^TestStrayAnswer$"}},
	},
	{
		name: "a repeated delivery is handled again",
		edits: []edit{{"approvers/workflow/workflow.go",
			"	if !row.HandledAt.IsZero() {\n		return ErrHandled\n	}\n	row.HandledAt",
			"	row.HandledAt"}},
		by: []campaign{inWorkflow("^TestDeliveriesAreHandledOnce$"), crashPoints},
	},
	{
		name:  "what was not shown can be approved",
		edits: []edit{{"approvers/transitions.go", "	if m.Digest != r.Digest {\n		return &Denied{Code: DeniedStale}\n", "	if false {\n		return &Denied{Code: DeniedStale}\n"}},
		by:    []campaign{anyOrder},
	},
	{
		name:  "a card of an earlier stage counts",
		edits: []edit{{"approvers/transitions.go", "	if shown == \"\" || shown == StageDigest(r) {\n", "	if true {\n"}},
		by:    []campaign{anyOrder},
	},
	{
		name: "masked values are approved unseen",
		edits: []edit{{"approvers/transitions.go",
			"	if r.MustReveal(in.Policy, m.Who.ID) {\n		return r, nil, &Denied{Code: DeniedMasked}\n	}\n	if r.Plan.Risk >= Critical",
			"	if r.Plan.Risk >= Critical"}},
		by: []campaign{anyOrder},
	},
	{
		name: "one person counts twice",
		edits: []edit{{"approvers/transitions.go",
			"	if r.counted(m.Who.ID) {\n		return r, nil, &Denied{Code: DeniedCounted, Role: r.title(in.Policy)}\n	}\n",
			""}},
		by: []campaign{anyOrder, inWorkflow("^TestSixteenDeciders$")},
	},
	{
		name: "a card whose post was not recorded is posted again",
		edits: []edit{{"bot/display.go",
			"	sent, err := b.posts.find(ctx, me, s, d, at)\n	if err != nil {\n		return err\n	}\n",
			"	var sent map[int]string\n"}},
		by: []campaign{{pkg: "./bot", run: "^TestLostPost"}, {pkg: "./cmd/countersign", run: "^TestLostPosts$"}, kills},
	},
	{
		name:  "with a full disk everything is tried over and over",
		edits: []edit{{"store/jobs/pool.go", "p.runner.diskSpace.isFull() || ", ""}},
		by:    []campaign{inWorkflow("^TestFullDiskAgain$"), inWorkflow("^TestFullDisk$")},
	},
	{
		name:  "a transaction does not check the claim that it works under",
		edits: []edit{{"store/postgres/run.go", "for _, c := range r.claims {\n", "for _, c := range r.claims[:0] {\n"}},
		by:    []campaign{{pkg: "./store/postgres", run: "^TestClaims$"}},
	},
	{
		name:  "a replica works on after its lease",
		edits: []edit{{"store/postgres/replica.go", "	for _, h := range r.held {\n		h.end()\n	}\n", ""}},
		by:    []campaign{{pkg: "./store/postgres", run: "^TestClaims$"}},
	},
	{
		name: "a process that starts does not look for interrupted runs",
		edits: []edit{{"approvers/workflow/unknown.go",
			"			if e.State == approvers.ExecutionExecuting {\n				timer.Due = t.now\n",
			"			if e.State == \"\" {\n				timer.Due = t.now\n"}},
		by: []campaign{crashPoints},
	},
	{
		name:  "Slack is called before the time that it asked for",
		edits: []edit{{"bot/slackapi/rate_limiter.go", "		held.until = latest(held.until, until)\n", "		_ = held\n"}},
		by:    []campaign{storm, {pkg: "./bot/slackapi", run: "^TestRetryAfter$"}},
	},
	{
		name: "answers go before critical cards",
		edits: []edit{{"approvers/workflow/outbox.go",
			"func (t outboxTx) rank(s store.OutboxMessage) (store.Rank, error) {\n",
			"func (t outboxTx) rank(s store.OutboxMessage) (store.Rank, error) {\n	if s.ID == \"\" {\n		return store.RankPlain, nil\n	}\n"}},
		by: []campaign{storm},
	},
	{
		name:  "while Slack is down it is called all the same",
		edits: []edit{{"bot/slackapi/circuit_breaker.go", "	lost := c.failures >= downAfter && !c.down\n", "	lost := c.failures < 0\n"}},
		by:    []campaign{{pkg: "./bot/slackapi", run: "^TestSlackIsDown$"}, outages("refuses")},
	},
	{
		name:  "a message that can't be read keeps requests from expiring",
		edits: []edit{{"store/bolt/inbox.go", "row.Kind == kind {", "row.Kind == kind || true {"}},
		by:    []campaign{inWorkflow("^TestAnUnhandledMessageDelaysNoExpiry$"), outages("fails-but-is-heard")},
	},
	{
		name:  "a delivery that is handled while Slack is down is given up",
		edits: []edit{{"bot/inbox.go", " && !slackapi.IsPutOff(err)", ""}},
		by:    []campaign{edge("^TestDeliveriesAreKeptWhileSlackIsDown$")},
	},
	{
		name:  "a message that asks for a decision is posted although it is too late",
		edits: []edit{{"bot/render/notice/notice.go", "return asks && n.message.TS == \"\"", "return false && asks && n.message.TS == \"\""}},
		by:    []campaign{{pkg: "./bot/render", run: "^TestLateNotices$"}},
	},
	{
		name:  "a signed head is not checked with any key",
		edits: []edit{{"approvers/head.go", "	if err := c.signed(h, signed); err != nil {\n		fault(\"%w\", err)\n	}\n", ""}},
		by:    []campaign{domain("^TestHeadsFollowEachOther$"), tamperings},
	},
	{
		name:  "a request is believed without its signature",
		edits: []edit{{"bot/transport/http.go", "err := verifier.Ensure(); err != nil", "err := verifier.Ensure(); err != nil && false"}},
		by:    []campaign{{pkg: "./bot/transport", run: "^TestRequests$"}, {pkg: "./bot", run: "^TestUnsignedRequests$"}},
	},
	{
		name:  "a request may come a second time",
		edits: []edit{{"bot/transport/http.go", "q.once && !h.replays.first", "false && !h.replays.first"}},
		by:    []campaign{{pkg: "./bot/transport", run: "^TestReplayedRequests$"}, {pkg: "./bot", run: "^TestReplay$"}},
	},
	{
		name:  "a form that was refused is forgotten",
		edits: []edit{{"approvers/workflow/workflow.go", "row.ReceivedAt.UTC().Truncate(time.Microsecond), t.now, nil\n		return t.PutInbox(row)", "row.ReceivedAt.UTC().Truncate(time.Microsecond), t.now, nil\n		return nil"}},
		by:    []campaign{{pkg: "./bot", run: "^TestReplay$"}},
	},
	{
		name:  "deliveries of one lane are received at the same time",
		edits: []edit{{"bot/transport/lanes.go", "l.queues[h.Sum32()%queues] <- work\n", "go work()\n"}},
		by:    []campaign{{pkg: "./bot/transport", run: "^TestLaneOrder$"}},
	},
	{
		name:  "a socket is closed when Slack wants another one",
		edits: []edit{{"bot/transport/connection.go", "SetReadDeadline(time.Now().Add(farewell))", "SetReadDeadline(time.Now())"}},
		by:    []campaign{{pkg: "./bot/transport", run: "^TestReplacedConnection$"}, {pkg: "./cmd/countersign", run: "^TestRefreshedSockets$"}},
	},
	{
		name:  "a head may follow any other",
		edits: []edit{{"approvers/head.go", "number > 1 && h.Before != c.sum:", "false:"}},
		by:    []campaign{domain("^TestHeadsFollowEachOther$"), tamperings},
	},
	{
		name:  "a head is not compared with the journal",
		edits: []edit{{"approvers/audit/verify_heads.go", "|| root != read.Root:", "|| root != read.Root && false:"}},
		by:    []campaign{{pkg: "./approvers/audit", run: "^TestVerifyComparesHeadsWithJournal$"}},
	},
	{
		name:  "a text may be missing without a record that says so",
		edits: []edit{{"approvers/audit/verify_rows.go", "if slices.Contains(open.erased, seq) {", "if slices.Contains(append(open.erased, seq), seq) {"}},
		by:    []campaign{{pkg: "./approvers/audit", run: "^TestVerifyFindsMissingPayload$"}},
	},
	{
		name:  "the auditor's page does not check the proofs that it made",
		edits: []edit{{"approvers/audit/evidence_seal.go", "noProof != nil || proofs[i]", "noProof != nil || false && proofs[i]"}},
		by:    []campaign{{pkg: "./cmd/countersign", run: "^TestEvidenceOfATamperedHistory$"}},
	},
	{
		name:  "a head is posted again although nothing new was recorded",
		edits: []edit{{"approvers/workflow/seal.go", " || s.Step == int(last.Number)", ""}},
		by:    []campaign{inWorkflow("^TestHeadsArePosted$")},
	},
	{
		name:  "the search for a lost post relies on the machine's clock",
		edits: []edit{{"bot/unconfirmed.go", "s.After.Add(-scanMargin)", "s.CreatedAt.Add(-scanMargin)"}},
		by:    []campaign{clockJumps},
	},
	{
		name:  "a message of another process counts as never posted",
		edits: []edit{{"bot/unconfirmed.go", "		d.until, doubtful = until, true\n", "		d.until = until\n"}},
		by:    []campaign{clockJumps, kills},
	},
	{
		name:  "a timer that was put off before the clock was set back waits until the old time",
		edits: []edit{{"store/jobs/due.go", "		if !t.PutOff.IsZero() {\n			set = t.PutOff\n", "		if !t.PutOff.IsZero() {\n			set = now\n"}},
		by:    []campaign{inWorkflow("^TestWhatWasPutOffBeforeTheClockWasSetBack$")},
	},
}
