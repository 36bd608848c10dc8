package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"countersign/config"
	"countersign/config/yamldoc"
)

// These tokens have the right format, but were never issued by Slack.
const (
	botToken = "xoxb-1-hush-bot"
	appToken = "xapp-1-hush-app"
	signing  = "0123456789abcdef0123456789abcdef"
	modelKey = "sk-hush-key"
)

// setenv sets these variables, and clears the other variables that the tests set.
func setenv(t *testing.T, pairs map[string]string) {
	t.Helper()
	for _, name := range []string{
		"SLACK_CLIENT_ID", "SLACK_CLIENT_SECRET", "SLACK_REFRESH_TOKEN", "SLACK_CLIENT_ID_FILE", "SLACK_CLIENT_SECRET_FILE", "SLACK_REFRESH_TOKEN_FILE",
		"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_API_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL",
		"COUNTERSIGN_TRANSPORT", "COUNTERSIGN_POLICY", "COUNTERSIGN_STORE", "COUNTERSIGN_HTTP_ADDR", "COUNTERSIGN_ADMIN_ADDR", "COUNTERSIGN_CONTROL",
		"COUNTERSIGN_GATEWAY_ADDR", "COUNTERSIGN_GATEWAY_URL", "COUNTERSIGN_GATEWAY_KEY", "COUNTERSIGN_STORE_FILE",
		"SLACK_BOT_TOKEN_FILE", "SLACK_APP_TOKEN_FILE", "SLACK_SIGNING_SECRET_FILE", "OPENAI_API_KEY_FILE", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS_FILE",
		"COUNTERSIGN_AUDIT_KEY", "COUNTERSIGN_AUDIT_HEADS", "COUNTERSIGN_AUDIT_SYSLOG", "COUNTERSIGN_LOG", "COUNTERSIGN_LOG_FORMAT", "COUNTERSIGN_STOP_WAIT", "COUNTERSIGN_HISTORY_TOKENS",
	} {
		t.Setenv(name, "") // counts as not set
	}
	for name, value := range pairs {
		t.Setenv(name, value)
	}
}

func TestReadEnv(t *testing.T) {
	setenv(t, map[string]string{
		"SLACK_BOT_TOKEN": botToken, "SLACK_APP_TOKEN": appToken, "OPENAI_API_KEY": modelKey, "OPENAI_MODEL": "gpt-5",
		"SLACK_API_URL": "http://127.0.0.1:8484/api", "COUNTERSIGN_STORE": "bolt:/var/lib/countersign/../state.db", "COUNTERSIGN_LOG": "debug",
	})
	got, err := config.ReadEnv(config.Serve)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Env{
		BotToken: botToken, AppToken: appToken, Transport: config.SocketMode, SlackAPIURL: "http://127.0.0.1:8484/api/", ModelKey: modelKey, Model: "gpt-5",
		Policy: "countersign.yaml", Store: config.Store{Backend: "bolt", Path: "/var/lib/state.db"}, HTTPAddr: "127.0.0.1:8080", AdminAddr: "127.0.0.1:9090",
		Control: "/var/lib/state.db.sock", GatewayKey: "/var/lib/state.db.receipt-key", Audit: config.Audit{Key: "/var/lib/state.db.audit-key", Heads: "/var/lib/state.db.heads"}, Log: slog.LevelDebug, StopWait: 15 * time.Second, HistoryTokens: 24000,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// By default, the files with the audit's key and heads are beside the store. Variables can name other paths. Syslog
// can be reached in four ways.
func TestEnvAudit(t *testing.T) {
	for _, c := range []struct{ key, heads, syslog, want string }{
		{"", "", "", "state.db.audit-key state.db.heads "},
		{"/etc/key", "/var//heads", "unix:///dev/log", "/etc/key /var/heads unix:///dev/log"},
		{"", "none", "udp://logs.example.com", "state.db.audit-key  udp://logs.example.com:514"},
		{"", "", "tcp://[::1]:1601", "state.db.audit-key state.db.heads tcp://[::1]:1601"},
		{"", "", "tls://logs", "state.db.audit-key state.db.heads tls://logs:6514"},
	} {
		setenv(t, map[string]string{
			"COUNTERSIGN_STORE": "bolt:state.db", "COUNTERSIGN_AUDIT_KEY": c.key, "COUNTERSIGN_AUDIT_HEADS": c.heads, "COUNTERSIGN_AUDIT_SYSLOG": c.syslog,
		})
		env, err := config.ReadEnv(config.Offline)
		if err != nil {
			t.Error(err)
		}
		if got := env.Audit.Key + " " + env.Audit.Heads + " " + env.Audit.Syslog.String(); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestEnvProblems checks that all errors are reported together, with hints on what to write. An error is reported only
// for the commands that need the variable.
func TestEnvProblems(t *testing.T) {
	for _, c := range []struct {
		name    string
		command config.Command
		env     map[string]string
		want    []string // expected problems, each on one line, in this order
	}{
		{"nothing set", config.Serve, nil, []string{
			"SLACK_BOT_TOKEN: is missing; write the Bot User OAuth Token",
			"SLACK_APP_TOKEN: is missing; write an app-level token with connections:write",
			"OPENAI_API_KEY: is missing; write your key, or set OPENAI_BASE_URL",
			"OPENAI_MODEL: is missing; write the model's name",
		}},
		{"check needs nothing", config.Check, nil, nil},
		{"demo needs nothing", config.Demo, nil, nil},
		{"http needs the secret and not the app token", config.Serve, map[string]string{
			"COUNTERSIGN_TRANSPORT": "http", "SLACK_BOT_TOKEN": botToken, "OPENAI_BASE_URL": "http://127.0.0.1:1234/v1", "OPENAI_MODEL": "m",
		}, []string{"SLACK_SIGNING_SECRET: is missing"}},
		{"http, complete; a local model needs no key", config.Serve, map[string]string{
			"COUNTERSIGN_TRANSPORT": "http", "SLACK_BOT_TOKEN": botToken, "SLACK_SIGNING_SECRET": signing, "OPENAI_BASE_URL": "http://127.0.0.1:1234/v1", "OPENAI_MODEL": "m",
		}, nil},
		{"http where the operator's address is", config.Check, map[string]string{"COUNTERSIGN_TRANSPORT": "http", "COUNTERSIGN_HTTP_ADDR": "127.0.0.1:9090"}, []string{
			"COUNTERSIGN_HTTP_ADDR: is the address of COUNTERSIGN_ADMIN_ADDR too",
		}},
		{"the gateway where the operator's address is", config.Check, map[string]string{"COUNTERSIGN_GATEWAY_ADDR": "127.0.0.1:9090"}, []string{
			"COUNTERSIGN_GATEWAY_ADDR: is the address of COUNTERSIGN_ADMIN_ADDR too",
		}},
		{"the gateway where Slack's requests arrive", config.Check, map[string]string{
			"COUNTERSIGN_TRANSPORT": "http", "COUNTERSIGN_HTTP_ADDR": "127.0.0.1:8080", "COUNTERSIGN_GATEWAY_ADDR": "127.0.0.1:8080",
		}, []string{"COUNTERSIGN_GATEWAY_ADDR: is the address of COUNTERSIGN_HTTP_ADDR too"}},
		{"a public address of the gateway without TLS", config.Check, map[string]string{"COUNTERSIGN_GATEWAY_URL": "http://gate.example.com"}, []string{
			`COUNTERSIGN_GATEWAY_URL: "http://gate.example.com" is not a public address`,
		}},
		{"a public address of the gateway with more", config.Check, map[string]string{"COUNTERSIGN_GATEWAY_URL": "https://gate.example.com/?x=1"}, []string{
			"COUNTERSIGN_GATEWAY_URL: has more than a host and a path",
		}},
		{"a gateway without a host", config.Check, map[string]string{"COUNTERSIGN_GATEWAY_ADDR": "8090"}, []string{`COUNTERSIGN_GATEWAY_ADDR: "8090" is a port without a host`}},
		{"any free port twice", config.Check, map[string]string{"COUNTERSIGN_TRANSPORT": "http", "COUNTERSIGN_HTTP_ADDR": "127.0.0.1:0", "COUNTERSIGN_ADMIN_ADDR": "127.0.0.1:0"}, nil},
		{"tokens swapped", config.Check, map[string]string{"SLACK_BOT_TOKEN": appToken, "SLACK_APP_TOKEN": botToken}, []string{
			"SLACK_BOT_TOKEN: is an app-level token (xapp-), which belongs in SLACK_APP_TOKEN; it must begin with xoxb-",
			"SLACK_APP_TOKEN: is a bot token that does not expire (xoxb-), which belongs in SLACK_BOT_TOKEN of an app without token rotation; it must begin with xapp-",
		}},
		{"tokens of other kinds", config.Check, map[string]string{"SLACK_BOT_TOKEN": "xoxp-1-hush", "SLACK_APP_TOKEN": "xoxe.xoxb-1-hush"}, []string{
			"SLACK_BOT_TOKEN: is a user token (xoxp-)", "SLACK_APP_TOKEN: is a bot token of an app with token rotation (xoxe.xoxb-), which belongs in SLACK_BOT_TOKEN",
		}},
		{"a token that expires, alone", config.Check, map[string]string{"SLACK_BOT_TOKEN": "xoxe.xoxb-1-hush"}, []string{
			"SLACK_BOT_TOKEN: is a token that ends within 12 hours, because the app has token rotation; set SLACK_CLIENT_ID, SLACK_CLIENT_SECRET and SLACK_REFRESH_TOKEN too",
		}},
		{"token rotation needs no bot token", config.Serve, map[string]string{
			"SLACK_CLIENT_ID": "12.34", "SLACK_CLIENT_SECRET": signing, "SLACK_REFRESH_TOKEN": "xoxe-1-hush", "SLACK_APP_TOKEN": appToken, "OPENAI_API_KEY": modelKey, "OPENAI_MODEL": "m",
		}, nil},
		{"token rotation, incomplete", config.Check, map[string]string{"SLACK_REFRESH_TOKEN": "xoxe-1-hush"}, []string{
			"SLACK_CLIENT_ID: is missing; write the Client ID from your app's page Basic Information", "SLACK_CLIENT_SECRET: is missing; write the Client Secret",
		}},
		{"the app's credentials without token rotation", config.Check, map[string]string{"SLACK_BOT_TOKEN": botToken, "SLACK_CLIENT_ID": "A0001", "SLACK_CLIENT_SECRET": "hush"}, nil},
		{"token rotation, without the refresh token", config.Serve, map[string]string{
			"SLACK_CLIENT_ID": "12.34", "SLACK_CLIENT_SECRET": signing, "SLACK_APP_TOKEN": appToken, "OPENAI_API_KEY": modelKey, "OPENAI_MODEL": "m",
		}, []string{"SLACK_BOT_TOKEN: is missing; write the Bot User OAuth Token of your app, from its page OAuth & Permissions, or set SLACK_REFRESH_TOKEN"}},
		{"token rotation, with other values", config.Check, map[string]string{
			"SLACK_BOT_TOKEN": botToken, "SLACK_CLIENT_ID": "A0001", "SLACK_CLIENT_SECRET": signing + " ", "SLACK_REFRESH_TOKEN": "xoxe.xoxb-1-hush",
		}, []string{
			"SLACK_CLIENT_ID: does not have the form of Slack's value", "SLACK_CLIENT_SECRET: has a space or a line end around it",
			"SLACK_REFRESH_TOKEN: is a bot token of an app with token rotation", "SLACK_BOT_TOKEN: is a bot token that does not expire (xoxb-), which belongs in SLACK_BOT_TOKEN of an app without token rotation; it must begin with xoxe.xoxb-",
		}},
		{"badly copied", config.Check, map[string]string{"SLACK_BOT_TOKEN": botToken + "\n", "SLACK_APP_TOKEN": `"` + appToken + `"`, "OPENAI_API_KEY": "sk-hush key", "SLACK_SIGNING_SECRET": "hush"}, []string{
			"SLACK_BOT_TOKEN: has a space or a line end around it", "SLACK_APP_TOKEN: has quotes or brackets around it",
			"SLACK_SIGNING_SECRET: is not a signing secret", "OPENAI_API_KEY: has a space or a line end in it",
		}},
		{"cut off", config.Check, map[string]string{"SLACK_BOT_TOKEN": "xoxb-", "SLACK_APP_TOKEN": "xapp-1-…"}, []string{"SLACK_BOT_TOKEN: is cut off", "SLACK_APP_TOKEN: is cut off"}},
		{"the demo does not look at Slack's", config.Demo, map[string]string{"SLACK_BOT_TOKEN": "nonsense", "COUNTERSIGN_STORE": "nonsense"}, nil},
		{"the demo with a model of one's own", config.Demo, map[string]string{"OPENAI_API_KEY": modelKey}, []string{"OPENAI_MODEL: is missing"}},
		{"URLs", config.Check, map[string]string{"SLACK_API_URL": "slack.com/api", "OPENAI_BASE_URL": "https://user:hush@host/v1?x=1"}, []string{
			"SLACK_API_URL: does not begin with https:// or http://", "OPENAI_BASE_URL: has something after a ? or #",
		}},
		{"URLs that are none", config.Check, map[string]string{"SLACK_API_URL": "https://", "OPENAI_BASE_URL": "http://[::1"}, []string{"SLACK_API_URL: names no host", "OPENAI_BASE_URL: is not a URL"}},
		{"a database", config.Offline, map[string]string{"COUNTERSIGN_STORE": "postgres://user:hush@host/db?sslmode=require", "COUNTERSIGN_MIGRATE": "auto"}, nil},
		{"no database", config.Offline, map[string]string{"COUNTERSIGN_STORE": "postgres://user:hush@host/"}, []string{"COUNTERSIGN_STORE: does not name a database; write postgres://USER@HOST/DATABASE"}},
		{"no address", config.Offline, map[string]string{"COUNTERSIGN_STORE": "postgres://user:hush@[::1/db"}, []string{"COUNTERSIGN_STORE: is not a valid address; write postgres://USER@HOST/DATABASE"}},
		{"how to migrate", config.Offline, map[string]string{"COUNTERSIGN_STORE": "postgres://host/db", "COUNTERSIGN_MIGRATE": "yes"}, []string{`COUNTERSIGN_MIGRATE: "yes" is not a valid value; write auto`}},
		{"a path alone", config.Offline, map[string]string{"COUNTERSIGN_STORE": "countersign.db"}, []string{"COUNTERSIGN_STORE: does not say which kind of store it is; write bolt:PATH"}},
		{"no path", config.Offline, map[string]string{"COUNTERSIGN_STORE": "bolt:"}, []string{"COUNTERSIGN_STORE: has no path after bolt:"}},
		{"a directory", config.Offline, map[string]string{"COUNTERSIGN_STORE": "bolt:/var/lib/"}, []string{"add the file's name, such as bolt:/var/lib/countersign.db"}},
		{"no port", config.Check, map[string]string{"COUNTERSIGN_ADMIN_ADDR": "99999"}, []string{
			`COUNTERSIGN_ADMIN_ADDR: "99999" is not a port; write HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:9090`,
		}},
		{"addresses", config.Check, map[string]string{"COUNTERSIGN_HTTP_ADDR": "8080", "COUNTERSIGN_ADMIN_ADDR": "localhost:http"}, []string{
			`COUNTERSIGN_HTTP_ADDR: "8080" is a port without a host; write 127.0.0.1:8080`, `COUNTERSIGN_ADMIN_ADDR: "http" is not a port; write a number from 0 to 65535, such as localhost:9090`,
		}},
		{"the rest", config.Check, map[string]string{"COUNTERSIGN_TRANSPORT": "websocket", "COUNTERSIGN_LOG": "warning", "COUNTERSIGN_LOG_FORMAT": "xml", "COUNTERSIGN_HISTORY_TOKENS": "24k", "COUNTERSIGN_STOP_WAIT": "900", "COUNTERSIGN_CONTROL": strings.Repeat("x", 108)}, []string{
			`COUNTERSIGN_TRANSPORT: "websocket" is not a transport; write socket or http`,
			`COUNTERSIGN_STOP_WAIT: "900" is not a valid time to wait at shutdown; write a time from 0s to 24h, such as 90s or 20m`,
			`COUNTERSIGN_HISTORY_TOKENS: "24k" is not a number of tokens`,
			"COUNTERSIGN_CONTROL: is 108 bytes long", `COUNTERSIGN_LOG: "warning" is not a level; write warn`, `COUNTERSIGN_LOG_FORMAT: "xml" is not a format; write json or text`,
		}},
		{"syslog that is no address", config.Check, map[string]string{"COUNTERSIGN_AUDIT_SYSLOG": "udp://[::1"}, []string{`COUNTERSIGN_AUDIT_SYSLOG: "udp://[::1" is not an address; write udp://HOST:514`}},
		{"syslog by no known way", config.Check, map[string]string{"COUNTERSIGN_AUDIT_SYSLOG": "logs.example.com:514"}, []string{"does not say how syslog is reached; write udp://HOST:514"}},
		{"syslog without a host", config.Check, map[string]string{"COUNTERSIGN_AUDIT_SYSLOG": "tcp://:601"}, []string{"is not a host with a port"}},
		{"syslog with a path", config.Check, map[string]string{"COUNTERSIGN_AUDIT_SYSLOG": "tcp://host/x"}, []string{"is not a host with a port"}},
		{"syslog with a password", config.Check, map[string]string{"COUNTERSIGN_AUDIT_SYSLOG": "tcp://user:hush@host/x"}, []string{"COUNTERSIGN_AUDIT_SYSLOG: the value is not a host with a port"}},
		{"gateway with a password", config.Check, map[string]string{"COUNTERSIGN_GATEWAY_URL": "user:hush@host/x"}, []string{"COUNTERSIGN_GATEWAY_URL: the value is not a public address"}},
		{"a socket that is nowhere", config.Check, map[string]string{"COUNTERSIGN_AUDIT_SYSLOG": "unix://dev/log"}, []string{"does not say how syslog is reached"}},
		{"slips", config.Serve, map[string]string{
			"COUNTERSIGN_POLCY": "x", "SLACK_BOT_TOKENS": botToken, "SLACK_APP_TOKEN": appToken, "OPENAI_API_KEY": modelKey, "OPENAI_MODEL": "m",
			"COUNTERSIGN_PORT": "tcp://10.0.0.1:80", "COUNTERSIGN_SERVICE_HOST": "10.0.0.1", // variables that Kubernetes sets
		}, []string{
			"COUNTERSIGN_POLCY: is not a variable of Countersign; did you mean COUNTERSIGN_POLICY?", "(SLACK_BOT_TOKENS is set: is that a slip?)",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			setenv(t, c.env)
			_, err := config.ReadEnv(c.command)
			if len(c.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var problems yamldoc.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("want problems, got %v", err)
			}
			if len(problems) != len(c.want) {
				t.Fatalf("want %d problems, got:\n%v", len(c.want), err)
			}
			for i, p := range problems {
				if !strings.Contains(p.Error(), c.want[i]) {
					t.Errorf("want %q, got %q", c.want[i], p.Error())
				}
				if p.Hint == "" {
					t.Errorf("it does not say what to write: %v", p)
				}
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("a secret is printed: %v", err)
			}
		})
	}
}

// TestEnvDefaultSocket checks that a store's path is refused if the path of the default socket is too long. Commands
// that only use the store don't need the socket.
func TestEnvDefaultSocket(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has the socket")
	}
	long := strings.Repeat("x", 103)
	setenv(t, map[string]string{"COUNTERSIGN_STORE": "bolt:" + long})
	const want = "COUNTERSIGN_CONTROL: is 108 bytes long"
	if _, err := config.ReadEnv(config.Check); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want %q, got %v", want, err)
	}
	if _, err := config.ReadEnv(config.Offline); err != nil {
		t.Error(err)
	}
	setenv(t, map[string]string{"COUNTERSIGN_STORE": "bolt:" + long, "COUNTERSIGN_CONTROL": "c.sock"})
	if _, err := config.ReadEnv(config.Check); err != nil {
		t.Error(err)
	}
}

// TestEnvKeepsSecrets prints an environment in several ways. No output may show a secret.
func TestEnvKeepsSecrets(t *testing.T) {
	setenv(t, map[string]string{
		"SLACK_BOT_TOKEN": botToken, "SLACK_APP_TOKEN": appToken, "SLACK_SIGNING_SECRET": signing, "OPENAI_API_KEY": modelKey, "OPENAI_MODEL": "m",
		"OPENAI_BASE_URL": "https://user:hush@127.0.0.1/v1",
	})
	env, err := config.ReadEnv(config.Serve)
	if err != nil {
		t.Fatal(err)
	}
	if env.BotToken.Reveal() != botToken {
		t.Errorf("Reveal gives %q", env.BotToken.Reveal())
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("starting", "env", env, "token", env.BotToken)
	asJSON, err := json.Marshal(map[string]any{"token": env.BotToken})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		env.String(), log.String(), string(asJSON), fmt.Sprint(env), fmt.Sprintf("%+v %#v %s %q", env.BotToken, env.BotToken, env.BotToken, env.BotToken),
	} {
		if strings.Contains(text, "hush") || strings.Contains(text, signing) {
			t.Errorf("a secret is printed: %s", text)
		}
	}
	if !strings.Contains(env.String(), "SLACK_BOT_TOKEN=(set)\n") || !strings.Contains(env.String(), "COUNTERSIGN_TRANSPORT=socket\n") {
		t.Errorf("the settings are not listed:\n%s", env)
	}
}

// TestModelURL checks that a slash at the end of the model's URL does not lead to a double slash.
func TestModelURL(t *testing.T) {
	setenv(t, map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:11434/v1/", "OPENAI_MODEL": "m"})
	env, err := config.ReadEnv(config.Demo)
	if err != nil || env.ModelURL != "http://127.0.0.1:11434/v1" || !env.HasModel() {
		t.Errorf("%q, %v", env.ModelURL, err)
	}
}
