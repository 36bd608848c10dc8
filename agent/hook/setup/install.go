package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"countersign/agent/hook"
)

// BackupSuffix is the file name suffix for backups. A settings file is backed up before the first change.
const BackupSuffix = ".countersign-backup"

// Change is a planned change of a settings file.
type Change struct {
	Path          string
	Before, After string
	Existed       bool
	gone          bool // the file is deleted
	backup        backupAction
}

type backupAction int

const (
	keepBackup backupAction = iota
	writeBackup
	dropBackup
)

// Empty reports whether the change has no effect.
func (c Change) Empty() bool { return c.Before == c.After && !c.gone }

// Install adds the hooks of the target's profile to the settings. Existing hooks of this program are replaced, so all
// hooks in a file have the same profile.
func (t Target) Install() (Change, error) {
	events, err := t.events()
	if err != nil {
		return Change{}, err
	}
	c, err := t.read()
	if err != nil {
		return c, err
	}
	text := c.Before
	if found, err := t.find(text); err != nil {
		return c, err
	} else if len(found) > 0 {
		if t.complete(found, events) {
			c.After = c.Before
			return c, nil
		}
		if text, err = t.without(text); err != nil {
			return c, err
		}
	} else if c.Existed {
		c.backup = writeBackup
	}
	if forms[t.Agent.Name].version {
		if text, err = set(text, "version", 1); err != nil {
			return c, t.unreadable(err)
		}
	}
	for _, event := range events {
		if text, err = add(text, []string{"hooks", event}, t.element(event)); err != nil {
			return c, t.unreadable(err)
		}
	}
	if _, err := parse(text); err != nil {
		return c, fmt.Errorf("%s can't be changed safely: %w", t.Path, err)
	}
	c.After = text
	return c, nil
}

// complete reports whether the settings already have exactly the hooks that Install would write.
func (t Target) complete(list []found, events []string) bool {
	if len(list) != len(events) {
		return false
	}
	for _, event := range events {
		wanted, err := t.find(`{"hooks": {` + strconv.Quote(event) + `: [` + string(encode(t.element(event))) + `]}}`)
		i := slices.IndexFunc(list, func(f found) bool { return f.event == event })
		if err != nil || i < 0 || !reflect.DeepEqual(list[i], wanted[0]) {
			return false
		}
	}
	return true
}

func encode(element any) []byte {
	text, err := json.Marshal(element)
	if err != nil {
		panic(err) // the maps have only strings, lists of strings and numbers, so encoding can't fail
	}
	return text
}

// Uninstall removes this program's hooks. If the file has no other changes since the installation, Uninstall restores
// the original bytes.
func (t Target) Uninstall() (Change, error) {
	c, err := t.read()
	if err != nil {
		return c, err
	}
	found, err := t.find(c.Before)
	if err != nil {
		return c, err
	}
	c.After = c.Before
	if len(found) == 0 {
		return c, nil
	}
	if c.After, err = t.without(c.Before); err != nil {
		return c, err
	}
	backup, err := os.ReadFile(t.Path + BackupSuffix)
	versions := []string{squeeze(c.After), strings.NewReplacer(`,"version":1}`, "}", `"version":1}`, "}").Replace(squeeze(c.After))}
	switch {
	case err == nil && slices.Contains(versions, squeeze(string(backup))):
		c.After, c.backup = string(backup), dropBackup
	case errors.Is(err, fs.ErrNotExist) && (squeeze(c.After) == "{}" || squeeze(c.After) == `{"version":1}`):
		c.After, c.gone = "", true // there was no file before the installation
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return c, err
	}
	return c, nil
}

func (t Target) read() (Change, error) {
	c := Change{Path: t.Path}
	text, err := os.ReadFile(t.Path)
	switch {
	case err == nil:
		c.Existed, c.Before = true, string(text)
	case !errors.Is(err, fs.ErrNotExist):
		return c, fmt.Errorf("the settings can't be read: %w", err)
	}
	return c, nil
}

func (t Target) unreadable(err error) error {
	return fmt.Errorf("%s does not have the form of %s's settings, so it was not changed: %w", t.Path, t.Agent.Title, err)
}

// found is a hook of this program in a settings file.
type found struct {
	event   string
	command string
	url     string // the URL of a hook over HTTP; empty: the hook is a command
	fields  map[string]any
}

// find lists this program's hooks.
func (t Target) find(text string) ([]found, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	root, err := parse(text)
	if err != nil {
		return nil, t.unreadable(err)
	}
	var list []found
	hooks, _ := root.get("hooks")
	for _, m := range root.members {
		if m.name == "hooks" && m.value.from != hooks.from { // the agent reads only the last of them
			return nil, t.unreadable(errors.New(`the key "hooks" occurs twice`))
		}
	}
	for _, event := range hooks.members {
		for _, e := range event.value.members {
			for _, h := range append([]node{e.value}, inner(e.value)...) {
				if !t.owns(text, h) {
					continue
				}
				f := found{event: event.name, command: commandOf(text, h), fields: map[string]any{}}
				if f.command == "" {
					f.url = textOf(text, h, "url")
				}
				for _, m := range h.members {
					var v any
					if json.Unmarshal([]byte(text[m.value.from:m.value.to]), &v) == nil {
						f.fields[m.name] = v
					}
				}
				if matcher, ok := e.value.get("matcher"); ok {
					f.fields["matcher"] = matcher.text(text)
				}
				list = append(list, f)
			}
		}
	}
	return list, nil
}

// inner returns the hooks of a group.
func inner(group node) []node {
	var list []node
	hooks, _ := group.get("hooks")
	for _, h := range hooks.members {
		list = append(list, h.value)
	}
	return list
}

// owns reports whether a hook in a settings file starts this program, or sends its event to a gateway.
func (t Target) owns(text string, h node) bool {
	return ours(commandOf(text, h), t.Agent.Name) || t.Agent.HTTP && oursOverHTTP(textOf(text, h, "url"), t.Agent.Name)
}

// commandOf returns a hook's command. Some agents have the command in the JSON field command, others in the field bash.
func commandOf(text string, h node) string { return textOf(text, h, "command", "bash") }

// textOf returns the text of the first of the named members that a hook has, or "".
func textOf(text string, h node, names ...string) string {
	for _, name := range names {
		if c, ok := h.get(name); ok {
			return c.text(text)
		}
	}
	return ""
}

// without removes this program's hooks. It also removes lists and objects that become empty and have no comments.
func (t Target) without(text string) (string, error) {
	for {
		root, err := parse(text)
		if err != nil {
			return "", t.unreadable(err)
		}
		next, ok := t.withoutOne(text, root)
		if !ok {
			return text, nil
		}
		text = next
	}
}

// withoutOne removes one hook. If the hook's group, its event or the object of all hooks becomes empty, withoutOne
// removes the empty value too, unless it has a comment.
func (t Target) withoutOne(text string, root node) (string, bool) {
	at := slices.IndexFunc(root.members, func(e entry) bool { return e.name == "hooks" })
	if at < 0 {
		return "", false
	}
	hooks := root.members[at].value
	for i, event := range hooks.members {
		for j, e := range event.value.members {
			owner, index := event.value, j
			if !t.owns(text, e.value) {
				group, _ := e.value.get("hooks")
				index = slices.IndexFunc(group.members, func(h entry) bool { return t.owns(text, h.value) })
				if index < 0 {
					continue
				}
				owner = group
				if group.alone(text) {
					owner, index = event.value, j
				}
			}
			// Only the value from which the entry is removed can become empty.
			if owner.from == event.value.from && owner.alone(text) {
				owner, index = hooks, i
			}
			if owner.from == hooks.from && owner.alone(text) {
				owner, index = root, at
			}
			return remove(text, owner, index), true
		}
	}
	return "", false
}

// squeeze removes white space outside of strings, and commas before a closing bracket.
func squeeze(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '"' {
			p := parser{src: text, at: i}
			if _, err := p.str(); err == nil {
				b.WriteString(text[i:p.at])
				i = p.at - 1
				continue
			}
		}
		if !strings.ContainsRune(" \t\r\n", rune(text[i])) {
			b.WriteByte(text[i])
		}
	}
	return strings.NewReplacer(",}", "}", ",]", "]").Replace(b.String())
}

// Apply writes a change to the file. The first installation leaves a backup of existing settings beside the file. An
// uninstallation that restores the original bytes deletes the backup.
func (c Change) Apply() error {
	path := c.Path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if now, err := os.ReadFile(path); err == nil && string(now) != c.Before || err == nil != c.Existed {
		return fmt.Errorf("%s was changed in the meantime; nothing was written", c.Path)
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if c.backup == writeBackup {
		if err := replace(c.Path+BackupSuffix, c.Before, mode); err != nil {
			return fmt.Errorf("the copy of the settings can't be written, so they stay as they are: %w", err)
		}
	}
	if c.gone {
		return os.Remove(path)
	}
	if err := replace(path, c.After, mode); err != nil {
		return err
	}
	if c.backup == dropBackup {
		return os.Remove(c.Path + BackupSuffix)
	}
	return nil
}

// replace writes a file atomically.
func replace(path, text string, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Diff returns the change in the form of a diff.
func (c Change) Diff() string {
	was, is := lines(c.Before), lines(c.After)
	from, to := "/dev/null", c.Path
	if c.Existed {
		from = c.Path
	}
	if c.gone {
		to = "/dev/null"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, to)
	const around = 3
	steps := compare(was, is)
	for i, s := range steps {
		near := false
		for _, n := range steps[max(0, i-around):min(len(steps), i+around+1)] {
			near = near || n[0] != ' '
		}
		switch {
		case near:
			b.WriteString(s + "\n")
		case i > 0 && !strings.HasSuffix(b.String(), "…\n"):
			b.WriteString("…\n")
		}
	}
	return b.String()
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// compare lists the common, removed and added lines of two texts. Each line has the prefix " ", "-" or "+".
func compare(was, is []string) []string {
	same := make([][]int, len(was)+1) // same[i][j] is the maximum number of common lines in was[i:] and is[j:]
	for i := range same {
		same[i] = make([]int, len(is)+1)
	}
	for i := len(was) - 1; i >= 0; i-- {
		for j := len(is) - 1; j >= 0; j-- {
			if was[i] == is[j] {
				same[i][j] = same[i+1][j+1] + 1
			} else {
				same[i][j] = max(same[i+1][j], same[i][j+1])
			}
		}
	}
	var out []string
	for i, j := 0, 0; i < len(was) || j < len(is); {
		switch {
		case i < len(was) && j < len(is) && was[i] == is[j]:
			out = append(out, " "+was[i])
			i, j = i+1, j+1
		case j == len(is) || i < len(was) && same[i+1][j] >= same[i][j+1]:
			out = append(out, "-"+was[i])
			i++
		default:
			out = append(out, "+"+is[j])
			j++
		}
	}
	return out
}

// Installed reports whether the settings have hooks of this program, and returns the profile of these hooks.
func (t Target) Installed() (hook.Profile, bool, error) {
	c, err := t.read()
	if err != nil {
		return "", false, err
	}
	list, err := t.find(c.Before)
	if err != nil || len(list) == 0 {
		return "", false, err
	}
	f := forms[t.Agent.Name]
	for _, h := range list {
		if slices.Contains(f.asks, h.event) && slices.Contains(f.comfort, h.event) {
			return hook.Comfort, true, nil
		}
	}
	return hook.Control, true, nil
}
