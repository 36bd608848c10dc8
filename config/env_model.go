package config

import "strings"

// model reads the settings of the model.
func (r *envReader) model(e *Env) {
	v := r.variables
	e.ModelURL = r.baseURL("OPENAI_BASE_URL", v.OpenAIBaseURL, "write a URL such as https://api.openai.com/v1, or leave it out for OpenAI")
	e.ModelURL = strings.TrimRight(e.ModelURL, "/")
	if v.OpenAIAPIKey != "" {
		if problem := wrapped(v.OpenAIAPIKey); problem != "" {
			r.wrong("OPENAI_API_KEY", problem, "write the key alone")
		}
	}
	e.ModelKey = Secret(v.OpenAIAPIKey)
	own := v.OpenAIAPIKey != "" || v.OpenAIBaseURL != ""
	if r.command.needsModel() && !own {
		r.missing("OPENAI_API_KEY", "write your key, or set OPENAI_BASE_URL to an OpenAI-compatible endpoint that needs none")
	}
	if e.Model == "" && (r.command.needsModel() || (r.command == Demo && own)) {
		r.missing("OPENAI_MODEL", "write the model's name as the endpoint knows it")
	}
}
