package main

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"countersign/store"
)

// notifier tells systemd how the service is, as a unit with Type=notify wants it: sd_notify(3). Without systemd it does
// nothing.
type notifier struct {
	socket string        // NOTIFY_SOCKET; empty: nobody listens
	beat   time.Duration // between two signs of life; 0: none are wanted
	log    *slog.Logger
}

// newNotifier reads the variables that systemd sets.
func newNotifier(getenv func(string) string, pid int, log *slog.Logger) notifier {
	n := notifier{socket: getenv("NOTIFY_SOCKET"), log: log}
	if meant := getenv("WATCHDOG_PID"); meant != "" && meant != strconv.Itoa(pid) {
		return n // the variables are another process's
	}
	if µs, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && µs > 0 {
		n.beat = time.Duration(µs) * time.Microsecond / 3 // two signs may be late
	}
	return n
}

// say sends one message. A failure is only logged, because the bot works without systemd.
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
		_, err = c.Write([]byte(state))
		c.Close()
	}
	if err != nil {
		n.log.Warn("systemd could not be told the state of the bot", "state", state, "error", err)
	}
}

// watch tells systemd that the bot is up, and sends signs of life until ctx ends. A sign is sent after the store was read. If the store can't be read, the sign is sent, too: a restart would not help. If
// reading does not end, systemd restarts the bot.
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
				n.log.Debug("the store can't be read for a sign of life", "error", err)
			}
			n.say("WATCHDOG=1")
		}
	}
}
