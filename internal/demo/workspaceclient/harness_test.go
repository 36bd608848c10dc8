package workspaceclient

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"countersign/internal/demo/workspace"
	"countersign/internal/testkit"
)

type object = map[string]any

// harness is a workspace with an app that stores and acknowledges its deliveries.
type harness struct {
	*testing.T
	http   *httptest.Server
	heard  chan envelope
	answer func(envelope) any // returns the payload of the acknowledgement; nil: no payload
}

type envelope struct {
	ID      string `json:"envelope_id"`
	Type    string
	Payload object
}

func openOffice(t *testing.T, answer func(envelope) any) *harness {
	s, err := workspace.New(workspace.Config{Seed: workspace.OpenSeed(), AckTimeout: testkit.Patience, TriggerTTL: testkit.Patience})
	if err != nil {
		t.Fatal(err)
	}
	o := &harness{T: t, http: httptest.NewServer(s.Handler()), heard: make(chan envelope, 100), answer: answer}
	t.Cleanup(o.http.Close)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	opened := o.api("apps.connections.open", workspace.DemoAppToken, object{})
	conn, resp, err := websocket.DefaultDialer.Dial(opened["url"].(string), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	var hello envelope // the socket is registered when this frame arrives
	if err := conn.ReadJSON(&hello); err != nil || hello.Type != "hello" {
		t.Fatalf("the first frame is %+v %v", hello, err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { o.listen(conn) })
	t.Cleanup(func() { conn.Close(); reading.Wait() })
	return o
}

// listen acknowledges all deliveries until the socket is closed.
func (o *harness) listen(conn *websocket.Conn) {
	for {
		var e envelope
		if conn.ReadJSON(&e) != nil {
			return
		}
		ack := object{"envelope_id": e.ID}
		if o.answer != nil {
			if payload := o.answer(e); payload != nil {
				ack["payload"] = payload
			}
		}
		o.heard <- e
		if conn.WriteJSON(ack) != nil {
			return
		}
	}
}

// next returns the app's next delivery.
func (o *harness) next() envelope {
	o.Helper()
	select {
	case e := <-o.heard:
		return e
	case <-time.After(time.Minute):
		o.Fatal("the app received nothing")
		return envelope{}
	}
}

// api calls one of Slack's methods.
func (o *harness) api(method, token string, args object) object {
	o.Helper()
	form := url.Values{"token": {token}}
	for key, value := range args {
		text, ok := value.(string)
		if !ok {
			raw, err := json.Marshal(value)
			if err != nil {
				o.Fatal(err)
			}
			text = string(raw)
		}
		form.Set(key, text)
	}
	resp, err := http.PostForm(o.http.URL+"/api/"+method, form)
	if err != nil {
		o.Fatal(err)
	}
	defer resp.Body.Close()
	var out object
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || out["ok"] != true {
		o.Fatalf("%s: %v %v", method, out, err)
	}
	return out
}

func (o *harness) bot(method string, args object) object {
	o.Helper()
	return o.api(method, workspace.DemoBotToken, args)
}

func (o *harness) visitor(user string) Client { return Client{Base: o.http.URL, User: user} }

func plain(text string) object { return object{"type": "plain_text", "text": text} }
