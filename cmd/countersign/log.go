package main

import (
	"io"
	"log"
	"log/slog"
	"os"

	"countersign/internal/redact"
)

// stderr is the destination of the log. Only tests set it.
var stderr io.Writer = os.Stderr

// logger returns the process's logger. It masks everything that looks like a secret, and the secrets of the
// environment, in each line.
func logger(level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewTextHandler(redact.Writer(stderr), &slog.HandlerOptions{Level: level}))
}

// withoutSecrets masks the environment's secrets in all later output, including that of libraries.
func withoutSecrets() {
	redact.Environ(os.Environ())
	log.SetOutput(redact.Writer(stderr))
}
