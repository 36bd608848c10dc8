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
	limits             []object // values from which a colour applies; in a timeseries, each limit is a dashed line
	steps              bool     // only for a timeseries: the value stays the same until the next value
}

// limit returns a threshold of a panel. Values from this threshold on have the colour.
func limit(value float64, colour string) object { return object{"value": value, "color": colour} }

// rows are the rows of the dashboard. Figures that come from the store are the same in all replicas. Therefore the
// queries for these figures take the maximum over the replicas, not the sum. No panel may show a good value if there are
// no metrics: a query ends with "or 0 * max(countersign_build_info)" instead of "or vector(0)".
var rows = []struct {
	title  string
	panels []panel
}{
	{"Now", []panel{
		{title: "Wait for people", about: "Requests that nobody has decided yet", unit: "none", kind: "stat", queries: [][2]string{{`sum(max by (role, risk) (countersign_requests_pending))`, ""}}},
		{title: "Oldest", about: "How long the oldest stage has waited", unit: "s", kind: "stat", queries: [][2]string{{`time() - min(countersign_requests_pending_since_timestamp_seconds) or 0 * max(countersign_build_info)`, ""}}, limits: []object{limit(900, "orange"), limit(3600, "red")}},
		{title: "Outcomes unknown", about: "Runs about which people are asked", unit: "none", kind: "stat", queries: [][2]string{{`max(countersign_runs_unknown_open)`, ""}}, limits: []object{limit(1, "red")}},
		{title: "Cards nobody sees", about: "Requests with a card that nobody who may decide can see", unit: "none", kind: "stat", queries: [][2]string{{`max(countersign_requests_unreachable)`, ""}}, limits: []object{limit(1, "red")}},
		{title: "Refused messages", about: "Messages that Slack refuses: countersign pending lists them", unit: "none", kind: "stat", queries: [][2]string{{`sum(max by (kind) (countersign_messages_undelivered))`, ""}}, limits: []object{limit(1, "orange")}},
		{title: "Slack", about: "Up while Slack answers every process, and reaches it", unit: "bool:up/down", kind: "stat", queries: [][2]string{{`min(countersign_slack_up)`, ""}}, limits: []object{limit(0, "red"), limit(1, "green")}},
		{title: "Paused", about: "Whether an operator or a person paused everything", unit: "bool:yes/no", kind: "stat", queries: [][2]string{{`max(countersign_paused)`, ""}}, limits: []object{limit(1, "orange")}},
		{title: "Processes", about: "Processes that work on the store", unit: "none", kind: "stat", queries: [][2]string{{`max(countersign_replicas)`, ""}}},
	}},
	{"People", []panel{
		{title: "Waiting, by role and risk", unit: "none", kind: "timeseries", steps: true, queries: [][2]string{{`max by (role, risk) (countersign_requests_pending) > 0`, "{{role}}, {{risk}}"}}},
		{title: "Longest wait, by role", about: "Dashed: the alert's limit. A gap: nothing waits", unit: "suffix:min", kind: "timeseries", limits: []object{limit(60, "red")}, queries: [][2]string{{`max by (role) (time() - countersign_requests_pending_since_timestamp_seconds) / 60`, "{{role}}"}}},
		{title: "Time from the card to the decision", about: "Half and nine tenths of the decisions of the last hour", unit: "suffix:min", kind: "timeseries", queries: [][2]string{
			{`histogram_quantile(0.5, sum by (le, role) (rate(countersign_decision_seconds_bucket[1h]))) / 60`, "{{role}}, half"},
			{`histogram_quantile(0.9, sum by (le, role) (rate(countersign_decision_seconds_bucket[1h]))) / 60`, "{{role}}, 9/10"},
		}},
		{title: "Requests that ended, each hour", unit: "none", kind: "timeseries", queries: [][2]string{{`sum by (state) (increase(countersign_requests_total[1h]))`, "{{state}}"}}},
		{title: "Expired although nobody decided", about: "Each day. Dashed: the alert's limit", unit: "none", kind: "timeseries", limits: []object{limit(5, "red")}, queries: [][2]string{{`sum by (role) (increase(countersign_requests_unanswered_total[1d]))`, "{{role}}"}}},
		{title: "Share of approvals within 3 s", about: "Too fast to have read the card. Dashed: the alert's limit", unit: "percentunit", kind: "timeseries", limits: []object{limit(.3, "red")}, queries: [][2]string{{
			`sum by (role) (increase(countersign_decisions_quick_total[7d])) / sum by (role) (increase(countersign_decision_seconds_count{kind="approve"}[7d]))`, "{{role}}",
		}}},
	}},
	{"Runs", []panel{
		{title: "Runs, each hour", unit: "none", kind: "timeseries", queries: [][2]string{{`sum by (state) (increase(countersign_runs_total[1h]))`, "{{state}}"}}},
		{title: "From the click to the run", about: "99 of 100 runs", unit: "s", kind: "timeseries", queries: [][2]string{{`histogram_quantile(0.99, sum by (le) (rate(countersign_run_start_seconds_bucket[1h])))`, "99 %"}}},
		{title: "Connections", about: "Slack and each MCP server", unit: "bool:up/down", kind: "timeseries", steps: true, queries: [][2]string{
			{`min(countersign_slack_up)`, "Slack"}, {`max by (server) (countersign_server_up)`, "{{server}}"},
		}},
	}},
	{"Model", []panel{
		{title: "Tokens, each hour", unit: "short", kind: "timeseries", queries: [][2]string{{`sum by (agent, direction) (increase(countersign_model_tokens_total[1h]))`, "{{agent}}, {{direction}}"}}},
		{title: "Calls to the model, each hour", about: "By outcome", unit: "none", kind: "timeseries", queries: [][2]string{{`sum by (outcome) (increase(countersign_model_calls_total[1h])) > 0`, "{{outcome}}"}}},
		{title: "Time of an answer", about: "Half and nine tenths of the calls", unit: "s", kind: "timeseries", queries: [][2]string{
			{`histogram_quantile(0.5, sum by (le) (rate(countersign_model_call_seconds_bucket[1h])))`, "half"},
			{`histogram_quantile(0.9, sum by (le) (rate(countersign_model_call_seconds_bucket[1h])))`, "9/10"},
		}},
	}},
	{"Slack", []panel{
		{title: "Messages that wait for Slack", unit: "none", kind: "timeseries", steps: true, queries: [][2]string{{`max by (rank) (countersign_outbox_waiting)`, "{{rank}}"}}},
		{title: "Time until Slack shows an answer", about: "99 of 100 answers, from the end of the turn", unit: "s", kind: "timeseries", queries: [][2]string{{`histogram_quantile(0.99, sum by (le) (rate(countersign_answer_shown_seconds_bucket{since="end"}[1h])))`, "99 %"}}},
		{title: "Calls to Slack, each hour", about: "By outcome", unit: "none", kind: "timeseries", queries: [][2]string{{`sum by (outcome) (increase(countersign_slack_calls_total[1h]))`, "{{outcome}}"}}},
	}},
	{"Other agents", []panel{
		{title: "Other agents' requests, each hour", about: "Requests that ended", unit: "none", kind: "timeseries", queries: [][2]string{{`sum by (client, state) (increase(countersign_gateway_approvals_total[1h]))`, "{{client}}, {{state}}"}}},
		{title: "Connections that wait for a decision", unit: "none", kind: "timeseries", steps: true, queries: [][2]string{{`sum(countersign_gateway_waiting)`, "connections"}}},
		{title: "HTTP requests to the gateway, each hour", about: "By status of the response", unit: "none", kind: "timeseries", queries: [][2]string{{`sum by (client, status) (increase(countersign_gateway_requests_total[1h]))`, "{{client}}, {{status}}"}}},
	}},
	{"Store and history", []panel{
		{title: "Size", unit: "bytes", kind: "timeseries", queries: [][2]string{{`max(countersign_store_size_bytes)`, "store"}}},
		{title: "Writes", about: "A second", unit: "wps", kind: "timeseries", queries: [][2]string{{`sum(rate(countersign_store_write_seconds_count[$__rate_interval]))`, "transactions"}}},
		{title: "Time of a write", about: "99 of 100 transactions", unit: "s", kind: "timeseries", queries: [][2]string{{`histogram_quantile(0.99, sum by (le) (rate(countersign_store_write_seconds_bucket[$__rate_interval])))`, "99 %"}}},
		{title: "Not sealed, not copied", about: "Records without a head, and heads that are in the store only", unit: "none", kind: "timeseries", steps: true, queries: [][2]string{
			{`max(countersign_audit_unsealed)`, "records"}, {`min by (to) (countersign_audit_heads_waiting)`, "heads for {{to}}"},
		}},
		{title: "Memory", unit: "bytes", kind: "timeseries", queries: [][2]string{{`process_resident_memory_bytes and on (instance) countersign_build_info`, "{{instance}}"}}},
		{title: "Goroutines", unit: "none", kind: "timeseries", queries: [][2]string{{`go_goroutines and on (instance) countersign_build_info`, "{{instance}}"}}},
	}},
}

type object = map[string]any

// written returns the dashboard in Grafana's JSON.
func written() object {
	source := object{"type": "prometheus", "uid": "${source}"}
	var panels []object
	y := 0
	add := func(p object) { p["id"] = len(panels) + 1; panels = append(panels, p) }
	for _, row := range rows {
		add(object{"type": "row", "title": row.title, "collapsed": false, "panels": []object{}, "gridPos": object{"h": 1, "w": 24, "x": 0, "y": y}})
		y++
		wide, high := 8, 8
		if row.panels[0].kind == "stat" {
			wide, high = 6, 3 // a narrow panel would cut off its title
		}
		for i, p := range row.panels {
			var targets []object
			for n, q := range p.queries {
				target := object{"refId": string(rune('A' + n)), "expr": q[0], "legendFormat": q[1], "datasource": source}
				if p.kind == "stat" {
					target["instant"], target["range"] = true, false // a range's last value would hide that the metrics are gone
				}
				targets = append(targets, target)
			}
			shown := object{
				"type": p.kind, "title": p.title, "datasource": source, "targets": targets, "options": p.options(),
				"gridPos":     object{"h": high, "w": wide, "x": i * wide % 24, "y": y + i*wide/24*high},
				"fieldConfig": object{"defaults": p.fields(), "overrides": p.overrides()},
			}
			if p.about != "" {
				shown["description"] = p.about
			}
			add(shown)
		}
		y += (len(row.panels)*wide + 23) / 24 * high
	}
	return object{
		"uid": "countersign", "title": "Countersign", "schemaVersion": 41, "version": 1, "editable": true, "refresh": "1m", "timezone": "browser",
		"tags": []string{"countersign"}, "time": object{"from": "now-24h", "to": "now"}, "panels": panels, "annotations": object{"list": []object{}},
		"templating": object{"list": []object{{"type": "datasource", "name": "source", "label": "Prometheus", "query": "prometheus"}}},
	}
}

// options returns the options of a panel's type.
func (p panel) options() object {
	if p.kind == "stat" {
		return object{
			"graphMode": "none", "colorMode": "value", "justifyMode": "auto", "textMode": "auto", "wideLayout": true, "orientation": "auto",
			"showPercentChange": false, "percentChangeColorMode": "standard", "reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		}
	}
	return object{
		"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
		"tooltip": object{"mode": "multi", "sort": "desc"},
	}
}

// fields returns the settings of a panel's values. Without limits, Grafana would show values from 80 on in red. Without
// decimals, an axis has marks only at whole numbers, but would also round 2.5 K to 3 K. So only the unit none, which has
// no K, has no decimals.
func (p panel) fields() object {
	out := object{"unit": p.unit, "min": 0, "thresholds": object{"mode": "absolute", "steps": append([]object{{"value": nil, "color": "green"}}, p.limits...)}}
	if p.unit == "none" {
		out["decimals"] = 0
	}
	if p.kind == "stat" {
		// Grafana shows the text of noValue in the colour of the lowest step, which is green.
		missing := object{"match": "null", "result": object{"text": "no metrics", "color": "red"}}
		out["mappings"] = []object{{"type": "special", "options": missing}}
		return out
	}
	custom := object{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "auto", "spanNulls": false, "lineInterpolation": "linear"}
	if p.steps {
		custom["lineInterpolation"] = "stepAfter"
	}
	if n := len(p.limits); n > 0 {
		custom["thresholdsStyle"] = object{"mode": "dashed"}
		custom["axisSoftMax"] = p.limits[n-1]["value"] // otherwise, the axis may end below the dashed line
	}
	out["custom"], out["color"] = custom, object{"mode": "palette-classic"}
	return out
}

// outcomes are the colours of outcomes. Grafana's palette would give the first one green, which is often a failure.
var outcomes = [][2]string{
	{"succeeded", "green"}, {"answered", "green"}, {"consumed", "green"},
	{"failed", "red"}, {"unavailable", "red"}, {"unknown", "orange"}, {"expired", "orange"},
}

// overrides returns the settings of single series: the colours of outcomes.
func (p panel) overrides() []object {
	out := []object{}
	if legend := p.queries[0][1]; legend != "{{state}}" && legend != "{{outcome}}" {
		return out
	}
	for _, o := range outcomes {
		out = append(out, object{
			"matcher":    object{"id": "byName", "options": o[0]},
			"properties": []object{{"id": "color", "value": object{"mode": "fixed", "fixedColor": o[1]}}},
		})
	}
	return out
}

// TestDashboard compares the dashboard's file with the rows above. With -update it writes the file.
func TestDashboard(t *testing.T) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(written()); err != nil {
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
				known(t, p.title, filledIn(q[0], time.Minute))
				query, err := engine.NewInstantQuery(t.Context(), db, nil, filledIn(q[0], time.Minute), time.Unix(6000, 0))
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

// filledIn replaces Grafana's variable for the range of a rate. The variable depends on the step of the query.
func filledIn(query string, step time.Duration) string {
	return strings.ReplaceAll(query, "$__rate_interval", max(step+scrapeInterval, 4*scrapeInterval).String())
}

// scrapeInterval is the time between two readings of the metrics.
const scrapeInterval = time.Minute

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
