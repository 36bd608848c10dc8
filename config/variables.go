package config

import (
	"os"
	"reflect"

	"github.com/kelseyhightower/envconfig"
)

// variables holds the environment variables as text. All values are strings, so that the other values can be checked
// even if one value is invalid. [Env] has the converted values. An empty variable counts as not set. Each secret has a
// second variable, with the suffix _FILE. This variable names a file that contains the secret.
type variables struct {
	SlackBotToken      string `envconfig:"SLACK_BOT_TOKEN" secret:"true"`
	SlackClientID      string `envconfig:"SLACK_CLIENT_ID" secret:"true"`
	SlackClientSecret  string `envconfig:"SLACK_CLIENT_SECRET" secret:"true"`
	SlackRefreshToken  string `envconfig:"SLACK_REFRESH_TOKEN" secret:"true"`
	Transport          string `envconfig:"COUNTERSIGN_TRANSPORT" default:"socket"`
	SlackAppToken      string `envconfig:"SLACK_APP_TOKEN" secret:"true"`
	SlackSigningSecret string `envconfig:"SLACK_SIGNING_SECRET" secret:"true"`
	SlackAPIURL        string `envconfig:"SLACK_API_URL"`
	OpenAIAPIKey       string `envconfig:"OPENAI_API_KEY" secret:"true"`
	OpenAIBaseURL      string `envconfig:"OPENAI_BASE_URL"`
	OpenAIModel        string `envconfig:"OPENAI_MODEL"`
	TraceHeaders       string `envconfig:"OTEL_EXPORTER_OTLP_HEADERS" secret:"true"` // may contain the key of the traces' receiver
	Policy             string `envconfig:"COUNTERSIGN_POLICY" default:"countersign.yaml"`
	Store              string `envconfig:"COUNTERSIGN_STORE" default:"bolt:countersign.db" secret:"true"` // a database's address may contain a password
	Migrate            string `envconfig:"COUNTERSIGN_MIGRATE"`
	HTTPAddr           string `envconfig:"COUNTERSIGN_HTTP_ADDR" default:"127.0.0.1:8080"`
	AdminAddr          string `envconfig:"COUNTERSIGN_ADMIN_ADDR" default:"127.0.0.1:9090"`
	GatewayAddr        string `envconfig:"COUNTERSIGN_GATEWAY_ADDR"`
	GatewayURL         string `envconfig:"COUNTERSIGN_GATEWAY_URL"`
	GatewayKey         string `envconfig:"COUNTERSIGN_GATEWAY_KEY"`
	Control            string `envconfig:"COUNTERSIGN_CONTROL"`
	AuditKey           string `envconfig:"COUNTERSIGN_AUDIT_KEY"`
	AuditHeads         string `envconfig:"COUNTERSIGN_AUDIT_HEADS"`
	AuditSyslog        string `envconfig:"COUNTERSIGN_AUDIT_SYSLOG"`
	Log                string `envconfig:"COUNTERSIGN_LOG" default:"info"`
	LogFormat          string `envconfig:"COUNTERSIGN_LOG_FORMAT"`
	StopWait           string `envconfig:"COUNTERSIGN_STOP_WAIT" default:"15s"`
	HistoryTokens      string `envconfig:"COUNTERSIGN_HISTORY_TOKENS" default:"24000"`
}

// readVariables reads the process's environment, and the files that the environment names.
func readVariables() (v variables, files secretFiles, err error) {
	if err := envconfig.Process("", &v); err != nil {
		return variables{}, secretFiles{}, err
	}
	fields := reflect.ValueOf(&v).Elem()
	for i := range fields.NumField() {
		field, tag := fields.Field(i), fields.Type().Field(i).Tag
		name := tag.Get("envconfig")
		if tag.Get("secret") != "" {
			_, set := os.LookupEnv(name) // envconfig has already applied the default
			value := ""
			if set {
				value = field.String()
			}
			field.SetString(files.read(name, value))
		}
		if field.String() == "" { // not set, or set but empty
			field.SetString(tag.Get("default"))
		}
	}
	return v, files, nil
}

func variableNames() []string {
	t := reflect.TypeFor[variables]()
	var names []string
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		names = append(names, tag.Get("envconfig"))
		if tag.Get("secret") != "" {
			names = append(names, tag.Get("envconfig")+fileSuffix)
		}
	}
	return names
}
