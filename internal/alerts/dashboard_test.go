package alerts

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
)

const dashboardFile = "../../cmd/countersign/deploy/grafana/countersign.json"

var update = flag.Bool("update", false, "write the dashboard")

// panel is one panel of the dashboard. Each element of queries holds a PromQL query and the legend of this query.
type panel struct {
	title, about, unit string
	kind               string // stat or timeseries
	queries            [][2]string
}

// rows are the rows of the dashboard. Figures that come from the store are the same in all replicas. Therefore the
// queries for these figures take the maximum over the replicas, not the sum.
var rows = []struct {
	title  string
	panels []panel
}{
	{"Now", []panel{
		{"Wait for people", "Requests that nobody has decided yet", "short", "stat", [][2]string{{`sum(max by (role, risk) (countersign_requests_pending))`, ""}}},
		{"Oldest", "How long the oldest stage has waited", "s", "stat", [][2]string{{`max(time() - max by (role, risk) (countersign_requests_pending_since_timestamp_seconds))`, ""}}},
		{"Outcomes unknown", "Runs about which people are asked", "short", "stat", [][2]string{{`max(countersign_runs_unknown_open)`, ""}}},
		{"Cards that nobody sees", "Requests whose cards Slack refuses everywhere", "short", "stat", [][2]string{{`max(countersign_requests_unreachable)`, ""}}},
		{"Slack", "1 while Slack answers and reaches the bot", "short", "stat", [][2]string{{`min(countersign_slack_up)`, ""}}},
		{"Processes", "Processes that work on the store", "short", "stat", [][2]string{{`max(countersign_replicas)`, ""}}},
	}},
	{"People", []panel{
		{"Waiting, by role and risk", "", "short", "timeseries", [][2]string{{`max by (role, risk) (countersign_requests_pending)`, "{{role}} {{risk}}"}}},
		{"Longest wait, by role", "", "s", "timeseries", [][2]string{{`max by (role) (time() - countersign_requests_pending_since_timestamp_seconds)`, "{{role}}"}}},
		{"Time from the card to the decision", "Half and nine tenths of the decisions", "s", "timeseries", [][2]string{
			{`histogram_quantile(0.5, sum by (le, role) (rate(countersign_decision_seconds_bucket[1h])))`, "{{role}} half"},
			{`histogram_quantile(0.9, sum by (le, role) (rate(countersign_decision_seconds_bucket[1h])))`, "{{role}} 9/10"},
		}},
		{"Requests that ended, each hour", "", "short", "timeseries", [][2]string{{`sum by (state) (increase(countersign_requests_total[1h]))`, "{{state}}"}}},
		{"Expired although nobody decided, each day", "", "short", "timeseries", [][2]string{{`sum by (role) (increase(countersign_requests_unanswered_total[1d]))`, "{{role}}"}}},
		{"Share of approvals within 3 s", "Too fast to have read the card", "percentunit", "timeseries", [][2]string{{
			`sum by (role) (increase(countersign_decisions_quick_total[7d])) / sum by (role) (increase(countersign_decision_seconds_count{kind="approve"}[7d]))`, "{{role}}",
		}}},
	}},
	{"Runs", []panel{
		{"Runs, each hour", "", "short", "timeseries", [][2]string{{`sum by (state) (increase(countersign_runs_total[1h]))`, "{{state}}"}}},
		{"From the click to the run", "99 of 100 runs", "s", "timeseries", [][2]string{{`histogram_quantile(0.99, sum by (le) (rate(countersign_run_start_seconds_bucket[15m])))`, "99 %"}}},
		{"MCP servers", "1 while connected", "short", "timeseries", [][2]string{{`min by (server) (countersign_server_up)`, "{{server}}"}}},
	}},
	{"Model", []panel{
		{"Tokens, each hour", "", "short", "timeseries", [][2]string{{`sum by (agent, direction) (increase(countersign_model_tokens_total[1h]))`, "{{agent}} {{direction}}"}}},
		{"Calls", "A second, by what came of them", "reqps", "timeseries", [][2]string{{`sum by (outcome) (rate(countersign_model_calls_total[5m]))`, "{{outcome}}"}}},
		{"Time of an answer", "Half and nine tenths of the calls", "s", "timeseries", [][2]string{
			{`histogram_quantile(0.5, sum by (le) (rate(countersign_model_call_seconds_bucket[15m])))`, "half"},
			{`histogram_quantile(0.9, sum by (le) (rate(countersign_model_call_seconds_bucket[15m])))`, "9/10"},
		}},
	}},
	{"Slack", []panel{
		{"Messages that wait for Slack", "", "short", "timeseries", [][2]string{{`max by (rank) (countersign_outbox_waiting)`, "{{rank}}"}}},
		{"Time until Slack shows an answer", "99 of 100 answers", "s", "timeseries", [][2]string{{`histogram_quantile(0.99, sum by (le, since) (rate(countersign_answer_shown_seconds_bucket[15m])))`, "since {{since}}"}}},
		{"Calls", "A second, by what came of them", "reqps", "timeseries", [][2]string{{`sum by (outcome) (rate(countersign_slack_calls_total[5m]))`, "{{outcome}}"}}},
	}},
	{"Store and history", []panel{
		{"Size", "", "bytes", "timeseries", [][2]string{{`max(countersign_store_size_bytes)`, "store"}}},
		{"Writes", "A second", "wps", "timeseries", [][2]string{{`sum(rate(countersign_store_write_seconds_count[5m]))`, "transactions"}}},
		{"Time of a write", "99 of 100 transactions", "s", "timeseries", [][2]string{{`histogram_quantile(0.99, sum by (le) (rate(countersign_store_write_seconds_bucket[5m])))`, "99 %"}}},
		{"Not sealed, not copied", "Records without a head, and heads that are in the store only", "short", "timeseries", [][2]string{
			{`max(countersign_audit_unsealed)`, "records"}, {`min by (to) (countersign_audit_heads_waiting)`, "heads for {{to}}"},
		}},
		{"Memory", "", "bytes", "timeseries", [][2]string{{`process_resident_memory_bytes and on (instance) countersign_build_info`, "{{instance}}"}}},
		{"Goroutines", "", "short", "timeseries", [][2]string{{`go_goroutines and on (instance) countersign_build_info`, "{{instance}}"}}},
	}},
}

type object = map[string]any

// dashboard returns the dashboard in Grafana's JSON.
func dashboard() object {
	source := object{"type": "prometheus", "uid": "${source}"}
	var panels []object
	y := 0
	add := func(p object) { p["id"] = len(panels) + 1; panels = append(panels, p) }
	for _, row := range rows {
		add(object{"type": "row", "title": row.title, "collapsed": false, "panels": []object{}, "gridPos": object{"h": 1, "w": 24, "x": 0, "y": y}})
		y++
		wide, high := 8, 8
		if row.panels[0].kind == "stat" {
			wide, high = 4, 4
		}
		for i, p := range row.panels {
			var targets []object
			for n, q := range p.queries {
				targets = append(targets, object{"refId": string(rune('A' + n)), "expr": q[0], "legendFormat": q[1], "datasource": source})
			}
			add(object{
				"type": p.kind, "title": p.title, "description": p.about, "datasource": source, "targets": targets,
				"gridPos":     object{"h": high, "w": wide, "x": i * wide % 24, "y": y + i*wide/24*high},
				"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
			})
		}
		y += (len(row.panels)*wide + 23) / 24 * high
	}
	return object{
		"uid": "countersign", "title": "Countersign", "schemaVersion": 41, "version": 1, "editable": true, "refresh": "1m", "timezone": "browser",
		"tags": []string{"countersign"}, "time": object{"from": "now-24h", "to": "now"}, "panels": panels, "annotations": object{"list": []object{}},
		"templating": object{"list": []object{{"type": "datasource", "name": "source", "label": "Prometheus", "query": "prometheus", "current": object{}}}},
	}
}

// TestDashboard compares the dashboard's file with the rows above. With -update it writes the file.
func TestDashboard(t *testing.T) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(dashboard()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(dashboardFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(dashboardFile); err != nil || !bytes.Equal(have, b.Bytes()) {
		t.Errorf("%s is out of date; run this test with -update (%v)", dashboardFile, err)
	}
}

// TestQueries runs each query of the dashboard against the bot's own metrics. Each query must have a result. The legend
// of a query may use only labels of this result.
func TestQueries(t *testing.T) {
	db, engine := stored(t), engine(t)
	n := 0
	for _, row := range rows {
		for _, p := range row.panels {
			for _, q := range p.queries {
				n++
				known(t, p.title, q[0])
				query, err := engine.NewInstantQuery(t.Context(), db, nil, q[0], time.Unix(6000, 0))
				if err != nil {
					t.Errorf("%s: %v", p.title, err)
					continue
				}
				result := query.Exec(t.Context())
				vector, err := result.Vector()
				if err != nil || len(vector) == 0 {
					t.Errorf("%s: %s has no result: %v", p.title, q[0], err)
				}
				legend(t, p.title, q[1], vector)
				query.Close()
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d queries", n)
	}
}

// legend checks that the result has the labels that a legend uses.
func legend(t *testing.T, title, text string, v promql.Vector) {
	t.Helper()
	for part := range strings.SplitSeq(text, "{{") {
		name, _, ok := strings.Cut(part, "}}")
		if !ok || len(v) == 0 || name == "instance" {
			continue
		}
		if !v[0].Metric.Has(name) {
			t.Errorf("%s: the result has no label %s: %s", title, name, v[0].Metric)
		}
	}
}
