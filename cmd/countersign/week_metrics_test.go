package main

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/cmd/countersign/metrics"
	"countersign/internal/testkit"
)

// recordedMetrics is the name of the environment variable with the path of the file that TestWeekOfMetrics writes.
const recordedMetrics = "COUNTERSIGN_WEEK_FILE"

// weekBegins is Monday at 15:00 in UTC. So the weekend is in the middle of the week, and people work when the week
// ends.
var weekBegins = firstMonday.Add(7 * time.Hour)

// TestWeekOfMetrics lets people work for a week in faked time, and reads /metrics once a minute. The tests of
// internal/alerts run this test, and draw the dashboard with the recorded metrics. COUNTERSIGN_WEEK_HOURS is the number
// of hours (24 with CI=true). COUNTERSIGN_WEEK_FILE is the file for the metrics.
func TestWeekOfMetrics(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	path := cmp.Or(os.Getenv(recordedMetrics), t.TempDir()+"/metrics")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{out: bufio.NewWriter(file), last: map[string]string{}}
	inWeek(t, testkit.Size(t, "COUNTERSIGN_WEEK_HOURS", 24), r)
	if err := r.out.Flush(); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

// recorder writes the metrics of each minute to a file. A line "@ TIME" begins each minute; TIME is in seconds since
// 1970. The following lines have each series that changed, with its value, or with "-" if the series is gone.
type recorder struct {
	out     *bufio.Writer
	last    map[string]string // value by series
	started time.Time         // start of the bot's process
	dir     string            // directory of the bot's files; the recorded metrics name a usual directory instead
	scrapes int
}

// take reads the metrics once. If the bot is down, m is nil, and every series is gone.
func (r *recorder) take(m *metrics.Metrics) error {
	r.scrapes++
	now := map[string]string{}
	if m != nil {
		rec := httptest.NewRecorder()
		admin(nil, m.Handler()).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		if rec.Code != http.StatusOK {
			return fmt.Errorf("/metrics: status %d: %s", rec.Code, rec.Body)
		}
		for line := range strings.Lines(rec.Body.String()) {
			i := strings.LastIndexByte(line, ' ')
			if series := line[:max(i, 0)]; isRecorded(series) {
				now[series] = strings.TrimSpace(line[i:])
			}
		}
		now["process_start_time_seconds"] = fmt.Sprint(r.started.Unix()) // the real start is not in faked time
	}
	for series, v := range maps.Clone(now) {
		if short := strings.ReplaceAll(series, r.dir, "/var/lib/countersign"); short != series {
			delete(now, series)
			now[short] = v
		}
	}
	fmt.Fprintf(r.out, "@ %d\n", time.Now().Unix())
	for _, series := range slices.Sorted(maps.Keys(now)) {
		if v := now[series]; r.last[series] != v {
			fmt.Fprintf(r.out, "%s %s\n", series, v)
		}
	}
	for _, series := range slices.Sorted(maps.Keys(r.last)) {
		if _, ok := now[series]; !ok {
			fmt.Fprintf(r.out, "%s -\n", series)
		}
	}
	r.last = now
	return nil
}

// isRecorded reports whether the recorder writes a series. Most metrics of the Go runtime are left out.
func isRecorded(series string) bool {
	return strings.HasPrefix(series, "countersign_") || series == "go_goroutines" || series == "process_resident_memory_bytes"
}
