package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// documented returns the shell commands of a section of docs/deploy.md, with the release's version in place of VERSION.
func documented(t *testing.T, section string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var all strings.Builder
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		all.WriteString(m[1])
	}
	if !found || all.Len() == 0 {
		t.Fatalf("docs/deploy.md has no commands in the section %q", section)
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(one(t, "_oci.tar")), "countersign_"), "_oci.tar")
	return strings.ReplaceAll(all.String(), "VERSION", version)
}

// asRoot skips the test if it does not run as root. With CI=true, the test fails.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("only root can start a system or a container")
	}
	t.Skip("not tried without root")
}

// localSecrets are the secrets of the local workspace, which the tests use instead of Slack, and a key for the demo's
// model.
var localSecrets = map[string]string{"slack-bot-token": "xoxb-countersign-demo", "slack-app-token": "xapp-1-A0001-countersign-demo", "openai-api-key": "sk-not-a-secret"}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// machine is a booted system. Its files are those of this machine, and its changes are lost when it stops. It has no
// network except for its own loopback.
type machine struct {
	t      *testing.T
	leader string // process id of systemd
}

// boot boots a system with systemd-nspawn. In the system, the folder of the parameter shared has the path /shared.
func boot(t *testing.T, shared string) *machine {
	t.Helper()
	need(t, "systemd-nspawn")
	asRoot(t)
	dir := t.TempDir()
	for _, name := range []string{"changes", "work", "root"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Two systems at the same time would use the same control groups, so there is a lock.
	const inside = `mount -t overlay overlay -o lowerdir=/,upperdir="$0/changes",workdir="$0/work" "$0/root" &&
		exec flock --no-fork "$2" systemd-nspawn --quiet --register=no --keep-unit --private-network --link-journal=no \
		--resolv-conf=off --console=pipe --machine=countersign --directory="$0/root" --bind-ro="$1:/shared" --boot systemd.unit=basic.target`
	nspawn := exec.Command("unshare", "--mount", "sh", "-c", inside, dir, shared, filepath.Join(os.TempDir(), "countersign-nspawn.lock"))
	running := start(t, nspawn)
	m := &machine{t: t}
	t.Cleanup(func() {
		if m.leader == "" {
			return
		}
		_ = exec.Command("kill", "-RTMIN+4", m.leader).Run() // the signal for poweroff.target
		select {
		case <-running.ended:
		case <-time.After(patience):
			_ = exec.Command("kill", "-KILL", m.leader).Run()
			t.Error("the system did not stop")
		}
	})
	until(t, "systemd has started", func() bool {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", nspawn.Process.Pid))
		m.leader = strings.TrimSpace(string(children))
		if err != nil || m.leader == "" {
			return false
		}
		state, _ := m.command("systemctl", "is-system-running").Output() // fails while the system starts
		return strings.HasPrefix(string(state), "running") || strings.HasPrefix(string(state), "degraded")
	})
	return m
}

func (m *machine) command(args ...string) *exec.Cmd {
	c := exec.Command("nsenter", append([]string{"--all", "--target", m.leader, "--root", "--wd"}, args...)...)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive"}
	return c
}

// run runs a command in the system, and returns its output.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	out, err := m.command(args...).CombinedOutput()
	if err != nil {
		journal, _ := m.command("journalctl", "--no-pager", "--lines=50").Output()
		m.t.Fatalf("%s: %v\n%s\n%s", strings.Join(args, " "), err, out, journal)
	}
	return strings.TrimSpace(string(out))
}

// pid returns the process id of the running service, or 0.
func (m *machine) pid() string {
	m.t.Helper()
	if m.run("systemctl", "show", "--value", "--property=ActiveState", "countersign") != "active" {
		return "0"
	}
	return m.run("systemctl", "show", "--value", "--property=MainPID", "countersign")
}

// TestService installs the .deb on a system with systemd, and starts the service with the commands of docs/deploy.md.
// systemd restarts a bot that crashed. A package that is installed over the running bot does not disturb the bot. The
// removal of the package stops the bot, and keeps its store.
func TestService(t *testing.T) {
	shared, deb := t.TempDir(), one(t, "_linux_amd64.deb")
	for _, file := range []string{deb, filepath.Join(unpackDeb(t), "usr/bin/countersign")} {
		if err := os.Link(file, filepath.Join(shared, filepath.Base(file))); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(shared, "given/environment"), "OPENAI_MODEL=countersign-scripted\nOPENAI_BASE_URL=http://127.0.0.1:8585/v1\nSLACK_API_URL=http://127.0.0.1:8484/api/\n")
	for name, secret := range localSecrets {
		write(t, filepath.Join(shared, "given", name), secret+"\n")
	}
	m := boot(t, shared)
	m.run("systemd-run", "--unit=workspace", "/shared/countersign", "workspace", "--addr", "127.0.0.1:8484")
	m.run("systemd-run", "--unit=model", "--working-directory=/root", "/shared/countersign", "demo", "--no-browser", "--addr", "127.0.0.1:8585")
	until(t, "the workspace and the model have started", func() bool {
		return m.command("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8484 4<>/dev/tcp/127.0.0.1/8585").Run() == nil
	})
	const operator = `set -e
sudo() { "$@"; }
sudoedit() { if [ -e "/shared/given/${1##*/}" ]; then cat "/shared/given/${1##*/}" >> "$1"; fi; }
cd /shared
`
	if out := m.run("bash", "-c", operator+strings.Replace(documented(t, "A package and systemd"), "pin --all", "pin --all --yes", 1)); !strings.HasSuffix(out, "Nothing waits.") {
		t.Errorf("the commands print\n%s", out)
	}
	if out, err := m.command("setpriv", "--reuid=65534", "--clear-groups", "env", "COUNTERSIGN_STORE=bolt:/var/lib/countersign/countersign.db", "countersign", "pending").CombinedOutput(); err == nil {
		t.Errorf("a user may operate the bot:\n%s", out)
	}
	m.run("systemctl", "reload", "countersign")
	first := m.pid()
	m.run("dpkg", "--install", "/shared/"+filepath.Base(deb))
	if now := m.pid(); now != first || now == "0" {
		t.Errorf("the bot has process %s instead of %s", now, first)
	}
	m.run("kill", "-ABRT", first) // systemd's watchdog sends this signal
	until(t, "systemd restarts the bot", func() bool { now := m.pid(); return now != first && now != "0" })
	m.run("dpkg", "--remove", "countersign")
	if state := m.run("sh", "-c", "systemctl is-active countersign || true"); state != "inactive" {
		t.Errorf("without the package, the service is %s", state)
	}
	m.run("test", "-s", "/var/lib/countersign/countersign.db", "-a", "-s", "/etc/countersign/environment")
}

// container is a folder from which podman runs a container. podman keeps its images, containers and volumes there, too.
type container struct {
	t   *testing.T
	dir string
}

// newContainer prepares podman. Containers share the network of this machine, and get the settings env. Their limits
// are low, so that podman needs no right to raise them.
func newContainer(t *testing.T, env ...string) container {
	t.Helper()
	need(t, "podman")
	need(t, "runc")
	asRoot(t)
	c := container{t: t, dir: t.TempDir()}
	write(t, filepath.Join(c.dir, "containers.conf"), fmt.Sprintf(`[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "host"
env = ["%s"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
`, strings.Join(env, `", "`)))
	write(t, filepath.Join(c.dir, "storage.conf"), fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = \"%[1]s/graph\"\nrunroot = \"%[1]s/run\"\n", c.dir))
	t.Cleanup(func() {
		if out, err := c.command("podman rm --force --all && podman volume prune --force").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return c
}

func (c container) command(script string) *exec.Cmd {
	sh := exec.Command("sh", "-ec", script)
	sh.Dir = c.dir
	sh.Env = append(os.Environ(), "CONTAINERS_CONF="+filepath.Join(c.dir, "containers.conf"), "CONTAINERS_STORAGE_CONF="+filepath.Join(c.dir, "storage.conf"))
	return sh
}

// run runs a script in the folder, and returns its output.
func (c container) run(script string) string {
	c.t.Helper()
	out, err := c.command(script).CombinedOutput()
	if err != nil {
		logs, _ := c.command("podman logs countersign").CombinedOutput()
		c.t.Fatalf("%s: %v\n%s\n%s", script, err, out, logs)
	}
	return strings.TrimSpace(string(out))
}

// TestContainer starts the image in podman with the commands of docs/deploy.md. The bot ends with status 0 when podman
// stops it, and works again after it was killed.
func TestContainer(t *testing.T) {
	program := filepath.Join(unpackDeb(t), "usr/bin/countersign")
	slack := start(t, exec.Command(program, "workspace", "--addr", "127.0.0.1:0")).says(`is open at (http://\S+)`)
	model := start(t, exec.Command(program, "demo", "--no-browser", "--addr", "127.0.0.1:0")).says(`The model .* at (http://\S+)`)
	c := newContainer(t, "SLACK_API_URL="+slack+"/api/", "OPENAI_BASE_URL="+model, "COUNTERSIGN_ADMIN_ADDR="+freeAddress(t))
	image := one(t, "_oci.tar")
	if err := os.Link(image, filepath.Join(c.dir, filepath.Base(image))); err != nil {
		t.Fatal(err)
	}
	for name, secret := range localSecrets {
		write(t, filepath.Join(c.dir, "secrets", name), secret+"\n")
	}
	deploy, err := filepath.Abs("../../cmd/countersign/deploy")
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.NewReplacer(
		"pin --all", "pin --all --yes", "MODEL=MODEL", "MODEL=countersign-scripted", "DEPLOY/", deploy+"/", "${EDITOR:-vi}", "true",
	).Replace(documented(t, "A container"))
	setUp, questions, found := strings.Cut(commands, "podman exec ")
	if !found {
		t.Fatalf("the documentation does not ask the container:\n%s", commands)
	}
	c.run(setUp)
	c.ready()
	if out := c.run("podman exec " + questions); !strings.HasSuffix(out, "Nothing waits.") || strings.Contains(out, "not as pinned") {
		t.Errorf("the commands print\n%s", out)
	}
	c.run("podman healthcheck run countersign")
	c.run("podman stop countersign")
	if status := c.run("podman inspect --format '{{.State.ExitCode}}' countersign"); status != "0" {
		t.Errorf("the stopped bot ends with status %s", status)
	}
	c.run("podman start countersign")
	c.ready()
	c.run("podman kill countersign && podman wait countersign && podman start countersign")
	c.ready()
	if out := c.run("podman exec countersign countersign audit verify"); !strings.HasSuffix(out, "the history is whole") {
		t.Error(out)
	}
}

// ready waits until the bot in the container is ready.
func (c container) ready() {
	c.t.Helper()
	until(c.t, "the bot in the container is ready", func() bool {
		return c.command("podman exec countersign countersign health --ready").Run() == nil
	})
}

// freeAddress returns an address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
