package chart

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"helm.sh/helm/v3/pkg/strvals"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const deploy = "../../cmd/countersign/deploy"

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns a section of docs/deploy.md.
func section(t *testing.T, name string) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, "../../docs/deploy.md"), "\n## "+name+"\n")
	if !found {
		t.Fatalf("docs/deploy.md has no section %q", name)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// commands returns the shell commands of a section of docs/deploy.md. A command of several lines is joined.
func commands(t *testing.T, name string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section(t, name), -1) {
		all = append(all, strings.Split(strings.TrimSpace(strings.ReplaceAll(m[1], "\\\n", "")), "\n")...)
	}
	return all
}

// TestDocumentedChart renders the chart with the settings of the helm commands in docs/deploy.md. The pods may only use
// Secrets that the page creates, with the keys that the page gives them.
func TestDocumentedChart(t *testing.T) {
	made := map[string][]string{} // the keys of each Secret
	given := map[string]any{}
	workloads := []string{}
	for _, command := range commands(t, "Helm") {
		words := strings.Fields(command)
		switch {
		case strings.Contains(command, "create secret generic"):
			name := words[slices.Index(words, "generic")+1]
			for _, w := range words {
				if file, ok := strings.CutPrefix(w, "--from-file="); ok {
					key, _, _ := strings.Cut(file, "=")
					made[name] = append(made[name], key)
				}
			}
		case words[0] == "helm":
			if words[1] == "install" {
				given = map[string]any{}
			} else if !slices.Contains(words, "--reset-then-reuse-values") {
				t.Errorf("%s does not keep the settings of the installation", command)
			}
			for i, w := range words {
				var err error
				switch w {
				case "--set":
					err = strvals.ParseInto(words[i+1], given)
				case "--set-file":
					err = strvals.ParseIntoFile(words[i+1], given, func(path []rune) (any, error) {
						if string(path) == "countersign.lock" { // countersign tools pin writes this file
							return "version: 1\n", nil
						}
						return read(t, filepath.Join(deploy, string(path))), nil
					})
				}
				if err != nil {
					t.Errorf("%s: %v", w, err)
				}
			}
			files, err := render(t, given)
			if err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			kind, pod := workload(t, files)
			workloads = append(workloads, kind)
			image, _, _ := strings.Cut(pod.Containers[0].Image, ":")
			if image != "REGISTRY/countersign" {
				t.Errorf("%s starts the image %s", command, image)
			}
			checkSecrets(t, pod, made)
		}
	}
	if want := []string{"StatefulSet", "Deployment"}; !slices.Equal(workloads, want) {
		t.Errorf("the commands make %v, want %v", workloads, want)
	}
}

// workload returns the kind of the rendered workload, and its pod.
func workload(t *testing.T, files map[string]string) (kind string, pod corev1.PodSpec) {
	t.Helper()
	first, _, _ := strings.Cut(files["workload.yaml"], "\n---\n") // a disruption budget may follow
	var w struct {
		Kind string
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	if err := yaml.Unmarshal([]byte(first), &w); err != nil {
		t.Fatal(err)
	}
	return w.Kind, w.Spec.Template.Spec
}

// checkSecrets checks that each file of a secret is in a Secret of made, which maps Secrets to their keys.
func checkSecrets(t *testing.T, pod corev1.PodSpec, made map[string][]string) {
	t.Helper()
	mounted := map[string]string{} // the Secret that is mounted at a path
	for _, m := range pod.Containers[0].VolumeMounts {
		for _, v := range pod.Volumes {
			if v.Name == m.Name && v.Secret != nil {
				mounted[m.MountPath] = v.Secret.SecretName
			}
		}
	}
	for _, e := range pod.Containers[0].Env {
		if !strings.HasPrefix(e.Value, "/run/secrets/") {
			continue
		}
		if secret := mounted[filepath.Dir(e.Value)]; secret == "" {
			t.Errorf("no Secret is mounted for %s=%s", e.Name, e.Value)
		} else if !slices.Contains(made[secret], filepath.Base(e.Value)) {
			t.Errorf("%s=%s needs a key that the Secret %s does not have: %v", e.Name, e.Value, secret, made[secret])
		}
	}
}

// areRead checks that the program reads each variable. docs/environment.md and docs/traces.md list the variables, and
// tests compare docs/environment.md with the program.
func areRead(t *testing.T, env map[string]string) {
	t.Helper()
	known := map[string]bool{}
	for _, page := range []string{"environment.md", "traces.md"} {
		for _, row := range regexp.MustCompile("(?m)^\\| (`[A-Z].*?) \\|").FindAllStringSubmatch(read(t, "../../docs/"+page), -1) {
			for name := range strings.SplitSeq(row[1], ", ") {
				known[strings.Trim(name, "`")] = true
			}
		}
	}
	_, files, _ := strings.Cut(read(t, "../../docs/environment.md"), "The ending `_FILE` works for ")
	files, _, _ = strings.Cut(files, ", because")
	for _, name := range regexp.MustCompile("`([A-Z_]+)`").FindAllStringSubmatch(files, -1) {
		known[name[1]+"_FILE"] = true
	}
	if len(known) < 40 {
		t.Fatalf("the pages list only %d variables", len(known))
	}
	for name := range env {
		if !known[name] {
			t.Errorf("the program does not read the variable %s", name)
		}
	}
}

// TestDocumentedSettings checks that the chart has each setting that docs/deploy.md names.
func TestDocumentedSettings(t *testing.T) {
	all := load(t).Values
	named := regexp.MustCompile("`([a-z]+(?:\\.[A-Za-z]+)+)(?:[=:].*?)?`").FindAllStringSubmatch(section(t, "Helm"), -1)
	found := 0
	for _, m := range named {
		if m[1] == "values.yaml" {
			continue
		}
		found++
		var at any = all
		for key := range strings.SplitSeq(m[1], ".") {
			in, _ := at.(map[string]any)
			at = in[key]
		}
		if at == nil {
			t.Errorf("the chart has no setting %s", m[1])
		}
	}
	if found < 6 {
		t.Errorf("the page names only %d settings: %q", found, named)
	}
}

// TestUnitVariables checks the variables of the systemd unit and of its file with settings.
func TestUnitVariables(t *testing.T) {
	env := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^(?:Environment=|# )?([A-Z_]+)=(.*)$").FindAllStringSubmatch(
		read(t, deploy+"/systemd/countersign.service")+read(t, deploy+"/systemd/environment"), -1) {
		env[m[1]] = m[2]
	}
	for _, name := range []string{"HOME", "GOTRACEBACK"} { // the Go runtime and MCP servers read these variables
		if _, ok := env[name]; !ok {
			t.Errorf("the unit does not set %s", name)
		}
		delete(env, name)
	}
	if len(env) < 8 {
		t.Errorf("only %d variables were found: %v", len(env), env)
	}
	areRead(t, env)
}

// TestCompose reads the compose file as Compose does, with the variables that the commands in docs/deploy.md write to .env.
// The commands must write each secret, and each file that a service mounts must exist or be written by the commands.
func TestCompose(t *testing.T) {
	lines := commands(t, "Docker Compose")
	env := types.Mapping{}
	for _, line := range lines {
		if set := regexp.MustCompile(`^printf '(.*)\\n' > \.env$`).FindStringSubmatch(line); set != nil {
			for pair := range strings.SplitSeq(set[1], `\n`) {
				name, value, _ := strings.Cut(pair, "=")
				env[name] = value
			}
		}
	}
	text := strings.Join(lines, "\n")
	p, err := compose(env)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Services["bot"].Image; got != "countersign:VERSION" {
		t.Errorf("the bot has the image %s", got)
	}
	for _, m := range regexp.MustCompile(`docker compose exec (\S+)`).FindAllStringSubmatch(text, -1) {
		if _, ok := p.Services[m[1]]; !ok {
			t.Errorf("there is no service %s", m[1])
		}
	}
	for name, secret := range p.Secrets {
		if secret.File != filepath.Join(deploy, "compose/secrets", name) || !regexp.MustCompile(`[ /]`+name+`\b`).MatchString(text) {
			t.Errorf("the commands do not write the secret %s to %s", name, secret.File)
		}
	}
	for name, service := range p.Services {
		for network := range p.Services["database"].Networks {
			if _, ok := service.Networks[network]; ok && name != "database" && name != "bot" {
				t.Errorf("%s can reach the database", name)
			}
		}
		for _, v := range service.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			_, missing := os.Stat(v.Source)
			if dir := filepath.Base(v.Source); missing != nil && !regexp.MustCompile(`(?m)^mkdir .*\b`+dir+`\b`).MatchString(text) {
				t.Errorf("%s mounts %s, which does not exist", name, v.Source)
			}
		}
		secrets := map[string]bool{}
		for _, s := range service.Secrets {
			secrets["/run/secrets/"+s.Source] = true
		}
		set := map[string]string{}
		for variable, value := range service.Environment {
			set[variable] = *value
			if strings.HasPrefix(*value, "/run/secrets/") && !secrets[*value] {
				t.Errorf("%s does not have the secret %s=%s", name, variable, *value)
			}
		}
		if name == "bot" {
			areRead(t, set)
		}
	}
}

// compose reads the compose file.
func compose(env types.Mapping) (*types.Project, error) {
	return loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: deploy + "/compose", ConfigFiles: []types.ConfigFile{{Filename: deploy + "/compose/compose.yaml"}}, Environment: env,
	}, func(o *loader.Options) { o.SetProjectName("countersign", true) })
}

// TestComposeWithoutModel checks that Compose refuses to start a bot without a model.
func TestComposeWithoutModel(t *testing.T) {
	if _, err := compose(types.Mapping{}); err == nil || !strings.Contains(err.Error(), "name the model") {
		t.Error(err)
	}
}

// TestComposeKeepsMetrics checks that Prometheus keeps the metrics for longer than each alert looks back.
func TestComposeKeepsMetrics(t *testing.T) {
	p, err := compose(types.Mapping{"OPENAI_MODEL": "gpt-5"})
	if err != nil {
		t.Fatal(err)
	}
	days := func(pattern, text string) (most int) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, n)
		}
		return most
	}
	kept := days(`--storage\.tsdb\.retention\.time=(\d+)d`, strings.Join(p.Services["prometheus"].Command, " "))
	needed := days(`\[(\d+)d\]`, read(t, deploy+"/prometheus/alerts.yaml"))
	if needed == 0 || kept <= needed {
		t.Errorf("the alerts need the metrics of %d days, and Prometheus keeps them for %d days", needed, kept)
	}
}
