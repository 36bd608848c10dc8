package alerts

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	grafana "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"gonum.org/v1/plot/plotter"
)

const pictureFile = "../../docs/dashboard.png"

// TestDashboardOfAWeek runs each query of the dashboard with the recorded metrics, as Grafana would, and draws all
// panels. Each panel must have data. With -update, the picture is written to docs.
func TestDashboardOfAWeek(t *testing.T) {
	w := loadWeek(t)
	raw, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	panels, err := decoded(raw)
	if err != nil {
		t.Fatal(err)
	}
	step := stepOf(w.ends.Sub(w.begins))
	var all []drawn
	for _, p := range panels {
		d := drawn{Panel: p}
		if p.Type != "row" {
			d.lines = w.linesOf(t, p, step)
			if len(d.lines) == 0 {
				t.Errorf("the panel %q has no data", *p.Title)
			}
		}
		all = append(all, d)
	}
	title := fmt.Sprintf("Countersign, %s of the simulated demo. Drawn by a test from the dashboard's queries, not by Grafana", numberOfDays(w.ends.Sub(w.begins)))
	png, err := picture(title, all, w.begins, w.ends, step)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d panels, a point every %s, %d bytes", len(panels), step, len(png))
	if len(png) > 400_000 {
		t.Errorf("the picture has %d bytes", len(png))
	}
	if *update {
		if err := os.WriteFile(pictureFile, png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func numberOfDays(d time.Duration) string {
	if n := int(d.Hours()+1) / 24; n != 1 {
		return fmt.Sprintf("%d days", n)
	}
	return "one day"
}

// stepOf returns the time between two points. Grafana's panels have about one point for each pixel.
func stepOf(shown time.Duration) time.Duration {
	for _, step := range []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute} {
		if shown/step <= 700 {
			return step
		}
	}
	return time.Hour
}

// linesOf runs the queries of a panel.
func (w week) linesOf(t *testing.T, p dashboard.Panel, step time.Duration) (lines []line) {
	t.Helper()
	for _, target := range p.Targets {
		q := target.(*grafana.Dataquery)
		expr := filledIn(q.Expr, step)
		var query promql.Query
		var err error
		if q.Instant != nil && *q.Instant {
			query, err = engine(t).NewInstantQuery(t.Context(), w, nil, expr, w.ends)
		} else {
			query, err = engine(t).NewRangeQuery(t.Context(), w, nil, expr, w.begins.Truncate(step).Add(step), w.ends, step)
		}
		if err != nil {
			t.Fatalf("%s: %v", *p.Title, err)
		}
		result := query.Exec(t.Context())
		if result.Err != nil {
			t.Fatalf("%s: %v", *p.Title, result.Err)
		}
		matrix, ok := result.Value.(promql.Matrix)
		if vector, isVector := result.Value.(promql.Vector); isVector {
			for _, s := range vector {
				matrix = append(matrix, promql.Series{Metric: s.Metric, Floats: []promql.FPoint{{T: s.T, F: s.F}}})
			}
			ok = true
		}
		if !ok {
			t.Fatalf("%s: the result is a %s", *p.Title, result.Value.Type())
		}
		for _, s := range matrix {
			l := line{legend: legendOf(*q.LegendFormat, s.Metric)}
			for _, f := range s.Floats {
				if !math.IsNaN(f.F) {
					l.points = append(l.points, plotter.XY{X: float64(f.T) / 1000, Y: f.F})
				}
			}
			if len(l.points) > 0 {
				lines = append(lines, l)
			}
		}
		query.Close()
	}
	slices.SortStableFunc(lines, func(a, b line) int { return strings.Compare(a.legend, b.legend) })
	return lines
}

var variable = regexp.MustCompile(`\{\{ *(\w+) *\}\}`)

func legendOf(format string, metric labels.Labels) string {
	return variable.ReplaceAllStringFunc(format, func(name string) string { return metric.Get(strings.Trim(name, "{} ")) })
}
