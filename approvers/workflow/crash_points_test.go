package workflow_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
)

// crashTransactions are the transactions of the workflow on the path of a call. A process can stop before and after the
// commit of each transaction.
var crashTransactions = []string{
	"Recover", "Receive", "ReceiveMessage", "Begin", "Propose", "ResolveAvailability", "Expand", "Delivered", "Decide", "Claim", "Finish", "Report", "LeaveUnknown", "Answer",
	"BeginPreview", "EndPreview",
}

// crashMoments are the points between two transactions.
var crashMoments = []string{notAcknowledged, notHandled, modelAnswered, notPosted, notShown, notCalled, notActed, notAnswered, notRecorded}

// cutPoints lists the points at which a crash interrupts a run. At each of these points, the state executing is stored,
// but the outcome is not. The next process finds only that the run has begun.
var cutPoints = map[string]bool{
	"Claim" + testkit.BehindCommit: true, notCalled: true, notActed: true, notAnswered: true, notRecorded: true, "Finish" + testkit.BeforeCommit: true,
}

// crashPoints names every point. For each point, docs/crashes.md describes the actions of the next process.
func crashPoints() []string {
	points := slices.Clone(crashMoments)
	for _, transaction := range crashTransactions {
		points = append(points, transaction+testkit.BeforeCommit, transaction+testkit.BehindCommit)
	}
	return points
}

// newRunning returns an environment with two calls, one of which needs approval. effect is the protection level of both
// tools. If muted is set, people do not report the outcomes of runs.
func newRunning(t testing.TB, database string, effect approvers.Effect, muted bool, kill func(string) bool) *environment {
	w := newEnvironmentOn(t, database, kill)
	w.script = []string{`issue_refund {"amount":49.99}`, `update_address {}`}
	for _, name := range []string{"issue_refund", "update_address"} {
		w.tools.effect(name, effect)
	}
	w.muted = muted
	w.policy.Store(policy("policy-1", companion))
	return w
}

// TestCrashPoints kills the process at every named point on the path of a call, with tools of each protection level. A
// new process then continues with the same store. An unprotected tool must not run twice: the outcome of an interrupted
// run is unknown, and the bot asks people. The bot repeats an interrupted run of a tool of another protection level,
// with the same idempotency key. If no run was interrupted, every call must run once.
//
// After an interrupted run, TestCrashPoints also kills the next process at each point.
func TestCrashPoints(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	sum := &crashSum{reached: map[string]map[approvers.Effect]map[string]int{}}
	sum.allPoints(t, min(3, testkit.Stride())) // the short form tries each point with one protection level only
	for _, point := range crashPoints() {
		if sum.reached[point] == nil {
			t.Errorf("the process was never stopped at the point %q: it is no longer on the path of a call", point)
		}
	}
	for point := range sum.reached {
		if !slices.Contains(crashPoints(), point) {
			t.Errorf("%q is a crash point that has no name in crashTransactions or crashMoments, nor in docs/crashes.md", point)
		}
	}
	sum.allEnds(t)
}

// TestCrashPointsPostgres is TestCrashPoints with a PostgreSQL database as the store. The short form of the test tries
// one of 45 points.
func TestCrashPointsPostgres(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	stride := 45
	if testkit.Stride() == 1 {
		stride = 1
	}
	sum := &crashSum{reached: map[string]map[approvers.Effect]map[string]int{}, server: newDatabase(t)}
	sum.allPoints(t, stride)
	sum.allEnds(t)
}

// allPoints kills the process at every point. If stride is n, allPoints tries only every nth point.
func (s *crashSum) allPoints(t *testing.T, stride int) {
	for i, effect := range []approvers.Effect{approvers.ReadOnly, approvers.Idempotent, approvers.Unprotected} {
		t.Run(string(effect), func(t *testing.T) {
			first := 1 + i*max(1, stride/3)%stride
			for n, crashed := first, true; crashed && !t.Failed(); n += stride {
				crashed = s.live(t, effect, false, func(_ string, count, _ int) bool { return count == n }) > 0
			}
			again := stride
			if effect == approvers.Unprotected {
				// The stride is smaller, because people are asked about runs, and report, only for unprotected tools.
				again = max(1, stride/3)
			}
			// The process is killed while the tool runs, and again at a later point.
			for _, muted := range []bool{false, true} {
				if muted && effect != approvers.Unprotected {
					continue // people are asked about runs only for unprotected tools
				}
				for n, crashed := 1+i%again, 2; crashed == 2 && !t.Failed(); n += again {
					after := 0
					crashed = s.live(t, effect, muted, func(point string, _, crashes int) bool {
						if crashes == 0 {
							return point == notAnswered
						}
						after++
						return crashes == 1 && after == n
					})
				}
			}
		})
	}
}

// allEnds checks that the test had tool runs of three kinds: runs that no crash disturbed, runs that were repeated after
// a crash, and runs about whose outcome people were asked.
func (s *crashSum) allEnds(t *testing.T) {
	t.Helper()
	t.Log(s)
	if s.unknown == 0 || s.again == 0 || s.once == 0 {
		t.Error("no run was undisturbed, or no run was repeated, or nobody was asked about a run")
	}
}

// TestCrashPointsInDocs compares the tables in docs/crashes.md with the points that have a name.
func TestCrashPointsInDocs(t *testing.T) {
	testkit.SkipIfShort(t)
	page, err := os.ReadFile("../../docs/crashes.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(page)) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |"); ok {
			rows = append(rows, strings.Trim(name, "`"))
		}
	}
	names := slices.Concat(crashTransactions, crashMoments, callerMoments)
	for _, transaction := range callerTransactions {
		names = append(names, "Callers."+transaction)
	}
	for _, name := range names {
		if !slices.Contains(rows, name) {
			t.Errorf("docs/crashes.md has no row %q", name)
		}
	}
}

// TestCrashesAtRandom kills one process after the other at random points. A life is one environment from its first
// process until no work is left. TestCrashesAtRandom runs six lives for each protection level, or as many as
// COUNTERSIGN_CRASHES says.
func TestCrashesAtRandom(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	seed, lives := testkit.Seed(t), testkit.Size(t, "COUNTERSIGN_CRASHES", 6)
	sum := &crashSum{reached: map[string]map[approvers.Effect]map[string]int{}}
	for i, effect := range []approvers.Effect{approvers.ReadOnly, approvers.Idempotent, approvers.Unprotected} {
		for n := range lives {
			random := testkit.Chance(seed, uint64(3*n+i))
			sum.live(t, effect, random.IntN(4) == 0, func(string, int, int) bool { return random.IntN(12) == 0 })
			if t.Failed() {
				return
			}
		}
	}
	t.Log(sum)
}

// crashSum counts the results of the crashes.
type crashSum struct {
	lives, crashes       int
	once, again, unknown int // executions that ran undisturbed, were run again, or needed people's reports
	acts                 int // how often unprotected tools acted
	runs                 int // the number of executions of unprotected tools
	reached              map[string]map[approvers.Effect]map[string]int
	server               *pgserver.Server // of the database for the lives; nil: each has a file
}

// empty empties the tables of the database and returns the database's address. Without a database, empty returns "".
func (s *crashSum) empty(t *testing.T) string {
	t.Helper()
	if s.server == nil {
		return ""
	}
	const clear = `DO $$ DECLARE name text; BEGIN
FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'countersign' AND tablename NOT IN ('migrations', 'origin') LOOP
EXECUTE 'DELETE FROM countersign.' || name; END LOOP; END $$`
	if err := s.server.SQL("postgres", clear); err != nil {
		t.Fatal(err)
	}
	return s.server.URL("postgres")
}

func (s *crashSum) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "points=%d lives=%d crashes=%d: %d runs once, %d cut and run again under the same key, %d cut, unknown and asked about; %d runs of unprotected tools acted %d times\n",
		len(s.reached), s.lives, s.crashes, s.once, s.again, s.unknown, s.runs, s.acts)
	for _, point := range slices.Sorted(maps.Keys(s.reached)) {
		fmt.Fprintf(&out, "%-50s", point)
		for _, effect := range []approvers.Effect{approvers.ReadOnly, approvers.Idempotent, approvers.Unprotected} {
			fmt.Fprintf(&out, " %s: %v", effect, s.reached[point][effect])
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// s.live runs the bot until no work is left. After each crash, live starts a new process. At each point, live calls
// stop with the number of points and crashes so far. If stop returns true, live kills the process at this point. live
// returns the number of crashes.
func (s *crashSum) live(t *testing.T, effect approvers.Effect, muted bool, stop func(point string, count, crashes int) bool) (crashes int) {
	name := fmt.Sprint(effect, " ", s.lives)
	s.lives++
	t.Run(name, func(t *testing.T) {
		var stops []string
		count := 0
		w := newRunning(t, s.empty(t), effect, muted, func(point string) bool {
			count++
			if !stop(point, count, len(stops)) {
				return false
			}
			stops = append(stops, point)
			return true
		})
		w.through()
		s.judge(w, effect, muted, stops)
		w.wantPreviews()
		w.invariants()
		if t.Failed() {
			t.Logf("stopped at %q", stops)
		}
		s.crashes += w.crashes
		crashes = w.crashes
	})
	return crashes
}

// judge checks the final state of an environment.
func (s *crashSum) judge(w *environment, effect approvers.Effect, muted bool, stops []string) {
	w.t.Helper()
	w.turns = w.heard()
	w.wantTurn(w.turns[0], approvers.TurnAnswered)
	var cuts []string
	for _, point := range stops {
		if cutPoints[point] {
			cuts = append(cuts, point)
		}
	}
	cut := 0
	for _, c := range w.callsOf(w.turns[0]) {
		e := w.execution(c.Execution)
		cut += w.cut[e.ID]
		s.execution(w, e, muted)
	}
	if len(stops) == 1 && cut != len(cuts) {
		w.t.Errorf("stopped at %q: want %d runs cut, and %d were", stops, len(cuts), cut)
	}
	for _, point := range stops {
		if s.reached[point] == nil {
			s.reached[point] = map[approvers.Effect]map[string]int{}
		}
		if s.reached[point][effect] == nil {
			s.reached[point][effect] = map[string]int{}
		}
		if len(stops) == 1 || cutPoints[point] == (len(cuts) > 0) {
			s.reached[point][effect][came(effect, cutPoints[point])]++
		}
	}
}

// The function came returns the expected end of a run.
func came(effect approvers.Effect, cut bool) string {
	switch {
	case !cut:
		return "once"
	case effect == approvers.Unprotected:
		return "unknown, asked"
	}
	return "again"
}

// s.execution checks the final state of one execution.
func (s *crashSum) execution(w *environment, e approvers.Execution, muted bool) {
	w.t.Helper()
	count := map[approvers.AuditKind]int{}
	for _, a := range readStore(w.harness, func(r store.Reader) ([]approvers.AuditRecord, error) { return r.Audit(e.Chain()) }) {
		count[a.Kind]++
	}
	asked := 0
	for _, message := range w.messagesOf(e.ID) {
		if message.Kind == store.OutboxUnknown && message.TS != "" {
			asked++
		}
	}
	calls, acts, cut := w.calls[e.ID], w.acts[e.ID], w.cut[e.ID]
	lost := cut > 0 && e.Effect == approvers.Unprotected || cut == mostTries
	said := fmt.Sprintf("%s (%s) was cut %d times, called %d times, acted %d times, is %s (reported by %q), asked about in %d places: %v",
		e.Tool, e.Effect, cut, calls, acts, e.State, e.ReportedBy, asked, count)
	wantState, wantTries := approvers.ExecutionSucceeded, cut+1
	switch {
	case lost && muted:
		wantState, wantTries = approvers.ExecutionUnknown, cut
	case lost:
		wantTries = cut
		if acts == 0 {
			wantState = approvers.ExecutionFailed
		}
	}
	if e.State != wantState || count[approvers.AuditExecuting] != wantTries || count[approvers.AuditReturned] != 1 {
		w.t.Errorf("%s; want %s after %d tries, and one result", said, wantState, wantTries)
	}
	if lost != (asked > 0) || count[approvers.AuditUnknown] != b2i(lost) || (lost && !muted) != (e.ReportedBy != "") {
		w.t.Errorf("%s; people must be asked about what was lost, and about nothing else", said)
	}
	if e.Effect == approvers.Unprotected {
		s.runs, s.acts = s.runs+1, s.acts+acts
		if calls > 1 || acts > 1 {
			w.t.Errorf("%s; it must not run twice", said)
		}
	}
	if e.Effect == approvers.Idempotent && acts > 1 {
		w.t.Errorf("%s; an idempotent tool must act only once under one key", said)
	}
	switch {
	case lost:
		s.unknown++
	case cut > 0:
		s.again++
	default:
		s.once++
	}
}

// mostTries is how often the bot runs an interrupted execution. After mostTries interrupted runs, the bot asks people.
const mostTries = 5
