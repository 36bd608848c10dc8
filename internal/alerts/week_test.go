package alerts

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
)

// recordedMetrics is the environment variable with the path of the file that TestWeekOfMetrics of cmd/countersign wrote.
const recordedMetrics = "COUNTERSIGN_WEEK_FILE"

// week is a storage with the metrics of some days.
type week struct {
	storage.Storage
	begins, ends time.Time
	samples      int
}

// loadWeek loads the recorded metrics into Prometheus' storage, as if Prometheus had read them from the bot.
func loadWeek(t *testing.T) week {
	t.Helper()
	path := os.Getenv(recordedMetrics)
	if path == "" {
		if os.Getenv("CI") != "" {
			t.Fatal(recordedMetrics + " is not set")
		}
		t.Skip(recordedMetrics + " is not set, so no metrics of simulated days are read: docs/campaigns.md has the command")
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := readWeek(t.Context(), bufio.NewScanner(file), teststorage.New(t))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return w
}

// series is one series of the recorded metrics.
type series struct {
	labels labels.Labels
	ref    storage.SeriesRef
	value  float64
	gone   bool
}

func readWeek(ctx context.Context, lines *bufio.Scanner, db *teststorage.TestStorage) (w week, err error) {
	w.Storage = db
	all, order := map[string]*series{}, []*series(nil)
	var at time.Time
	flush := func() error {
		if at.IsZero() {
			return nil
		}
		app := db.AppenderV2(ctx)
		for _, s := range order {
			if s.gone && value.IsStaleNaN(s.value) {
				continue
			}
			if s.gone {
				s.value = math.Float64frombits(value.StaleNaN)
			}
			w.samples++
			if s.ref, err = app.Append(s.ref, s.labels, 0, at.UnixMilli(), s.value, nil, nil, storage.AppendV2Options{}); err != nil {
				return fmt.Errorf("%s: %w", s.labels, err)
			}
		}
		return app.Commit()
	}
	for lines.Scan() {
		line := lines.Text()
		i := strings.LastIndexByte(line, ' ')
		name, text := line[:max(i, 0)], line[i+1:]
		if name == "@" {
			if err := flush(); err != nil {
				return w, err
			}
			seconds, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return w, err
			}
			if at = time.Unix(seconds, 0).UTC(); w.begins.IsZero() {
				w.begins = at
			}
			continue
		}
		s := all[name]
		if s == nil {
			metric, err := language.ParseMetric(name)
			if err != nil {
				return w, err
			}
			s = &series{labels: labels.NewBuilder(metric).Set("instance", "bot:9090").Set("job", "countersign").Labels()}
			all[name], order = s, append(order, s)
		}
		if s.gone = text == "-"; s.gone {
			s.value = 0
			continue
		}
		if s.value, err = strconv.ParseFloat(text, 64); err != nil {
			return w, err
		}
	}
	w.ends = at
	if err := lines.Err(); err != nil || at.IsZero() {
		return w, fmt.Errorf("after %d samples: %w", w.samples, err)
	}
	return w, flush()
}

// fired is one time in which an alert fires.
type fired struct {
	alert, labels, summary string
	from, to               time.Time
}

// alertsOf evaluates the alerts once a minute. It evaluates alerts with a range of days only every 15 minutes. It
// returns the times in which each alert fired.
func (w week) alertsOf(t *testing.T) (all []fired) {
	t.Helper()
	groups, errs := rulefmt.ParseFile(alertsFile, false, model.UTF8Validation, language, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	query := rules.EngineQueryFunc(engine(t), w)
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			expr, err := language.ParseExpr(r.Expr)
			if err != nil {
				t.Fatal(err)
			}
			every := time.Minute
			if strings.Contains(r.Expr, "d])") {
				every = 15 * time.Minute
			}
			rule := rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), 0, labels.FromMap(r.Labels), labels.FromMap(r.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
			open := map[string]int{} // index in all, by the alert's labels
			for at := w.begins; !at.After(w.ends); at = at.Add(every) {
				if _, err := rule.Eval(t.Context(), 0, at, query, nil, 0); err != nil {
					t.Fatalf("%s: %v", r.Alert, err)
				}
				firing := map[string]bool{}
				for _, a := range rule.ActiveAlerts() {
					if a.State != rules.StateFiring {
						continue
					}
					key := a.Labels.String()
					firing[key] = true
					if _, ok := open[key]; !ok {
						open[key] = len(all)
						all = append(all, fired{alert: r.Alert, labels: key, summary: a.Annotations.Get("summary"), from: at})
					}
					all[open[key]].to = at
				}
				for key := range open {
					if !firing[key] {
						delete(open, key)
					}
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b fired) int { return a.from.Compare(b.from) })
	return all
}

// expected has the alerts that may fire in the simulated days. If fires is set, the alert must fire on that day, unless
// the recording ends before that day. On Tuesday, the bot is down from 07:00 to 07:10, and Slack is down from 10:30 to
// 11:40. While Slack is down, an operator approves a call. On Thursday, the model is down from 13:30 to 14:10. All
// times are in UTC. The other alerts depend on when people decide.
var expected = map[string]struct{ fires, earliest, latest string }{
	"CountersignAbsent":            {fires: "Tue", earliest: "07:02", latest: "07:05"},
	"CountersignSlackDown":         {fires: "Tue", earliest: "10:34", latest: "10:38"},
	"CountersignOperatorApproved":  {fires: "Tue", earliest: "11:04", latest: "11:08"},
	"CountersignModelFails":        {fires: "Thu", earliest: "13:34", latest: "14:20"},
	"CountersignPeopleWaitLong":    {},
	"CountersignCriticalWaitsLong": {},
	"CountersignOutcomeUnknown":    {},
	"CountersignApprovedUnread":    {},
	"CountersignNobodyDecides":     {},
}

// TestAlertsOfAWeek evaluates the alerts with the recorded metrics. Each outage must make its alert fire. Only alerts
// that are in expected may fire.
func TestAlertsOfAWeek(t *testing.T) {
	w := loadWeek(t)
	all := w.alertsOf(t)
	t.Logf("%d samples, from %s to %s", w.samples, w.begins, w.ends)
	inTime := map[string]bool{}
	for _, f := range all {
		t.Logf("%s, %s for %s: %s", f.alert, f.from.Format("Mon 15:04"), f.to.Sub(f.from), f.summary)
		want, ok := expected[f.alert]
		if !ok {
			t.Errorf("%s fires", f.alert)
		}
		at := f.from.Format("15:04")
		inTime[f.alert] = inTime[f.alert] || f.from.Format("Mon") == want.fires && want.earliest <= at && at <= want.latest
	}
	for alert, want := range expected {
		if happens := want.fires == "Tue" || want.fires == "Thu" && w.ends.Sub(w.begins) > 72*time.Hour; happens && !inTime[alert] {
			t.Errorf("%s does not fire on %s between %s and %s", alert, want.fires, want.earliest, want.latest)
		}
	}
}
