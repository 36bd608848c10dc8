package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// probe says whether one part of the bot can do its work. Its error is shown on /readyz.
type probe struct {
	name  string
	ready func(context.Context) error
}

// admin serves the operator's address: /healthz says that the process lives, /readyz that it can do its work.
func admin(probes []probe) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		var report string
		status := http.StatusOK
		for _, p := range probes {
			if err := p.ready(ctx); err != nil {
				status = http.StatusServiceUnavailable
				report += fmt.Sprintf("%s: %v\n", p.name, err)
				continue
			}
			report += p.name + ": ok\n"
		}
		w.WriteHeader(status)
		fmt.Fprint(w, report)
	})
	return mux
}

// serveHTTP serves until ctx ends, and lets requests under way finish.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		srv.Close() // event streams never end by themselves
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listen opens an address. what names it in the error.
func listen(what, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, couldNot("%s can't listen on %s: %v. Is another process using it? Choose another address", what, addr, err)
	}
	return l, nil
}
