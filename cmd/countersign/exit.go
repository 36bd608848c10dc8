package main

import (
	"errors"
	"fmt"

	"countersign/bot"
)

// Exit codes. They are part of the operator's contract.
const (
	exitDone   = 0
	exitNo     = 1 // it ran, and the answer is no
	exitUsage  = 2 // wrong usage or configuration
	exitFailed = 3 // it could not run
)

// exitError is an error with the code that the process ends with. Its text is a sentence that says what to do.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// answerNo is the error of a command that ran and whose answer is no.
func answerNo(format string, args ...any) error {
	return &exitError{exitNo, fmt.Errorf(format, args...)}
}

// misused is the error of wrong usage or configuration.
func misused(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// couldNot is the error of a command that could not run.
func couldNot(format string, args ...any) error {
	return &exitError{exitFailed, fmt.Errorf(format, args...)}
}

// exitCode is the code for an error. One without a code came while the command ran.
func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, bot.ErrToken):
		return exitUsage
	}
	return exitFailed
}
