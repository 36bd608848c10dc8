package alerts

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
)

const (
	alertsFile  = "../../cmd/countersign/deploy/prometheus/alerts.yaml"
	runbookFile = "../../docs/operate.md"
)

var language = parser.NewParser(parser.Options{})

func engine(t *testing.T) *promql.Engine {
	return promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
}

// firing evaluates the alerts once a minute, from minute 0 to the given minute. It returns the summaries of the alerts
// that fire at the end, by name.
func firing(t *testing.T, series string, minutes int) map[string][]string {
	t.Helper()
	db := promqltest.LoadedStorage(t, "load 1m\n"+series)
	m := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(engine(t), db), AppendableV2: db, Queryable: db, Context: t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: slog.New(slog.DiscardHandler), Parser: language,
	})
	groups, errs := m.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, alertsFile)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	out := map[string][]string{}
	for _, g := range groups {
		for i := range minutes + 1 {
			g.Eval(t.Context(), time.Unix(int64(i)*60, 0))
		}
		for _, r := range g.AlertingRules() {
			if r.LastError() != nil {
				t.Errorf("%s: %v", r.Name(), r.LastError())
			}
			for _, a := range r.ActiveAlerts() {
				if a.State == rules.StateFiring {
					out[r.Name()] = append(out[r.Name()], a.Annotations.Get("summary"))
				}
			}
		}
	}
	return out
}

// present is a series that keeps the alert CountersignAbsent from firing.
const present = "  countersign_build_info 1x3000\n"

// cases has two sets of series for each alert. All series begin at minute 0. With the series in fires, the alert fires
// at the minute with the number after, and not a minute earlier. With the series in quiet, the alert does not fire.
var cases = map[string]struct {
	fires, quiet string
	after        int
	summary      string // a part of the alert's summary that comes from labels
}{
	"CountersignAbsent":         {fires: "  other 1x100\n", after: 3, quiet: present},
	"CountersignHeld":           {fires: "  countersign_held 0 1x100", after: 1, quiet: "  countersign_held 0x100"},
	"CountersignRestarts":       {fires: "  process_start_time_seconds{instance=\"a\"} 0 1 1 2 3x100\n  countersign_build_info{instance=\"a\"} 1x100\n  process_start_time_seconds{instance=\"b\"} 0+1x100", after: 4, quiet: "  process_start_time_seconds{instance=\"a\"} 0 1 1 2 2x100\n  countersign_build_info{instance=\"a\"} 1x100", summary: "(a)"},
	"CountersignPeopleWaitLong": {fires: `  countersign_requests_pending_since_timestamp_seconds{role="lead",risk="high"} 0x100`, after: 61, quiet: `  countersign_requests_pending_since_timestamp_seconds{role="lead",risk="high"} 0+60x100`, summary: "risk high has waited for lead"},
	"CountersignCriticalWaitsLong": {
		fires: `  countersign_requests_pending_since_timestamp_seconds{role="cfo",risk="critical"} 0x100`, after: 16,
		quiet: `  countersign_requests_pending_since_timestamp_seconds{role="cfo",risk="medium"} 0x30`, summary: "for cfo",
	},
	"CountersignNobodyDecides": {fires: `  countersign_requests_unanswered_total{role="lead",tool="x"} 0+1x100`, after: 6, quiet: `  countersign_requests_unanswered_total{role="lead",tool="x"} 0+1x3 3x100`, summary: "lead"},
	"CountersignApprovedUnread": {
		fires: "  countersign_decisions_quick_total{role=\"lead\",tool=\"x\"} 0+1x100\n  countersign_decision_seconds_count{kind=\"approve\",role=\"lead\",tool=\"x\"} 0+2x100", after: 5,
		quiet: "  countersign_decisions_quick_total{role=\"lead\",tool=\"x\"} 0+1x100\n  countersign_decision_seconds_count{kind=\"approve\",role=\"lead\",tool=\"x\"} 0+5x100", summary: "lead approves",
	},
	"CountersignOperatorApproved": {fires: `  countersign_decisions_operator_total{kind="approve",tool="x"} 0 1x100`, after: 1, quiet: `  countersign_decisions_operator_total{kind="reject",tool="x"} 0 1x100`, summary: "call of x"},
	"CountersignPaused":           {fires: "  countersign_paused 1x100", after: 60, quiet: "  countersign_paused 1x50 0 1x50"},
	"CountersignOutcomeUnknown":   {fires: "  countersign_runs_unknown_open 1x100", after: 5, quiet: "  countersign_runs_unknown_open 1x3 0x50"},
	"CountersignToolFails": {
		fires: "  countersign_runs_total{state=\"failed\",tool=\"x\"} 0+1x100\n  countersign_runs_total{state=\"succeeded\",tool=\"x\"} 1x100", after: 5,
		quiet: "  countersign_runs_total{state=\"failed\",tool=\"x\"} 0+1x100\n  countersign_runs_total{state=\"succeeded\",tool=\"x\"} 0+1x100", summary: "runs of x",
	},
	"CountersignRunsLate": {
		fires: "  countersign_run_start_seconds_bucket{le=\"30\"} 0+1x100\n  countersign_run_start_seconds_bucket{le=\"120\"} 0+2x100\n  countersign_run_start_seconds_bucket{le=\"+Inf\"} 0+2x100", after: 6,
		quiet: "  countersign_run_start_seconds_bucket{le=\"30\"} 0+2x100\n  countersign_run_start_seconds_bucket{le=\"120\"} 0+2x100\n  countersign_run_start_seconds_bucket{le=\"+Inf\"} 0+2x100",
	},
	"CountersignToolBlocked":  {fires: `  countersign_tools_blocked{source="crm"} 0 0 2x100`, after: 2, quiet: `  countersign_tools_blocked{source="crm"} 0x100`, summary: "crm"},
	"CountersignServerDown":   {fires: `  countersign_server_up{server="crm"} 0x100`, after: 5, quiet: "  countersign_server_up{server=\"crm\",instance=\"a\"} 0x100\n  countersign_server_up{server=\"crm\",instance=\"b\"} 1x100", summary: "crm"},
	"CountersignWebhookFails": {fires: `  countersign_webhook_deliveries_total{client="ci",outcome="failed"} 0+1x100`, after: 6, quiet: `  countersign_webhook_deliveries_total{client="ci",outcome="delivered"} 0+9x100`, summary: "ci"},
	"CountersignSlackDown":    {fires: "  countersign_slack_up 1x9 0x100", after: 15, quiet: "  countersign_slack_up 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 1"},
	"CountersignSlackRequestsRefused": {
		fires: "  countersign_slack_requests_total{status=\"401\"} 0+1x100\n  countersign_slack_requests_total{status=\"200\"} 9x100", after: 5,
		quiet: "  countersign_slack_requests_total{status=\"401\"} 0+1x100\n  countersign_slack_requests_total{status=\"200\"} 0+2x100",
	},
	"CountersignTokenNotRenewed": {fires: "  countersign_bot_token_expiry_timestamp_seconds 14460x100", after: 7, quiet: "  countersign_bot_token_expiry_timestamp_seconds 21600x100"},
	"CountersignCardUnreachable": {fires: "  countersign_requests_unreachable 1x100", after: 2, quiet: "  countersign_requests_unreachable 0x100"},
	"CountersignCardsLate":       {fires: "  countersign_slack_up 1x100\n  countersign_outbox_waiting{rank=\"first\"} 0x4 3x100", after: 10, quiet: "  countersign_slack_up 0x100\n  countersign_outbox_waiting{rank=\"first\"} 3x100"},
	"CountersignAnswersLate": {
		fires: "  countersign_slack_up 1x100\n  countersign_answer_shown_seconds_bucket{since=\"end\",le=\"10\"} 0+1x100\n  countersign_answer_shown_seconds_bucket{since=\"end\",le=\"60\"} 0+2x100\n  countersign_answer_shown_seconds_bucket{since=\"end\",le=\"+Inf\"} 0+2x100", after: 6,
		quiet: "  countersign_slack_up 0x4 1x10\n  countersign_answer_shown_seconds_bucket{since=\"end\",le=\"10\"} 0+1x100\n  countersign_answer_shown_seconds_bucket{since=\"end\",le=\"60\"} 0+2x100\n  countersign_answer_shown_seconds_bucket{since=\"end\",le=\"+Inf\"} 0+2x100",
	},
	"CountersignChannelLost":         {fires: "  countersign_channels_lost 0 2x100", after: 6, quiet: "  countersign_channels_lost 0 1 1 1 0x50"},
	"CountersignMessagesUndelivered": {fires: `  countersign_messages_undelivered{kind="refused"} 1x100`, after: 15, quiet: `  countersign_messages_undelivered{kind="refused"} 0x100`, summary: "refused"},
	"CountersignModelFails": {
		fires: "  countersign_model_calls_total{agent=\"a\",outcome=\"unavailable\"} 0+2x100\n  countersign_model_calls_total{agent=\"a\",outcome=\"answered\"} 0+1x100", after: 6,
		quiet: "  countersign_model_calls_total{agent=\"a\",outcome=\"unavailable\"} 0+1x100\n  countersign_model_calls_total{agent=\"a\",outcome=\"interrupted\"} 0+9x100\n  countersign_model_calls_total{agent=\"a\",outcome=\"answered\"} 0+1x100", summary: "calls of a",
	},
	"CountersignStoreDown":       {fires: "  countersign_store_up 1 0x100", after: 2, quiet: "  countersign_store_up 1 0x100\n  countersign_disk_full 1x100"},
	"CountersignDiskFull":        {fires: "  countersign_disk_full 0 1x100", after: 1, quiet: "  countersign_disk_full 0x100"},
	"CountersignStoreHangs":      {fires: "  countersign_store_transaction_seconds 1 6x100", after: 1, quiet: "  countersign_store_transaction_seconds 4x100"},
	"CountersignStoreDamaged":    {fires: "  countersign_store_damaged 0 1x100", after: 1, quiet: "  countersign_store_damaged 0x100"},
	"CountersignStoreMoved":      {fires: "  countersign_store_moved 0 1x100", after: 1, quiet: "  countersign_store_moved 0x100"},
	"CountersignHistoryUnsealed": {fires: "  countersign_audit_unsealed 0x4 7 0 7+1x100", after: 21, quiet: "  countersign_audit_unsealed 7+1x9 7+1x9 7+1x9"},
	"CountersignHeadsNotCopied":  {fires: `  countersign_audit_heads_waiting{to="heads.txt"} 0x4 1x100`, after: 19, quiet: "  countersign_audit_heads_waiting{to=\"heads.txt\",instance=\"a\"} 20x100\n  countersign_audit_heads_waiting{to=\"heads.txt\",instance=\"b\"} 20 20 20 20 20 20 20 20 0 20 20 20 20 20 20 20 20 0 20", summary: "heads.txt"},
	"CountersignRetentionLate": {
		fires: "  countersign_retention_last_run_timestamp_seconds 0x1500\n  process_start_time_seconds 0x1500", after: 1441,
		quiet: "  countersign_retention_last_run_timestamp_seconds 0x1500\n  process_start_time_seconds 60000x1500",
	},
	"CountersignPolicyUnusable":    {fires: "  countersign_policy_usable 0x100", after: 1, quiet: "  countersign_policy_usable 1x100"},
	"CountersignPolicyFileDiffers": {fires: `  countersign_policy_file_differs{file="pins"} 1x100`, after: 15, quiet: `  countersign_policy_file_differs{file="pins"} 1x9 0x90`, summary: "pins file"},
}

// TestAlerts checks that each alert fires at the right time, and that the quiet series do not fire the alert.
func TestAlerts(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			always := present
			if name == "CountersignAbsent" {
				always = ""
			}
			got := firing(t, always+c.fires, c.after)[name]
			if len(got) != 1 || !strings.Contains(got[0], c.summary) || strings.Contains(got[0], "{{") {
				t.Errorf("after %d minutes it says %q", c.after, got)
			}
			if got := firing(t, always+c.fires, c.after-1)[name]; len(got) > 0 {
				t.Errorf("a minute earlier it says %q", got)
			}
			quiet := c.quiet
			if !strings.HasSuffix(quiet, "\n") {
				quiet += "\n"
			}
			if got := firing(t, always+quiet, c.after)[name]; len(got) > 0 {
				t.Errorf("it should be quiet, and says %q", got)
			}
		})
	}
}

// TestRunbook checks that each alert is in cases, has an entry in the runbook, and points to this entry. Each entry of
// the runbook must belong to an alert. The queries of the alerts may use only metrics that the bot has. The file must be
// valid in Prometheus 2. This check finds a summary with an unquoted comma, because the text after the comma then
// becomes an invalid name of an annotation.
func TestRunbook(t *testing.T) {
	groups, errs := rulefmt.ParseFile(alertsFile, false, model.LegacyValidation, language, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	runbook, err := os.ReadFile(runbookFile)
	if err != nil {
		t.Fatal(err)
	}
	var entries []string
	for _, m := range regexp.MustCompile(`(?m)^### (Countersign\w+)$`).FindAllSubmatch(runbook, -1) {
		entries = append(entries, string(m[1]))
	}
	var alerts []string
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			alerts = append(alerts, r.Alert)
			if _, ok := cases[r.Alert]; !ok {
				t.Errorf("%s has no case", r.Alert)
			}
			if want := "docs/operate.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
				t.Errorf("%s has the runbook_url %q instead of %s", r.Alert, r.Annotations["runbook_url"], want)
			}
			known(t, r.Alert, r.Expr)
		}
	}
	if !slices.Equal(alerts, entries) {
		t.Errorf("the alerts are\n%q, and the runbook has\n%q", alerts, entries)
	}
	if len(cases) != len(alerts) {
		t.Errorf("there are %d cases for %d alerts", len(cases), len(alerts))
	}
}

// sample returns the bot's metrics, as series. TestSampleOfMetrics of cmd/countersign keeps testdata/metrics.txt up to
// date.
func sample(t *testing.T) []labels.Labels {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "metrics.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var out []labels.Labels
	for line := range strings.Lines(string(text) + "process_start_time_seconds\ngo_goroutines\nprocess_resident_memory_bytes\nprocess_cpu_seconds_total\n") {
		metric, err := language.ParseMetric(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, metric)
	}
	return out
}

// known checks that the bot has each metric that a query selects, and that the metric has the labels in the selector.
func known(t *testing.T, what, query string) {
	t.Helper()
	expr, err := language.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	all := sample(t)
	for _, path := range parser.ExtractSelectors(expr) {
		found := slices.ContainsFunc(all, func(l labels.Labels) bool {
			for _, m := range path {
				if v := l.Get(m.Name); m.Name == model.MetricNameLabel && !m.Matches(v) || m.Name != model.MetricNameLabel && !l.Has(m.Name) {
					return false
				}
			}
			return true
		})
		if !found {
			t.Errorf("%s asks for %s, which the bot does not have", what, path)
		}
	}
}

// stored returns a storage with the series of the sample. The values of the series rise with time.
func stored(t *testing.T) storage.Storage {
	var load bytes.Buffer
	load.WriteString("load 15s\n")
	for _, l := range sample(t) {
		load.WriteString("  " + l.String() + " 0+1x400\n")
	}
	return promqltest.LoadedStorage(t, load.String())
}

// TestComposeConfiguration reads the configuration in the compose file's folder as Prometheus does.
func TestComposeConfiguration(t *testing.T) {
	c, err := config.LoadFile("../../cmd/countersign/deploy/compose/prometheus.yml", false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.ScrapeConfigs) != 1 || len(c.RuleFiles) != 1 || filepath.Base(c.RuleFiles[0]) != filepath.Base(alertsFile) {
		t.Errorf("Prometheus reads the metrics of %d jobs, and the rules in %s", len(c.ScrapeConfigs), c.RuleFiles)
	}
}
