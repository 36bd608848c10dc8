package workspace

import "testing"

// BenchmarkMessageToEvent measures the time from a person's message to its event in the app, over real HTTP and a real
// WebSocket. Measurements that use the workspace include this time.
func BenchmarkMessageToEvent(b *testing.B) {
	w := newHarness(b)
	sock := w.dial()
	for b.Loop() {
		w.say("sam", "#support", "hello", "")
		sock.ack(sock.next(), nil)
	}
}

// BenchmarkClickToAck measures the time from a person's click to the workspace's answer, with an app that acknowledges
// immediately.
func BenchmarkClickToAck(b *testing.B) {
	w := newHarness(b)
	ts := w.postButton("C0001")
	sock := w.dial()
	sock.ack(sock.next(), nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for frame := range sock.frames {
			if sock.conn.WriteJSON(obj{"envelope_id": frame["envelope_id"]}) != nil {
				return
			}
		}
	}()
	for b.Loop() {
		w.must(w.post("/people/ada/actions", obj{"channel": "C0001", "ts": ts, "action_id": "go"}))
	}
	b.StopTimer()
	w.srv.DropSockets()
	<-done
}
