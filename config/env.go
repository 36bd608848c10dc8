package config

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
)

// Transport is the way on which Slack's events come in.
type Transport string

// The two transports.
const (
	SocketMode Transport = "socket" // a WebSocket that the bot opens; needs no public address
	HTTPMode   Transport = "http"   // requests that Slack sends, signed
)

// Env is the environment, checked. DESIGN section 5 and docs/policy.md list the variables.
type Env struct {
	BotToken      Secret
	AppToken      Secret // for SocketMode
	SigningSecret Secret // for HTTPMode
	Transport     Transport
	SlackAPIURL   string // with its final slash; empty: Slack's
	ModelKey      Secret
	ModelURL      string // empty: OpenAI's
	Model         string
	Policy        string // path of the policy file
	Store         Store
	HTTPAddr      string
	AdminAddr     string
	Control       string // path of the Unix socket
	Audit         Audit
	Log           slog.Level
	HistoryTokens int // how much of a conversation the model is given, by estimate
}

// Store says where the state is kept.
type Store struct {
	Backend string // "bolt"
	Path    string
}

// Audit says how the history is sealed.
type Audit struct {
	Key    string // path of the file with the key that signs the heads
	Heads  string // path of the file that each head is added to; empty: none
	Syslog Syslog
}

// Syslog is where each head is also sent to. The zero value: nowhere.
type Syslog struct {
	Network string // "udp", "tcp", "tls" or "unix"
	Address string // HOST:PORT, or the path of the socket
}

func (s Syslog) String() string {
	if s.Network == "" {
		return ""
	}
	return s.Network + "://" + s.Address
}

func (s Store) String() string { return s.Backend + ":" + s.Path }

// HasModel reports whether the operator set a model of their own.
func (e Env) HasModel() bool { return e.ModelKey != "" || e.ModelURL != "" }

// ReadEnv reads and checks the environment for a command. The error is [Problems]: everything that is wrong.
func ReadEnv(c Command) (Env, error) {
	v, err := readVariables()
	if err != nil {
		return Env{}, fmt.Errorf("environment: %w", err)
	}
	r := envReader{command: c, variables: v, others: strangers(os.Environ())}
	env := r.read()
	return env, r.problems.err()
}

// String lists the settings, one on a line, without the secrets.
func (e Env) String() string {
	var b strings.Builder
	for _, s := range e.settings() {
		fmt.Fprintf(&b, "%s=%s\n", s.Key, s.Value)
	}
	return b.String()
}

// LogValue is the settings without the secrets.
func (e Env) LogValue() slog.Value { return slog.GroupValue(e.settings()...) }

func (e Env) settings() []slog.Attr {
	return []slog.Attr{
		slog.String("SLACK_BOT_TOKEN", e.BotToken.String()),
		slog.String("COUNTERSIGN_TRANSPORT", string(e.Transport)),
		slog.String("SLACK_APP_TOKEN", e.AppToken.String()),
		slog.String("SLACK_SIGNING_SECRET", e.SigningSecret.String()),
		slog.String("SLACK_API_URL", withoutPassword(e.SlackAPIURL)),
		slog.String("OPENAI_API_KEY", e.ModelKey.String()),
		slog.String("OPENAI_BASE_URL", withoutPassword(e.ModelURL)),
		slog.String("OPENAI_MODEL", e.Model),
		slog.String("COUNTERSIGN_POLICY", e.Policy),
		slog.String("COUNTERSIGN_STORE", e.Store.String()),
		slog.String("COUNTERSIGN_HTTP_ADDR", e.HTTPAddr),
		slog.String("COUNTERSIGN_ADMIN_ADDR", e.AdminAddr),
		slog.String("COUNTERSIGN_CONTROL", e.Control),
		slog.String("COUNTERSIGN_AUDIT_KEY", e.Audit.Key),
		slog.String("COUNTERSIGN_AUDIT_HEADS", e.Audit.Heads),
		slog.String("COUNTERSIGN_AUDIT_SYSLOG", e.Audit.Syslog.String()),
		slog.String("COUNTERSIGN_LOG", strings.ToLower(e.Log.String())),
		slog.Int("COUNTERSIGN_HISTORY_TOKENS", e.HistoryTokens),
	}
}
