package config

import (
	"reflect"

	"github.com/kelseyhightower/envconfig"
)

// variables holds the environment variables as text. All values are strings, so that an invalid value does not prevent
// the check of the others; [Env] has the converted values. An empty variable counts as not set.
type variables struct {
	SlackBotToken      string `envconfig:"SLACK_BOT_TOKEN"`
	Transport          string `envconfig:"COUNTERSIGN_TRANSPORT" default:"socket"`
	SlackAppToken      string `envconfig:"SLACK_APP_TOKEN"`
	SlackSigningSecret string `envconfig:"SLACK_SIGNING_SECRET"`
	SlackAPIURL        string `envconfig:"SLACK_API_URL"`
	OpenAIAPIKey       string `envconfig:"OPENAI_API_KEY"`
	OpenAIBaseURL      string `envconfig:"OPENAI_BASE_URL"`
	OpenAIModel        string `envconfig:"OPENAI_MODEL"`
	Policy             string `envconfig:"COUNTERSIGN_POLICY" default:"countersign.yaml"`
	Store              string `envconfig:"COUNTERSIGN_STORE" default:"bolt:countersign.db"`
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
	StopWait           string `envconfig:"COUNTERSIGN_STOP_WAIT" default:"15s"`
	HistoryTokens      string `envconfig:"COUNTERSIGN_HISTORY_TOKENS" default:"24000"`
}

// readVariables reads the process's environment.
func readVariables() (variables, error) {
	var v variables
	if err := envconfig.Process("", &v); err != nil {
		return variables{}, err
	}
	fields := reflect.ValueOf(&v).Elem()
	for i := range fields.NumField() {
		if fields.Field(i).String() == "" { // set but empty: envconfig did not apply the default
			fields.Field(i).SetString(fields.Type().Field(i).Tag.Get("default"))
		}
	}
	return v, nil
}

// variableNames lists the names of all variables.
func variableNames() []string {
	t := reflect.TypeFor[variables]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("envconfig")
	}
	return names
}
