package testkit_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"countersign/internal/testkit"
)

// A Network in each state, in faked time. A change of the state breaks the open connections.
func TestNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := testkit.NewNetwork()
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				select {
				case <-time.After(time.Hour):
				case <-r.Context().Done():
				}
			}
			_, _ = io.WriteString(w, "hello")
		})}
		go srv.Serve(network)
		transport := &http.Transport{DialContext: network.DialContext}
		client := &http.Client{Transport: transport}
		get := func(path string) (string, error) {
			resp, err := client.Get("http://server.test" + path)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return string(body), err
		}
		works := func() {
			t.Helper()
			if body, err := get("/"); body != "hello" || err != nil {
				t.Errorf("it answers %q, %v", body, err)
			}
		}
		works()
		if body, err := get("/wait"); body != "hello" || err != nil {
			t.Errorf("after an hour it answers %q, %v", body, err)
		}

		broken := make(chan error)
		go func() {
			_, err := get("/wait")
			broken <- err
		}()
		synctest.Wait()
		network.SetState(testkit.NetworkRefuses)
		if err := <-broken; err == nil {
			t.Error("an open connection survives")
		}
		if _, err := get("/"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a refused connection: %v", err)
		}

		network.SetState(testkit.NetworkSilent)
		client.Timeout = time.Minute
		began := time.Now()
		if _, err := get("/"); err == nil || !strings.Contains(err.Error(), "deadline") || time.Since(began) != time.Minute {
			t.Errorf("a silent server: %v after %s", err, time.Since(began))
		}

		network.SetState(testkit.NetworkWorks)
		works()
		transport.CloseIdleConnections()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if _, err := network.DialContext(context.Background(), "tcp", "server.test:80"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a closed listener: %v", err)
		}
		if _, err := network.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept: %v", err)
		}
	})
}
