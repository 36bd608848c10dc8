package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers/workflow/settings"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// manyHistories is a fake of Slack's API that answers the calls for histories. It has more channels, messages, threads
// and replies than the bot reads.
type manyHistories struct {
	mu       sync.Mutex
	says     map[string][]map[string]any // messages by channel
	calls    map[string]int              // number of calls, by method and channel, or by method, channel and thread
	oldest   map[string]string           // the lower time limit of the first request for a history, by channel
	channels int
}

// These channels have more messages, threads and replies than the bot reads.
const (
	manyMessages = "C0AAA"
	manyThreads  = "C0BBB"
)

func (m *manyHistories) RoundTrip(req *http.Request) (*http.Response, error) {
	method := path.Base(req.URL.Path)
	if method != "users.conversations" && method != "conversations.history" && method != "conversations.replies" {
		return http.DefaultTransport.RoundTrip(req)
	}
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	page, _ := strconv.Atoi(form.Get("cursor"))
	limit, _ := strconv.Atoi(form.Get("limit"))
	channel, thread := form.Get("channel"), form.Get("ts")
	m.calls[method+" "+channel+thread]++
	answer, next := map[string]any{"ok": true}, ""
	list := []map[string]any{}
	switch {
	case method == "users.conversations" && form.Get("types") == "public_channel":
		for i := page * limit; i < min(m.channels, (page+1)*limit); i++ {
			list = append(list, map[string]any{"id": []string{"C0001", manyMessages, manyThreads, fmt.Sprintf("C1%05d", i)}[min(i, 3)]})
		}
		if (page+1)*limit < m.channels {
			next = strconv.Itoa(page + 1)
		}
	case method == "conversations.history":
		if m.oldest[channel] == "" {
			m.oldest[channel] = form.Get("oldest")
		}
		if list = append(list, m.says[channel]...); channel == manyMessages {
			list, next = chatter(limit, ""), strconv.Itoa(page+1)
		} else if channel == manyThreads {
			list = chatter(250, strconv.FormatInt(time.Now().Unix(), 10)+".000100")
		}
	case method == "conversations.replies" && strings.HasSuffix(thread, ".000000"):
		list, next = chatter(limit, ""), strconv.Itoa(page+1)
	}
	answer[map[bool]string{true: "channels", false: "messages"}[method == "users.conversations"]] = list
	answer["response_metadata"] = map[string]any{"next_cursor": next}
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req, Body: io.NopCloser(strings.NewReader(string(body))),
	}, nil
}

// chatter returns messages from the current second that are not for the bot.
func chatter(n int, latestReply string) (list []map[string]any) {
	for i := range n {
		m := map[string]any{"type": "message", "user": "U0001", "text": "nothing", "ts": fmt.Sprintf("%d.%06d", time.Now().Unix(), i)}
		if latestReply != "" {
			m["latest_reply"], m["reply_count"] = latestReply, 1
		}
		list = append(list, m)
	}
	return list
}

func (m *manyHistories) called(start string) (calls, places int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for what, n := range m.calls {
		if strings.HasPrefix(what, start) {
			calls, places = calls+n, places+1
		}
	}
	return calls, places
}

// TestCatchUpBounds checks that the bot reads only as many channels, messages, threads, replies and days as the limits
// allow. The log names each limit once for each channel or thread.
func TestCatchUpBounds(t *testing.T) {
	testkit.SkipIfShort(t)
	slack := &manyHistories{calls: map[string]int{}, oldest: map[string]string{}, says: map[string][]map[string]any{}}
	h := newHarness(t, func(h *harness) { h.http = &http.Client{Transport: slack} })
	h.stop()
	db, err := bolt.Open(h.path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-3 * 24 * time.Hour)
	err = db.Update(t.Context(), func(tx store.Tx) error {
		_, row, err := settings.ReadReceived(tx)
		if err != nil {
			return err
		}
		if row.Value, err = json.Marshal(settings.Received{Until: long, Open: long}); err != nil {
			return err
		}
		return tx.PutSetting(row)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	at := func(ago time.Duration) string { return slackTime(time.Now().Add(-ago)) }
	slack.mu.Lock()
	slack.channels = 540
	slack.says["C0001"] = []map[string]any{
		{"type": "message", "user": "U0100", "text": "<@U0BOT> young", "ts": at(23 * time.Hour)},
		{"type": "message", "user": "U0100", "text": "<@U0BOT> aged", "ts": at(25 * time.Hour)},
	}
	clear(slack.calls)
	clear(slack.oldest)
	slack.mu.Unlock()
	before := len(h.log.String())
	h.start()
	h.until("all is read", func() bool {
		now, err := h.workflow.Views.Received(context.Background())
		return err == nil && now.Gap == nil && now.Until.After(long.Add(time.Hour))
	})

	if _, n := slack.called("conversations.history "); n != mostChannels {
		t.Errorf("%d channels were read", n)
	}
	if n, _ := slack.called("conversations.history " + manyMessages); n != mostMessages/pageOfHistory {
		t.Errorf("%d pages of a channel were read", n)
	}
	replies, threads := slack.called("conversations.replies " + manyThreads)
	if threads != mostThreads || replies != mostThreads-1+mostMessages/pageOfHistory {
		t.Errorf("%d threads were read, with %d calls", threads, replies)
	}
	if want := time.Now().Add(-settings.MostReread - oldThreads); slack.oldest["C0001"] > slackTime(want.Add(time.Minute)) || slack.oldest["C0001"] < slackTime(want.Add(-time.Minute)) {
		t.Errorf("a history was read from %s, want %s", slack.oldest["C0001"], slackTime(want))
	}
	said := h.log.String()[before:]
	for _, line := range []string{
		"the gap is longer than the history that is read back",
		"limit=channels most=500", "limit=messages most=1000 channel=" + manyMessages, "limit=threads most=200 channel=" + manyThreads, "limit=replies most=1000 channel=" + manyThreads,
	} {
		if n := strings.Count(said, line); n != 1 {
			t.Errorf("the log says %d times: %s", n, line)
		}
	}
	for ts, want := range map[string]bool{slack.says["C0001"][0]["ts"].(string): true, slack.says["C0001"][1]["ts"].(string): false} {
		if _, err := h.workflow.Views.Inbox(t.Context(), "message:C0001/"+ts); (err == nil) != want {
			t.Errorf("a message of %s was heard: %t", ts, err == nil)
		}
	}
}
