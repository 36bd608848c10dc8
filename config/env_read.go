package config

import (
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/config/yamldoc"
)

// envReader converts variables to an Env and collects problems.
type envReader struct {
	command   Command
	variables variables
	files     secretFiles
	others    []string // names of unknown variables: see unknownVariables
	problems  yamldoc.Problems
}

func (r *envReader) wrong(variable, message, hint string) {
	r.problems = append(r.problems, yamldoc.Problem{Variable: variable, Message: message, Hint: hint})
}

func (r *envReader) read() Env {
	v := r.variables
	e := Env{Policy: v.Policy, Model: strings.TrimSpace(v.OpenAIModel)}
	for _, name := range r.others {
		if meant := slipOf(name); meant != "" {
			r.wrong(name, "is not a variable of Countersign", "did you mean "+meant+"?")
		}
	}
	r.readFiles(&e)
	if r.command.readsSlack() {
		r.slack(&e)
	}
	if r.command.readsModel() {
		r.model(&e)
		e.StopWait = r.stopWait(v.StopWait)
		e.HistoryTokens = r.historyTokens(v.HistoryTokens)
		e.TraceHeaders = Secret(v.TraceHeaders)
	}
	if r.command.readsStore() {
		e.Store = r.store("COUNTERSIGN_STORE", v.Store)
		e.Control = r.control(v.Control, e.Store)
		e.Audit = r.audit(e.Store)
	}
	e.AdminAddr = r.address("COUNTERSIGN_ADMIN_ADDR", v.AdminAddr)
	if e.Transport == HTTPMode && e.HTTPAddr == e.AdminAddr && !strings.HasSuffix(e.HTTPAddr, ":0") {
		r.wrong("COUNTERSIGN_HTTP_ADDR", "is the address of COUNTERSIGN_ADMIN_ADDR too, which must not be reached from outside", "write another port")
	}
	if r.command.readsModel() {
		r.gateway(&e)
	}
	e.Log = r.level(v.Log)
	if e.LogFormat = v.LogFormat; !slices.Contains([]string{"", JSONLog, TextLog}, e.LogFormat) {
		r.wrong("COUNTERSIGN_LOG_FORMAT", yamldoc.Quote(e.LogFormat)+" is not a format", "write json or text")
	}
	return e
}

// readFiles lists the secret files that the command reads, and reports the problems with them.
func (r *envReader) readFiles(e *Env) {
	reads := func(variable string) bool {
		switch {
		case strings.HasPrefix(variable, "SLACK_"):
			return r.command.readsSlack()
		case strings.HasPrefix(variable, "OPENAI_"), strings.HasPrefix(variable, "OTEL_"):
			return r.command.readsModel()
		}
		return r.command.readsStore()
	}
	for _, p := range r.files.problems {
		switch {
		case !reads(p.Variable):
		case p.Severity == yamldoc.Warning:
			e.Warnings = append(e.Warnings, p)
		default:
			r.problems = append(r.problems, p)
		}
	}
	for name, path := range r.files.paths {
		if reads(name) {
			if e.SecretFiles == nil {
				e.SecretFiles = map[string]string{}
			}
			e.SecretFiles[name] = path
		}
	}
}

// receiptKeySuffix is the suffix of the file with the key that signs receipts.
const receiptKeySuffix = ".receipt-key"

// ReceiptKeyBeside returns the default path of the key that signs receipts.
func ReceiptKeyBeside(store string) string { return store + receiptKeySuffix }

// gateway reads the settings of the gateway for other agents.
func (r *envReader) gateway(e *Env) {
	const name = "COUNTERSIGN_GATEWAY_ADDR"
	if e.Store.Path != "" {
		e.GatewayKey = ReceiptKeyBeside(e.Store.Path)
	}
	if text := r.variables.GatewayKey; text != "" {
		e.GatewayKey = filepath.Clean(text)
	}
	e.GatewayURL = r.resource("COUNTERSIGN_GATEWAY_URL", r.variables.GatewayURL)
	if r.variables.GatewayAddr == "" {
		return
	}
	e.GatewayAddr = r.address(name, r.variables.GatewayAddr)
	switch {
	case strings.HasSuffix(e.GatewayAddr, ":0"):
	case e.GatewayAddr == e.AdminAddr:
		r.wrong(name, "is the address of COUNTERSIGN_ADMIN_ADDR too, which must not be reached from outside", "write another port")
	case e.Transport == HTTPMode && e.GatewayAddr == e.HTTPAddr:
		r.wrong(name, "is the address of COUNTERSIGN_HTTP_ADDR too", "write another port")
	}
}

// resource reads the public address of the gateway.
func (r *envReader) resource(name, text string) string {
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !onThisMachine(u.Hostname())):
		r.wrong(name, quotedAddress(text)+" is not a public address", "write https:// and a host, as the authorization server knows the gateway")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		r.wrong(name, "has more than a host and a path", "write https:// and a host, as the authorization server knows the gateway")
	}
	return text
}

// store reads bolt:PATH or postgres://…. The error does not repeat an invalid value, because a database's address may
// contain a password.
func (r *envReader) store(name, text string) Store {
	backend, path, found := strings.Cut(text, ":")
	switch {
	case backend == "postgres" || backend == "postgresql":
		return r.database(name, text)
	case !found:
		r.wrong(name, "does not say which kind of store it is", "write bolt:PATH, such as bolt:countersign.db, or postgres://USER@HOST/DATABASE")
	case backend != "bolt":
		r.wrong(name, "names a kind of store that does not exist", "write bolt:PATH, such as bolt:countersign.db, or postgres://USER@HOST/DATABASE")
	case path == "":
		r.wrong(name, "has no path after bolt:", "write bolt:PATH, such as bolt:countersign.db")
	case strings.HasSuffix(path, "/"):
		r.wrong(name, "names a directory", "add the file's name, such as bolt:"+path+"countersign.db")
	default:
		return Store{Backend: Bolt, Path: filepath.Clean(path)}
	}
	return Store{}
}

// ReadStore reads the store that a command's flag names, in the syntax of COUNTERSIGN_STORE. ReadStore also returns the
// settings for sealing the store's history: the key file, the file of heads, and syslog.
func ReadStore(flag, text string) (Store, Audit, error) {
	v, _, err := readVariables()
	if err != nil {
		return Store{}, Audit{}, fmt.Errorf("environment: %w", err)
	}
	r := envReader{command: Offline, variables: v}
	s := r.store(flag, text)
	return s, r.audit(s), r.problems.Err()
}

// besideDatabase is the prefix of the names of the files that belong to a store in a database. These files are the
// control socket, the two keys and the heads.
const besideDatabase = "countersign-postgres"

// migrateAuto is the value of COUNTERSIGN_MIGRATE that makes serve upgrade older tables.
const migrateAuto = "auto"

func (s Store) migrate() string {
	if s.Migrate {
		return migrateAuto
	}
	return ""
}

// database reads the address of a database. The function does not connect to the database.
func (r *envReader) database(name, text string) Store {
	const hint = "write postgres://USER@HOST/DATABASE, and put the password in PGPASSWORD or in a file that PGPASSFILE names"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		r.wrong(name, "is not a valid address", hint)
		return Store{}
	case !strings.HasPrefix(text, u.Scheme+"://") || strings.Trim(u.Path, "/") == "":
		r.wrong(name, "does not name a database", hint)
		return Store{}
	}
	s := Store{Backend: Postgres, Path: besideDatabase, URL: Secret(text)}
	switch r.variables.Migrate {
	case "":
	case migrateAuto:
		s.Migrate = true
	default:
		r.wrong("COUNTERSIGN_MIGRATE", yamldoc.Quote(r.variables.Migrate)+" is not a valid value", "write auto, or leave it out")
	}
	return s
}

// maxSocketPath is the maximum length of a Unix socket's path on Linux, in bytes. Linux allows 108 bytes, including
// the final zero.
const maxSocketPath = 107

// ControlBeside returns the default control socket for a store.
func ControlBeside(store string) string { return store + ".sock" }

func (r *envReader) control(text string, s Store) string {
	switch {
	case text != "":
	case s.Path == "":
		return ""
	case r.command.readsModel() && runtime.GOOS == "linux": // commands that only use the store work without the socket
		text = ControlBeside(s.Path)
	default:
		return ControlBeside(s.Path)
	}
	if len(text) > maxSocketPath {
		r.wrong("COUNTERSIGN_CONTROL", "is "+strconv.Itoa(len(text))+" bytes long, and a Unix socket's path may have "+strconv.Itoa(maxSocketPath), "choose a shorter path")
	}
	return filepath.Clean(text)
}

var logLevels = []string{"debug", "info", "warn", "error"}

func (r *envReader) level(text string) slog.Level {
	switch text {
	case "debug":
		return slog.LevelDebug
	case "info":
		return slog.LevelInfo
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	hint := "write " + yamldoc.OneOf(logLevels)
	if text == "warning" {
		hint = "write warn"
	}
	r.wrong("COUNTERSIGN_LOG", yamldoc.Quote(text)+" is not a level", hint)
	return slog.LevelInfo
}

// maxStopWait limits the wait for tools at shutdown. The same limit applies to the timeout of a tool.
const maxStopWait = 24 * time.Hour

func (r *envReader) stopWait(text string) time.Duration {
	d, err := yamldoc.ParseDuration(text)
	if err != nil || d < 0 || d > maxStopWait {
		r.wrong("COUNTERSIGN_STOP_WAIT", yamldoc.Quote(text)+" is not a valid time to wait at shutdown", "write a time from 0s to 24h, such as 90s or 20m")
	}
	return d
}

// Limits of the token budget. The lower limit leaves space for the model's instructions and tools. The upper limit is
// above the context size of today's models.
const (
	minHistoryTokens = 1_000
	maxHistoryTokens = 10_000_000
)

func (r *envReader) historyTokens(text string) int {
	n, err := strconv.Atoi(strings.ReplaceAll(text, "_", ""))
	if err != nil || n < minHistoryTokens || n > maxHistoryTokens {
		r.wrong("COUNTERSIGN_HISTORY_TOKENS", yamldoc.Quote(text)+" is not a number of tokens",
			"write a whole number from "+strconv.Itoa(minHistoryTokens)+" to "+strconv.Itoa(maxHistoryTokens)+", such as 24000")
	}
	return n
}
