package workspace

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
)

// keys returns the names of the fields of an answer, except "ok".
func (r reply) keys() []string {
	var out []string
	for key := range r.body {
		if key != "ok" {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// To the app, a pause looks like any other quiet time. Only the person sees the snooze_* properties.
func TestSnoozing(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	kenji := "U0004"
	status := func() *slack.DNDStatus {
		t.Helper()
		r := b.must(b.form("dnd.info", obj{"user": kenji}))
		if got := r.keys(); !slices.Equal(got, []string{"dnd_enabled", "next_dnd_end_ts", "next_dnd_start_ts"}) {
			t.Errorf("dnd.info of somebody else says %v", got)
		}
		out, err := b.api.GetDNDInfo(&kenji)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	heard := func() slackevents.DndUpdatedUserEvent {
		t.Helper()
		e, ok := inner(t, wait(t, app.events)).(*slackevents.DndUpdatedUserEvent)
		if !ok || e.User != kenji {
			t.Fatalf("the app received %+v", e)
		}
		return *e
	}
	if got := status(); got.Enabled || got.NextStartTimestamp != 1 || got.NextEndTimestamp != 1 {
		t.Errorf("before: %+v", got)
	}
	now := int(b.clock.Now().Unix())
	if r := b.must(b.post("/people/kenji/snooze", obj{"minutes": 30})); dig(r.body, "dnd", "snooze_enabled") != true {
		t.Errorf("the answer: %v", r)
	}
	if e := heard(); !e.DndStatus.DndEnabled || e.DndStatus.NextDndStartTs != int64(now) || e.DndStatus.NextDndEndTs != int64(now+30*60) {
		t.Errorf("the event: %+v", e)
	}
	b.clock.advance(29 * time.Minute)
	if got := status(); !got.Enabled || got.NextStartTimestamp != now || got.NextEndTimestamp != now+30*60 {
		t.Errorf("while it lasts: %+v", got)
	}
	until := now + 2*3600
	b.must(b.post("/people/kenji/snooze", obj{"until": until})) // extends the pause before it has ended
	if e := heard(); e.DndStatus.NextDndStartTs != int64(now) || e.DndStatus.NextDndEndTs != int64(until) {
		t.Errorf("longer: %+v", e)
	}
	b.clock.advance(2 * time.Hour)
	if got := status(); got.Enabled {
		t.Errorf("it ended by itself: %+v", got)
	}
	b.must(b.post("/people/kenji/snooze", obj{"minutes": 60}))
	heard()
	b.must(b.post("/people/kenji/snooze", obj{"minutes": 0}))
	if e := heard(); e.DndStatus.DndEnabled {
		t.Errorf("ended: %+v", e)
	}
	for _, bad := range []obj{{}, {"minutes": -1}, {"minutes": 1.5}, {"minutes": "30"}, {"until": now}, {"minutes": 5, "until": until + 9000}, {"minutes": 60 * 24 * 40}, {"minutes": 1e18}} {
		if r := b.post("/people/kenji/snooze", bad); r.status != 400 || r.code() != "invalid_snooze" {
			t.Errorf("%v: %v", bad, r)
		}
	}
	if r := b.must(b.form("dnd.info", obj{})); !slices.Contains(r.keys(), "snooze_enabled") {
		t.Errorf("the bot's own: %v", r)
	}
}

// An app gets events about quiet times only if it subscribed to these events.
func TestQuietTimesAreSubscribedTo(t *testing.T) {
	for _, event := range []string{"dnd_updated_user", "user_change"} {
		b := newHarness(t, func(c *Config) { c.Seed.App.Events = []string{event} })
		app := b.connect(nil)
		b.must(b.post("/people/kenji/snooze", obj{"minutes": 30}))
		title := "Director"
		if err := b.srv.ChangeUser("U0004", UserChange{Title: &title}); err != nil {
			t.Fatal(err)
		}
		if got := wait(t, app.events).Data.(slackevents.EventsAPIEvent).InnerEvent.Type; got != event {
			t.Errorf("subscribed to %s, the app received %s", event, got)
		}
	}
}

func TestTeamDND(t *testing.T) {
	b := newHarness(t)
	b.must(b.post("/people/kenji/snooze", obj{"minutes": 30}))
	got, err := b.api.GetDNDTeamInfo([]string{"U0003", "U0004", "U9999"})
	if err != nil || len(got) != 2 || !got["U0004"].Enabled || got["U0003"].Enabled || got["U0003"].NextEndTimestamp != 1 {
		t.Errorf("%+v %v", got, err)
	}
	many := func(n int) string { return strings.TrimSuffix(strings.Repeat("U0004,", n), ",") }
	if r := b.form("dnd.teamInfo", obj{"users": many(50)}); r.body["ok"] != true {
		t.Errorf("fifty: %v", r)
	}
	if r := b.form("dnd.teamInfo", obj{"users": many(51)}); r.code() != "too_many_users" {
		t.Errorf("fifty-one: %v", r)
	}
	if r := b.form("dnd.teamInfo", obj{}); r.code() != "no_users_provided" {
		t.Errorf("none: %v", r)
	}
	bare := newHarness(t, func(c *Config) { c.Seed.App.Scopes = []string{"users:read"} })
	if r := bare.form("dnd.teamInfo", obj{"users": "U0004"}); r.code() != "missing_scope" || r.text("needed") != "dnd:read" {
		t.Errorf("without the scope: %v", r)
	}
}

// A schedule applies at the same local time each day, even after a change to summer time.
func TestQuietTimesComeAgain(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, berlin) }
	q := quiet{Enabled: true, NextStart: at(2, 18).Unix(), NextEnd: at(3, 8).Unix()}
	for _, test := range []struct{ now, start, end time.Time }{
		{at(2, 9), at(2, 18), at(3, 8)},
		{at(2, 20), at(2, 18), at(3, 8)}, // during the quiet time
		{at(3, 8), at(3, 18), at(4, 8)},
		{at(20, 12), at(20, 18), at(21, 8)},
		{at(28, 20), at(28, 18), at(29, 8)}, // the night in which clocks are put forward
		{at(29, 9), at(29, 18), at(30, 8)},
		{at(400, 12), at(400, 18), at(401, 8)},
	} {
		enabled, start, end := q.window(test.now, berlin)
		if !enabled || start != test.start.Unix() || end != test.end.Unix() {
			t.Errorf("at %v: %v to %v", test.now, time.Unix(start, 0).In(berlin), time.Unix(end, 0).In(berlin))
		}
	}
}

// A change of the quiet time sends no user_change, and a change of the profile sends no dnd_updated_user.
func TestChangesAreToldApart(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	start, end, title := b.clock.Now().Unix(), b.clock.Now().Add(time.Hour).Unix(), "Back-up"
	for _, test := range []struct {
		change UserChange
		heard  []string
	}{
		{UserChange{DNDStart: &start, DNDEnd: &end}, []string{"dnd_updated_user"}},
		{UserChange{SnoozeUntil: &end}, []string{"dnd_updated_user"}},
		{UserChange{Title: &title}, []string{"user_change"}},
		{UserChange{Title: new(string), DNDEnd: &start}, []string{"dnd_updated_user", "user_change"}},
	} {
		if err := b.srv.ChangeUser("U0001", test.change); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.heard {
			if got := wait(t, app.events).Data.(slackevents.EventsAPIEvent).InnerEvent.Type; got != want {
				t.Errorf("%+v: the app received %s, want %s", test.change, got, want)
			}
		}
	}
}

func TestUsersInfoAsSlackGivesIt(t *testing.T) {
	b := newHarness(t)
	for _, test := range []struct {
		args   obj
		locale any
	}{{obj{}, nil}, {obj{"include_locale": "false"}, nil}, {obj{"include_locale": "true"}, "en-US"}} {
		test.args["user"] = "U0004"
		u := b.must(b.form("users.info", test.args)).body["user"]
		if dig(u, "locale") != test.locale {
			t.Errorf("%v: the locale is %v", test.args, dig(u, "locale"))
		}
		if dig(u, "tz") != "Asia/Tokyo" || dig(u, "tz_label") != "Japan Standard Time" || dig(u, "tz_offset") != 9*3600.0 || dig(u, "profile", "title") != "Finance Director" ||
			dig(u, "profile", "email") != "kenji@example.com" || dig(u, "profile", "first_name") != "Kenji" || dig(u, "dnd") != nil {
			t.Errorf("users.info: %v", u)
		}
		test.args["limit"] = "1"
		if m := b.must(b.form("users.list", test.args)).body["members"]; dig(m, "0", "locale") != test.locale {
			t.Errorf("users.list with %v: %v", test.args, dig(m, "0", "locale"))
		}
	}
	for zone, want := range map[string][2]string{ // in winter and in summer
		"Europe/Berlin":       {"Central European Time", "Central European Summer Time"},
		"Europe/London":       {"Greenwich Mean Time", "British Summer Time"},
		"Europe/Dublin":       {"Greenwich Mean Time", "Irish Standard Time"},
		"America/Los_Angeles": {"Pacific Standard Time", "Pacific Daylight Time"},
		"Asia/Kolkata":        {"India Standard Time", "India Standard Time"},
		"Asia/Shanghai":       {"China Standard Time", "China Standard Time"},
		"America/Chicago":     {"Central Standard Time", "Central Daylight Time"},
		"Asia/Kathmandu":      {"GMT+05:45", "GMT+05:45"},
		"UTC":                 {"Coordinated Universal Time", "Coordinated Universal Time"},
	} {
		loc, err := loadZone(zone)
		if err != nil {
			t.Fatal(err)
		}
		for i, month := range []time.Month{time.January, time.July} {
			if got := zoneLabel(time.Date(2026, month, 1, 12, 0, 0, 0, loc)); got != want[i] {
				t.Errorf("%s in %v: %s, want %s", zone, month, got, want[i])
			}
		}
	}
	for _, p := range DemoSeed().People {
		if label := zoneLabel(b.clock.Now().In(newUser(p, "T", b.clock.Now()).zone())); strings.HasPrefix(label, "GMT") {
			t.Errorf("%s's zone %s has no name: %s", p.Name, p.TZ, label)
		}
	}
}
