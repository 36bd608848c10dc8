package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"countersign/cmd/countersign/cli"
)

// If the environment variable residentEnv is set, the test binary is a resident: it runs one command of the program
// after the other, and ends with its standard input. The start of a process takes more processor time than most
// commands. Commands that run for long, or whose process matters, still get their own process.
const residentEnv = "COUNTERSIGN_TEST_RESIDENT"

// residentCommand is a command for a resident: the input of a process.
type residentCommand struct {
	Dir         string
	Env, Args   []string
	Out, ErrOut string // files that get the outputs
}

// residentMain runs the commands of standard input. After each command, it writes the exit code to standard output.
func residentMain() int {
	commands, answers := make(chan residentCommand), json.NewEncoder(os.Stdout)
	go func(in *json.Decoder) {
		for {
			c := residentCommand{}
			if err := in.Decode(&c); errors.Is(err, io.EOF) {
				os.Exit(0) // also during a command: then the test was ended
			} else if err != nil {
				panic(err)
			}
			commands <- c
		}
	}(json.NewDecoder(os.Stdin))
	for {
		code, err := (<-commands).run()
		if err == nil {
			err = answers.Encode(code)
		}
		if err != nil {
			panic(err)
		}
	}
}

func (c residentCommand) run() (code int, err error) {
	os.Clearenv()
	for _, pair := range c.Env {
		name, value, _ := strings.Cut(pair, "=")
		err = errors.Join(err, os.Setenv(name, value))
	}
	in, end, inErr := os.Pipe() // empty, and not a terminal
	out, outErr := os.Create(c.Out)
	errOut, errOutErr := os.Create(c.ErrOut)
	if err = errors.Join(err, os.Chdir(c.Dir), inErr, outErr, errOutErr, end.Close()); err != nil {
		return 0, err
	}
	os.Args = append([]string{"countersign"}, c.Args...)
	os.Stdin, os.Stdout, os.Stderr, cli.Stderr = in, out, errOut, errOut
	code = execute()
	return code, errors.Join(in.Close(), out.Close(), errOut.Close())
}

// resident is the process of a resident. The process starts with the first command.
type resident struct {
	dir      string // for the outputs
	cmd      *exec.Cmd
	in       io.WriteCloser
	commands *json.Encoder
	codes    *json.Decoder
	died     bytes.Buffer // what the process says when it panics
}

// newResident returns a resident that ends with the test.
func newResident(t *testing.T) *resident {
	r := &resident{}
	t.Cleanup(func() {
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// start starts the process, and makes the directory for the outputs.
func (r *resident) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp(scratch, "resident-"); err != nil {
		return err
	}
	r.cmd = exec.Command(self)
	r.cmd.Env, r.cmd.Stderr = append(os.Environ(), residentEnv+"=yes"), &r.died
	out, outErr := r.cmd.StdoutPipe()
	in, inErr := r.cmd.StdinPipe()
	if err := errors.Join(outErr, inErr); err != nil {
		return err
	}
	r.in, r.commands, r.codes = in, json.NewEncoder(in), json.NewDecoder(out)
	return r.cmd.Start()
}

// do runs a command of the program, as a process with this directory and this environment would. The command serve has
// its own process, because the end of a bot is the end of its process.
func (r *resident) do(dir string, env []string, args ...string) (code int, out, errOut string, err error) {
	if args[0] == "serve" {
		return ownProcess(dir, env, args...)
	}
	if r.cmd == nil {
		if err := r.start(); err != nil {
			return 0, "", "", err
		}
	}
	c := residentCommand{Dir: dir, Env: env, Args: args, Out: filepath.Join(r.dir, "stdout"), ErrOut: filepath.Join(r.dir, "stderr")}
	if err := errors.Join(r.commands.Encode(c), r.codes.Decode(&code)); err != nil {
		return 0, "", "", errors.Join(err, r.end(), errors.New(r.died.String()))
	}
	said, err := os.ReadFile(c.Out)
	complained, err2 := os.ReadFile(c.ErrOut)
	return code, string(said), string(complained), errors.Join(err, err2)
}

func ownProcess(dir string, env []string, args ...string) (code int, out, errOut string, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, "", "", err
	}
	var said, complained bytes.Buffer
	cmd := exec.Cmd{Path: self, Args: append([]string{"countersign"}, args...), Dir: dir, Env: env, Stdout: &said, Stderr: &complained}
	err = cmd.Run()
	if ended := new(exec.ExitError); errors.As(err, &ended) {
		code, err = ended.ExitCode(), nil
	}
	return code, said.String(), complained.String(), err
}

// end ends the process.
func (r *resident) end() error {
	if r.cmd == nil {
		return nil
	}
	err := errors.Join(r.in.Close(), r.cmd.Wait(), os.RemoveAll(r.dir))
	r.cmd = nil
	return err
}
