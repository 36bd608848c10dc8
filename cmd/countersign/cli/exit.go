package cli

import (
	"errors"
	"fmt"
)

// Operators' scripts depend on these exit codes, so the codes never change.
const (
	ExitDone   = 0
	ExitNo     = 1 // the command ran, and its answer is no
	ExitUsage  = 2 // wrong usage or configuration
	ExitFailed = 3 // the command could not run
)

// Error is an error that sets the exit code of the process. The error's text tells the operator what to do.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// AnswerNo returns the error of a command that ran and whose answer is no.
func AnswerNo(format string, args ...any) error {
	return &Error{ExitNo, fmt.Errorf(format, args...)}
}

// Misused returns the error of wrong usage or configuration.
func Misused(format string, args ...any) error {
	return &Error{ExitUsage, fmt.Errorf(format, args...)}
}

// CouldNot returns the error of a command that could not run.
func CouldNot(format string, args ...any) error {
	return &Error{ExitFailed, fmt.Errorf(format, args...)}
}

// Code returns the exit code for an error. If an error has no code, the command failed, and the exit code is
// ExitFailed.
func Code(err error) int {
	var e *Error
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &e):
		return e.Code
	}
	return ExitFailed
}
