package config

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"countersign/config/yamldoc"
)

// Transport is the way in which Slack's events reach the bot.
type Transport string

// The two transports.
const (
	SocketMode Transport = "socket" // a WebSocket that the bot opens; needs no public address
	HTTPMode   Transport = "http"   // signed requests from Slack
)

// Env is the validated environment. docs/environment.md lists the variables.
type Env struct {
	BotToken      Secret   // with Rotation, may be empty
	Rotation      Rotation // set for an app with token rotation
	AppToken      Secret   // used with SocketMode
	SigningSecret Secret   // used with HTTPMode
	Transport     Transport
	SlackAPIURL   string // URL of Slack's API, with a slash at the end; empty: Slack's own URL
	ModelKey      Secret
	ModelURL      string // empty: OpenAI's URL
	Model         string
	Policy        string // path of the policy file
	Store         Store
	HTTPAddr      string
	AdminAddr     string
	GatewayAddr   string // listen address of the gateway; empty: other agents can't ask for tool calls
	GatewayURL    string // the gateway's public address, for which access tokens are issued; empty: the gateway accepts no access tokens
	GatewayKey    string // path of the file with the key that signs receipts
	Control       string // path of the Unix socket
	Audit         Audit
	Log           slog.Level
	LogFormat     string        // JSONLog or TextLog; empty: the operator chose no format
	StopWait      time.Duration // how long a shutdown waits for running tools
	TraceHeaders  Secret        // headers for the receiver of traces, in the syntax of OTEL_EXPORTER_OTLP_HEADERS
	HistoryTokens int           // token budget for the conversation history; the tokens are estimated

	SecretFiles map[string]string // by variable: the file from which the secret was read
	Warnings    yamldoc.Problems  // settings that work, but should be changed
}

// Rotation has the credentials with which the bot renews its bot token. Slack ends each bot token of an app with token
// rotation after 12 hours.
type Rotation struct {
	ClientID     Secret
	ClientSecret Secret
	RefreshToken Secret // the bot's first refresh token; each renewal of the bot token gives a new one, which the bot stores
}

// On reports whether the app uses token rotation.
func (r Rotation) On() bool { return r.RefreshToken != "" }

// Store says where the bot's state is stored.
type Store struct {
	Backend string // Bolt or Postgres
	Path    string // for Bolt: the path of the store's file; for Postgres: the prefix of the paths of the files that belong to the store
	URL     Secret // for Postgres: the database's address, including the password
	Migrate bool   // for Postgres: serve upgrades older tables
}

// The kinds of store.
const (
	Bolt     = "bolt"
	Postgres = "postgres"
)

// Audit configures how the history is sealed.
type Audit struct {
	Key    string // path of the file with the key that signs the heads
	Heads  string // path of the file to which each head is appended; empty: no file
	Syslog Syslog
}

// Syslog is an additional destination for heads. The zero value means that there is no additional destination.
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

// String never shows a password.
func (s Store) String() string {
	if s.Backend == Postgres {
		return withoutSecrets(s.URL.Reveal())
	}
	return s.Backend + ":" + s.Path
}

// The formats of the log.
const (
	JSONLog = "json" // one JSON object per line
	TextLog = "text" // key=value, for people
)

// HasModel reports whether the operator configured a model.
func (e Env) HasModel() bool { return e.ModelKey != "" || e.ModelURL != "" }

// ReadEnv reads and validates the environment for a command. The error is [yamldoc.Problems] and lists every fault.
func ReadEnv(c Command) (Env, error) {
	v, files, err := readVariables()
	if err != nil {
		return Env{}, fmt.Errorf("environment: %w", err)
	}
	r := envReader{command: c, variables: v, files: files, others: unknownVariables(os.Environ())}
	env := r.read()
	return env, r.problems.Err()
}

// String lists the settings without the secrets, one per line.
func (e Env) String() string {
	var b strings.Builder
	for _, s := range e.settings() {
		fmt.Fprintf(&b, "%s=%s\n", s.Key, s.Value)
	}
	return b.String()
}

// LogValue returns the settings without the secrets.
func (e Env) LogValue() slog.Value { return slog.GroupValue(e.settings()...) }

func (e Env) settings() []slog.Attr {
	return []slog.Attr{
		slog.String("SLACK_BOT_TOKEN", e.BotToken.String()),
		slog.String("SLACK_CLIENT_ID", e.Rotation.ClientID.String()),
		slog.String("SLACK_CLIENT_SECRET", e.Rotation.ClientSecret.String()),
		slog.String("SLACK_REFRESH_TOKEN", e.Rotation.RefreshToken.String()),
		slog.String("COUNTERSIGN_TRANSPORT", string(e.Transport)),
		slog.String("SLACK_APP_TOKEN", e.AppToken.String()),
		slog.String("SLACK_SIGNING_SECRET", e.SigningSecret.String()),
		slog.String("SLACK_API_URL", withoutPassword(e.SlackAPIURL)),
		slog.String("OPENAI_API_KEY", e.ModelKey.String()),
		slog.String("OPENAI_BASE_URL", withoutPassword(e.ModelURL)),
		slog.String("OPENAI_MODEL", e.Model),
		slog.String("OTEL_EXPORTER_OTLP_HEADERS", e.TraceHeaders.String()),
		slog.String("COUNTERSIGN_POLICY", e.Policy),
		slog.String("COUNTERSIGN_STORE", e.Store.String()),
		slog.String("COUNTERSIGN_MIGRATE", e.Store.migrate()),
		slog.String("COUNTERSIGN_HTTP_ADDR", e.HTTPAddr),
		slog.String("COUNTERSIGN_ADMIN_ADDR", e.AdminAddr),
		slog.String("COUNTERSIGN_GATEWAY_ADDR", e.GatewayAddr),
		slog.String("COUNTERSIGN_GATEWAY_URL", e.GatewayURL),
		slog.String("COUNTERSIGN_GATEWAY_KEY", e.GatewayKey),
		slog.String("COUNTERSIGN_CONTROL", e.Control),
		slog.String("COUNTERSIGN_AUDIT_KEY", e.Audit.Key),
		slog.String("COUNTERSIGN_AUDIT_HEADS", e.Audit.Heads),
		slog.String("COUNTERSIGN_AUDIT_SYSLOG", e.Audit.Syslog.String()),
		slog.String("COUNTERSIGN_LOG", strings.ToLower(e.Log.String())),
		slog.String("COUNTERSIGN_LOG_FORMAT", e.LogFormat),
		slog.String("COUNTERSIGN_STOP_WAIT", e.StopWait.String()),
		slog.Int("COUNTERSIGN_HISTORY_TOKENS", e.HistoryTokens),
	}
}

// Command is the command for which the environment is read. The command determines which variables are read, and which
// are required.
type Command int

// The kinds of command.
const (
	Serve   Command = iota // the bot: needs Slack and a model
	Demo                   // everything on this machine: ignores Slack's variables, and uses a model if one is set
	Check                  // checks everything that is set, and requires nothing
	Offline                // uses only the store and the policy
)

func (c Command) readsSlack() bool { return c == Serve || c == Check }

func (c Command) needsSlack() bool { return c == Serve }

func (c Command) readsModel() bool { return c != Offline }

func (c Command) needsModel() bool { return c == Serve }

func (c Command) readsStore() bool { return c != Demo }
