package main

import (
	"io"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"countersign/cmd/countersign/cli"
	"countersign/internal/testkit"
)

// scratch is a directory that all tests share. TestMain removes the directory at the end.
var scratch string

// The test binary is several programs. With the variable witnessEnv, it is the bot of the kill campaign. With the
// variable copierEnv, it is a copier (see copierMain). With the variable residentEnv, it runs many commands of the program
// (see residentMain). Under the name countersign, it is the program itself.
func TestMain(m *testing.M) {
	if conf := os.Getenv(witnessEnv); conf != "" {
		os.Exit(witnessMain(conf))
	}
	if conf := os.Getenv(copierEnv); conf != "" {
		os.Exit(copierMain(conf))
	}
	if os.Getenv(residentEnv) != "" {
		os.Exit(residentMain())
	}
	testscript.Main(tests{m}, map[string]func(){"countersign": main})
}

// tests runs all tests, with the directory that they share.
type tests struct{ *testing.M }

func (t tests) Run() int {
	defer testkit.TempInMemory()()
	dir, err := os.MkdirTemp("", "countersign-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	scratch = dir
	testkit.RunAtOnce(6)
	if !testing.Verbose() {
		cli.Stderr = io.Discard // discards the log; tests that check the log start their own process
	}
	return t.M.Run()
}
