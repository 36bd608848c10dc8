package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is more than one program: run with the variable witnessEnv set it is the bot of the kill campaign, and scripts call it
// by the name countersign.
func TestMain(m *testing.M) {
	if conf := os.Getenv(witnessEnv); conf != "" {
		os.Exit(witnessMain(conf))
	}
	testscript.Main(m, map[string]func(){"countersign": main})
}
