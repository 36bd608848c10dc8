package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"countersign/store"
)

// notifier reports the state of the service to systemd. It uses the protocol of sd_notify(3), for a unit with
// Type=notify. Without systemd, a notifier does nothing.
type notifier struct {
	socket string        // NOTIFY_SOCKET; empty: there is no systemd
	beat   time.Duration // time between two keep-alive messages; 0: systemd expects no such messages
	log    *slog.Logger
}

// newNotifier reads the variables that systemd sets.
func newNotifier(getenv func(string) string, pid int, log *slog.Logger) notifier {
	n := notifier{socket: getenv("NOTIFY_SOCKET"), log: log}
	if meant := getenv("WATCHDOG_PID"); meant != "" && meant != strconv.Itoa(pid) {
		return n // the variables are for another process
	}
	if µs, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && µs > 0 {
		n.beat = time.Duration(µs) * time.Microsecond / 3 // systemd restarts a bot that is silent for three beats
	}
	return n
}

// notifyWait is how long a message may wait for systemd.
const notifyWait = time.Second

// say sends one message. say only logs a failure, because the bot works without systemd.
func (n notifier) say(state string) {
	if n.socket == "" {
		return
	}
	name := n.socket
	if strings.HasPrefix(name, "@") {
		name = "\x00" + name[1:] // an abstract socket
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err == nil {
		err = c.SetWriteDeadline(time.Now().Add(notifyWait)) // writing waits while the socket's queue is full
		if err == nil {
			_, err = c.Write([]byte(state))
		}
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		n.log.Warn("systemd could not be told the state of the bot", "state", state, "error", err)
	}
}

// watch tells systemd that the bot is up, and sends keep-alive messages until ctx ends. Before each keep-alive message,
// watch reads the store. If the read fails, watch sends the message, because a restart would not help. If the read
// hangs, watch sends no message, and systemd restarts the bot.
func (n notifier) watch(ctx context.Context, s store.Store) error {
	n.say("READY=1")
	if n.socket == "" || n.beat == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(n.beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := s.View(ctx, func(store.Reader) error { return nil }); err != nil && ctx.Err() == nil {
				n.log.DebugContext(ctx, "the store can't be read for a sign of life", "error", err)
			}
			n.say("WATCHDOG=1")
		}
	}
}
