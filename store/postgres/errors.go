package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"countersign/store"
)

// These are codes of PostgreSQL's errors (Appendix A of PostgreSQL's documentation), and codes of errors that our
// migrations define.
const (
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeUnique        = "23505"
	codeLockTimeout   = "55P03"
	codeTimeout       = "57014"
	codeReadOnly      = "25006"
	codeNoStatement   = "26000"
	codeDiskFull      = "53100"
	codePrivilege     = "42501"
	codeNoDatabase    = "3D000"
	codeProtocol      = "08P01"
	codeGivenUp       = "CS001" // number_commit: the connection was fenced
	codeFenced        = "CS002" // check_claim: another replica has the claim
	codePolicy        = "CS003" // check_policy: another policy is in force
	codeOldReplicas   = "CS004" // needs_program: replicas with an older program work on the tables
)

// code returns the code of an error that the server sent. If the server sent no error, the code is empty.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// isAnswer reports whether the server sent an error that ended only the transaction, and not the connection.
func isAnswer(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.SeverityUnlocalized == "ERROR"
}

// lostError is an error after which the connection is closed. The network failed, or the server ended the connection.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

func isLost(err error) bool {
	var l lostError
	return errors.As(err, &l) || code(err) == codeGivenUp
}

// fullError matches store.ErrFull and also store.ErrUnavailable, because on a full disk, new connections can't be used,
// and reads may fail.
type fullError struct{ error }

func (e fullError) Unwrap() error { return e.error }

func (e fullError) Is(target error) bool { return target == store.ErrUnavailable }

// isContended reports whether the transaction conflicted with other transactions. After a conflict, a second run of the
// transaction may succeed.
func isContended(err error) bool {
	switch code(err) {
	case codeSerialization, codeDeadlock, codeUnique:
		return true
	}
	return false
}

// explain returns the error of a transaction that was not committed.
func explain(err error) error {
	c := code(err)
	switch {
	case errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrIncomplete):
		return err
	case c == codeFenced:
		return fmt.Errorf("%w (%w)", store.ErrFenced, err)
	case c == codePolicy:
		return fmt.Errorf("%w (%w)", store.ErrPolicyChanged, err)
	case c == codeDiskFull:
		return fullError{fmt.Errorf("%w. It is the disk of the database server: free some space there (%w)", store.ErrFull, err)}
	case c == codeReadOnly:
		return fmt.Errorf("%w: the server is read-only: %s (%w)", store.ErrUnavailable, writable, err)
	case c == codeTimeout, c == codeLockTimeout:
		return fmt.Errorf("%w: a statement took too long (%w)", store.ErrUnavailable, err)
	case isContended(err):
		return fmt.Errorf("%w: too many transactions change the same rows (%w)", store.ErrUnavailable, err)
	case c == codePrivilege:
		return fmt.Errorf("store: the database's user lacks a right: see docs/postgres.md, \"Roles and grants\" (%w)", err)
	case strings.HasPrefix(c, "53"):
		return fmt.Errorf("%w: the server is out of connections or memory (%w)", store.ErrUnavailable, err)
	case isLost(err):
		return fmt.Errorf("%w (%w)", store.ErrUnavailable, err)
	}
	return fmt.Errorf("store: %w", err)
}
