package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
	"countersign/store"
)

// policyPath returns the path of a command's policy file: the given path or, without one, the path in the environment.
func policyPath(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return "", cli.Misused("the environment can't be used:\n%w", err)
	}
	return env.Policy, nil
}

// readPolicy reads a policy file, and the tools of it that are known without contacting a server. readPolicy accepts
// only a policy with which the bot would start.
func readPolicy(path string) (*approvers.Policy, *agent.Registry, error) {
	file, err := check.Read(path)
	if err != nil {
		return nil, nil, cli.Misused("the policy can't be used:\n%w", err)
	}
	tools, err := catalog.Offline(file, path)
	return withTools(file, tools, err)
}

// withTools adds the tools to a policy, and checks the policy. err is the error of reading the tools.
func withTools(file *config.File, tools *agent.Registry, err error) (*approvers.Policy, *agent.Registry, error) {
	if err != nil {
		return nil, nil, misconfigured(err)
	}
	file.Policy = catalog.WithTools(file.Policy, tools)
	if errs := check.Run(file, catalog.Described(tools)).Errors(); len(errs) > 0 {
		return nil, nil, cli.Misused("the policy can't be used:\n%w", errs)
	}
	return file.Policy, tools, nil
}

// storedPolicy reads the policy in force in a store that several processes may use. If no policy is stored, the error
// is store.ErrNotFound.
func storedPolicy(ctx context.Context, db store.Store) (*approvers.Policy, *agent.Registry, error) {
	none := func() *approvers.Policy { return new(approvers.Policy) }
	ps := policies{workflow: workflow.New(workflow.Config{Store: db, Policy: none, Tools: new(agent.Registry), Log: slog.New(slog.DiscardHandler)})}
	row, stored, err := ps.load(ctx)
	if err != nil {
		return nil, nil, err
	}
	file, lock, err := stored.content.Parse(inForceName)
	if err != nil {
		return nil, nil, cli.Misused("%w", unusable(row, err))
	}
	tools, err := catalog.OfflineWith(file, lock, pins.Beside(inForceName))
	policy, tools, err := withTools(file, tools, err)
	if err == nil {
		policy.Load = row.Load
	}
	return policy, tools, err
}

// policyFor reads the policy of a command, as readPolicy does.
func policyFor(given string) (*approvers.Policy, *agent.Registry, error) {
	path, err := policyPath(given)
	if err != nil {
		return nil, nil, err
	}
	return readPolicy(path)
}

// misconfigured adds the exit code of a wrong configuration to errors about the policy's tool sources and the lock
// file.
func misconfigured(err error) error {
	var wrong yamldoc.Problems
	if errors.As(err, &wrong) {
		return cli.Misused("the policy can't be used:\n%w", wrong)
	}
	if lock := new(catalog.LockError); errors.As(err, &lock) {
		return cli.Misused("%w", err)
	}
	return err
}

// policies decides which policy and which pins this process uses. Normally, the process uses the policy and the pins in
// force in the store. If the bot would accept a file at a start, the file comes into force in three cases: it was never
// in force before, it changes while the process runs, or a SIGHUP asks for it. In any other case, the process uses the
// policy and pins in force, and reports that its file differs. A file that can't be used changes nothing.
type policies struct {
	tools   *catalog.Catalog // holds the policy that this process uses
	log     *slog.Logger
	hangup  chan os.Signal // receives a SIGHUP, which says that the files are complete; nil: no signals
	shared  bool           // other processes work on the same store
	process string         // names this process in the store, as in the list of replicas
	wake    chan struct{}  // makes watch read the store now, because another process changed what is in force

	unusable atomic.Pointer[refusal] // the reason why this process can't use what is in force; nil: it can
	number   atomic.Uint64           // number of the stored change that this process uses; 0: no policy is stored

	turn     chan struct{}      // guards the fields below; a channel, because its holder waits for the store
	workflow *workflow.Workflow // nil: nothing is stored yet
	name     string             // the policy's name in problems
	reader   catalog.Reader
	builtin  []byte       // the content of a policy that is compiled in; nil: the policy is a file
	row      store.Policy // what is in force, as last read; only the digests are set before anything is stored
	used     usedPolicy
	policy   watchedFile // the policy file, with the OpenAPI files that it names
	pins     watchedFile
}

// usedPolicy is the policy that this process uses.
type usedPolicy struct {
	load    string // id of the stored change that put it into force; empty: no policy is stored
	content storedContent
	file    *config.File
	lock    pins.Lock
}

// storedContent is the content of the policy in force in the form in which it is stored.
type storedContent struct {
	catalog.Content
	EarlierPolicies []string `json:"earlier_policies,omitempty"` // digests that were in force before
	EarlierPins     []string `json:"earlier_pins,omitempty"`
}

// mostEarlier limits how many earlier digests are kept.
const mostEarlier = 100

// watchedFile has this process's knowledge about a file.
type watchedFile struct {
	name    string
	found   string // the digest that was last read, or the reason why the file can't be read
	fault   error  // nil: it can be read
	seen    string // the content found before
	settled string // digest of content that does not come into force again: it was in force, or stale at the start
	refused string // the last rejected content, so that it is logged once
	told    string // the difference that was logged last

	failure atomic.Pointer[refusal] // the reason why the file did not come into force
	differs atomic.Pointer[string]  // the message that the file is not the one in force; nil: it is
}

// refusal is the reason why a file did not come into force, or why the policy in force can't be used.
type refusal struct {
	at  time.Time
	why error
}

const (
	policyPoll = 2 * time.Second // the interval between checks of the files
	storePoll  = time.Second     // the interval between checks of the store, if other processes work on it
)

// Reasons why a policy comes into force, for the audit.
const (
	whyStart   = "start"
	whyChanged = "changed" // the file changed
	whyAsked   = "asked"   // SIGHUP
	whyLost    = "lost"    // the store's record of the policy in force was lost
)

// inForceName is the name of the policy in force in problems.
const inForceName = "policy in force"

// openPolicies reads the policy from a file.
func openPolicies(path string, tools *catalog.Catalog, log *slog.Logger) (*policies, error) {
	ps := makePolicies(path, tools, log)
	ps.reader.Path = path
	if err := ps.begin(); err != nil {
		return nil, cli.Misused("the policy can't be used:\n%w", err)
	}
	return ps, nil
}

// newPolicies puts a policy without a file into force. name is the policy's name in problems.
func newPolicies(name string, data []byte, tools *catalog.Catalog, log *slog.Logger) (*policies, error) {
	ps := makePolicies(name, tools, log)
	ps.builtin = data
	return ps, ps.begin()
}

func makePolicies(name string, tools *catalog.Catalog, log *slog.Logger) *policies {
	return &policies{
		name: name, tools: tools, log: log, process: replicaName(), wake: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		policy: watchedFile{name: "policy file"}, pins: watchedFile{name: "lock file"},
	}
}

// begin makes this process use the first policy. The policy is not stored before join is called.
func (ps *policies) begin() error {
	own := ps.read()
	if err := cmp.Or(ps.policy.fault, ps.pins.fault); err != nil {
		return err
	}
	refused, _ := ps.put(context.Background(), own, ps.name, whyStart)
	return refused
}

// enter waits until no other goroutine uses the policies.
func (ps *policies) enter(ctx context.Context) error {
	select {
	case ps.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (ps *policies) leave() { <-ps.turn }

// files returns the watched files.
func (ps *policies) files() [2]*watchedFile { return [2]*watchedFile{&ps.policy, &ps.pins} }

// read reads the files.
func (ps *policies) read() (own catalog.Content) {
	ps.policy.seen, ps.pins.seen = ps.policy.found, ps.pins.found
	ps.policy.fault = nil
	if ps.builtin != nil {
		own.Policy = catalog.Files{File: ps.builtin}
	} else {
		own.Policy, ps.policy.fault = ps.reader.Policy()
	}
	own.Pins, ps.pins.fault = ps.reader.Pins()
	ps.policy.found, ps.pins.found = own.Policy.Digest(), own.PinsDigest()
	for _, f := range ps.files() {
		if f.fault != nil {
			f.found = f.fault.Error()
		}
	}
	return own
}

// check parses a policy and checks it against the callable tools. Warnings are logged.
func (ps *policies) check(c catalog.Content, name string) (*config.File, pins.Lock, error) {
	file, lock, err := c.Parse(name)
	if err != nil {
		return nil, lock, err
	}
	known, err := ps.tools.Known(file, lock, pins.Beside(name))
	if err != nil {
		return nil, lock, err
	}
	problems := check.Run(file, known)
	for _, w := range problems.Warnings() {
		ps.log.Warn("policy: " + w.Error())
	}
	if errs := problems.Errors(); len(errs) > 0 {
		return nil, lock, errs
	}
	return file, lock, nil
}

// put makes this process use a policy and, if the process has joined the store, puts the policy into force. refused
// says why the policy can't be used, and err says why it can't be stored. In both cases, the process keeps the previous
// policy.
func (ps *policies) put(ctx context.Context, c catalog.Content, name, why string) (refused, err error) {
	file, lock, err := ps.check(c, name)
	if err != nil {
		return err, nil
	}
	before, row := ps.used, store.Policy{}
	now := usedPolicy{content: storedContent{Content: c}, file: file, lock: lock}
	if ps.workflow != nil {
		now.load = ps.workflow.Policies.NewLoad() // a new id: no decision by this policy is stored before the policy itself
	}
	if err := ps.tools.Adopt(file, lock, now.load); err != nil {
		return err, nil
	}
	row.Policy.Digest, row.Pins.Digest = c.Policy.Digest(), c.PinsDigest()
	now.content.EarlierPolicies = earlier(before.content.EarlierPolicies, ps.row.Policy.Digest, row.Policy.Digest)
	now.content.EarlierPins = earlier(before.content.EarlierPins, ps.row.Pins.Digest, row.Pins.Digest)
	if ps.workflow != nil {
		if row, err = ps.store(ctx, row, now, why); err != nil {
			return nil, errors.Join(err, ps.tools.Adopt(before.file, before.lock, before.load))
		}
	}
	ps.now(row, now)
	return nil, nil
}

// store stores a policy as the policy in force.
func (ps *policies) store(ctx context.Context, row store.Policy, p usedPolicy, why string) (store.Policy, error) {
	content, err := json.Marshal(p.content)
	if err != nil {
		return row, err
	}
	return ps.workflow.Policies.PutIntoForce(ctx, ps.row, workflow.PolicyChange{
		Load: p.load, Policy: row.Policy.Digest, Pins: row.Pins.Digest, Content: content, File: p.file.Policy.File(), By: ps.process, Why: why,
	})
}

// now records that this process uses the policy in force.
func (ps *policies) now(row store.Policy, p usedPolicy) {
	ps.row, ps.used = row, p
	ps.number.Store(row.Version)
	ps.unusable.Store(nil)
}

// earlier returns the list of earlier digests after the digest in force changed from old to now.
func earlier(before []string, old, now string) []string {
	out := slices.DeleteFunc(slices.Clone(before), func(digest string) bool { return digest == old || digest == now })
	if old != "" && old != now {
		out = append(out, old)
	}
	return out[max(0, len(out)-mostEarlier):]
}

// join compares the files with the policy and pins in force in the store. From then on, this process uses the policy
// and pins in the store.
func (ps *policies) join(ctx context.Context, wf *workflow.Workflow) (err error) {
	if err := ps.enter(ctx); err != nil {
		return err
	}
	defer ps.leave()
	ps.workflow = wf
	for range 3 { // other processes may start at the same time
		if err = ps.joinOnce(ctx); !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	ps.tell()
	return err
}

func (ps *policies) joinOnce(ctx context.Context) error {
	own := ps.read()
	row, err := ps.workflow.Policies.InForce(ctx)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return ps.replace(ctx, store.Policy{}, own)
	case err != nil:
		return err
	}
	row, stored, err := ps.load(ctx)
	if passing(err) {
		return err
	}
	if err == nil {
		ps.used.content.EarlierPolicies, ps.used.content.EarlierPins = stored.content.EarlierPolicies, stored.content.EarlierPins
	}
	take := [2]bool{
		ps.policy.comesAtStart(row.Policy.Digest, ps.shared, stored.content.EarlierPolicies),
		ps.pins.comesAtStart(row.Pins.Digest, ps.shared, stored.content.EarlierPins),
	}
	for i, f := range ps.files() {
		if !take[i] {
			f.settled = f.found
		}
	}
	switch used := ps.used.content; {
	case used.Policy.Digest() == row.Policy.Digest && used.PinsDigest() == row.Pins.Digest:
		stored.content, stored.file, stored.lock = used, ps.used.file, ps.used.lock
		ps.tools.Stored(row.Load)
		ps.now(row, stored)
	case err != nil && ps.shared:
		return cli.Misused("%w", err)
	case !ps.shared && (take[0] || take[1] || err != nil), take[0] && take[1]:
		return ps.replace(ctx, row, own)
	default:
		if err = ps.adopt(row, stored); err != nil && take[0] {
			ps.log.Warn("the policy in force can't be used here, and the newer one of this process replaces it", "error", err)
			own.Pins = stored.content.Pins
			return ps.replace(ctx, row, own)
		}
		if err != nil {
			return cli.Misused("%w", err)
		}
	}
	if take[0] || take[1] {
		_, err = ps.take(ctx, own, take, whyStart)
		return err
	}
	return nil
}

// comesAtStart reports whether a file comes into force when the process starts.
func (f *watchedFile) comesAtStart(inForce string, shared bool, before []string) bool {
	stale := shared && (f.found == "" || slices.Contains(before, f.found))
	return f.fault == nil && f.found != inForce && !stale
}

// replace puts this process's files into force when the process starts.
func (ps *policies) replace(ctx context.Context, row store.Policy, own catalog.Content) error {
	ps.row = row
	if ps.policy.fault != nil { // it was readable before
		own.Policy = ps.used.content.Policy
	}
	if ps.pins.fault != nil {
		own.Pins = ps.used.content.Pins
	}
	refused, err := ps.put(ctx, own, ps.name, whyStart)
	if refused != nil {
		return cli.Misused("the policy can't be used:\n%w", refused)
	}
	ps.policy.settled, ps.pins.settled = ps.policy.found, ps.pins.found
	return err
}

// passing reports whether an error is temporary. Such an error says nothing about the policy in force.
func passing(err error) bool {
	return store.Refused(err) || slices.ContainsFunc([]error{store.ErrCommitUnknown, store.ErrClosed, context.Canceled, context.DeadlineExceeded},
		func(target error) bool { return errors.Is(err, target) })
}

// load reads the policy and pins in force. If load returns an error, row is still set, provided that the row could be
// read.
func (ps *policies) load(ctx context.Context) (row store.Policy, p usedPolicy, err error) {
	row, content, err := ps.workflow.Policies.Content(ctx)
	if err == nil {
		err = json.Unmarshal(content, &p.content)
	}
	if err == nil && (p.content.Policy.Digest() != row.Policy.Digest || p.content.PinsDigest() != row.Pins.Digest) {
		err = errors.New("its stored content is not what was put into force")
	}
	if err != nil && !passing(err) {
		err = unusable(row, err)
	}
	p.load = row.Load
	return row, p, err
}

// adopt makes this process use the policy and pins in force.
func (ps *policies) adopt(row store.Policy, p usedPolicy) (err error) {
	if p.file, p.lock, err = ps.check(p.content.Content, inForceName); err == nil {
		err = ps.tools.Adopt(p.file, p.lock, p.load)
	}
	if err != nil {
		return unusable(row, err)
	}
	ps.now(row, p)
	return nil
}

// unusable returns the error of a process that can't use the policy in force.
func unusable(p store.Policy, why error) error {
	return fmt.Errorf("the policy in force (%s) can't be used by this process, so it decides and runs nothing: %w. Start the version of the program that loaded it, with the same environment, or load another policy", origin(p, p.Policy), why)
}

// origin describes where a part of the policy in force comes from.
func origin(p store.Policy, part store.PolicyPart) string {
	return fmt.Sprintf("change %d, loaded by %s at %s", p.Version, part.By, part.At.UTC().Format(time.RFC3339))
}

// CatchUp makes this process use the policy and pins in force in the store.
func (ps *policies) CatchUp(ctx context.Context) error {
	if err := ps.enter(ctx); err != nil {
		return err
	}
	defer ps.leave()
	return ps.catchUp(ctx)
}

func (ps *policies) catchUp(ctx context.Context) error {
	if ps.workflow == nil {
		return nil
	}
	row, err := ps.workflow.Policies.InForce(ctx)
	switch {
	case errors.Is(err, store.ErrNotFound): // the record was damaged, and set aside
		ps.row = store.Policy{}
		refused, err := ps.put(ctx, ps.used.content.Content, inForceName, whyLost)
		if errors.Is(err, store.ErrConflict) { // another process was first
			return ps.catchUp(ctx)
		}
		return errors.Join(refused, err)
	case err != nil:
		return err
	case row.Load == ps.used.load:
		return nil
	}
	if failure := ps.unusable.Load(); failure != nil && row.Load == ps.row.Load {
		return failure.why
	}
	row, stored, err := ps.load(ctx)
	if passing(err) {
		return err
	}
	before := ps.tools.Policy().File()
	if err == nil {
		err = ps.adopt(row, stored)
	}
	if err != nil {
		ps.row = row
		err = fmt.Errorf("%w: %w", store.ErrPolicyChanged, err)
		ps.unusable.Store(&refusal{at: time.Now(), why: err})
		ps.log.Error("another policy is in force, and this process can't use it; it decides and runs nothing", "change", row.Version, "by", row.Policy.By, "error", err)
		return err
	}
	ps.log.Info("another process changed the policy or the pins in force, and this process uses them", "change", row.Version,
		"policy by", row.Policy.By, "pins by", row.Pins.By, "old", before, "new", ps.tools.Policy().File())
	ps.tell()
	ps.Wake()
	return nil
}

// Usable reports whether this process can use the policy in force.
func (ps *policies) Usable() bool { return ps.unusable.Load() == nil }

// Number returns the number of the stored change that this process uses.
func (ps *policies) Number() uint64 { return ps.number.Load() }

// Differs reports for each file of this process whether it is not the one in force.
func (ps *policies) Differs() map[string]bool {
	differs := func(f *watchedFile) bool { return f.failure.Load() != nil || f.differs.Load() != nil }
	return map[string]bool{"policy": differs(&ps.policy), "pins": differs(&ps.pins)}
}

// Wake makes watch look at the store now.
func (ps *policies) Wake() {
	select {
	case ps.wake <- struct{}{}:
	default: // it will
	}
}

// Until ctx ends, watch applies changes of the files and of the policy in force. watch reports tools that differ from
// their pins, and checks the waiting requests against the new state.
func (ps *policies) watch(ctx context.Context, wf *workflow.Workflow) error {
	tick := time.NewTicker(policyPoll)
	defer tick.Stop()
	var others <-chan time.Time
	if ps.shared {
		t := time.NewTicker(storePoll)
		defer t.Stop()
		others = t.C
	}
	for behind := true; ; {
		if behind && ps.Usable() {
			err := wf.Requests.Reevaluate(ctx)
			if errors.Is(err, store.ErrCommitUnknown) {
				return err
			}
			if err != nil && ctx.Err() == nil {
				level := slog.LevelError
				if errors.Is(err, store.ErrUnavailable) { // which is an error of its own in the log
					level = slog.LevelWarn
				}
				ps.log.Log(ctx, level, "open requests could not be checked against the policy in force; this is tried again", "error", err)
			}
			behind = err != nil
		}
		ps.tools.ReportDrift()
		var changed bool
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-ps.tools.Changed():
			changed = true
		case <-ps.hangup:
			changed, err = ps.look(ctx, true)
		case <-tick.C:
			changed, err = ps.look(ctx, false)
		case <-others:
			err = ps.CatchUp(ctx)
		case <-ps.wake:
			changed, err = true, ps.CatchUp(ctx)
		}
		if errors.Is(err, store.ErrCommitUnknown) {
			return err
		}
		behind = behind || changed
	}
}

// look reads the files, and puts changed files into force if they are valid. whole means that the files are known to be
// complete. If whole is false, two checks in a row must find the same content, because the first half of a file may
// also be a valid policy. err says why the store can't be used. In that case, the files are read again soon.
func (ps *policies) look(ctx context.Context, whole bool) (changed bool, err error) {
	if err := ps.enter(ctx); err != nil {
		return false, err
	}
	defer ps.leave()
	defer ps.tell()
	own := ps.read()
	why := whyChanged
	if whole {
		why = whyAsked
	}
	for range 3 { // another process may change what is in force meanwhile
		take := [2]bool{ps.policyChanged(whole), ps.pins.changed(ps.row.Pins.Digest, whole)}
		if take[1] && ps.policy.found == ps.policy.refused && ps.policy.fault == nil {
			take[0] = true // the policy may have been refused because it lacked the new pins
		}
		if !take[0] && !take[1] {
			return false, nil
		}
		if changed, err = ps.take(ctx, own, take, why); !errors.Is(err, store.ErrConflict) {
			break
		}
		if err = ps.catchUp(ctx); err != nil {
			break
		}
	}
	if err != nil && !passing(err) {
		ps.log.Warn("a changed policy or lock file can't be put into force now; this is tried again", "error", err)
	}
	return changed, err
}

// policyChanged reports whether the policy file must be put into force. If the file is already in force, policyChanged
// records this.
func (ps *policies) policyChanged(whole bool) bool {
	failed := ps.policy.failure.Load() != nil
	changed := ps.policy.changed(ps.row.Policy.Digest, whole)
	if !changed && ps.policy.found == ps.row.Policy.Digest && (failed || whole) {
		ps.log.Info("the policy file is the one in force", "file", ps.reader.Path, "hash", ps.tools.Policy().File())
	}
	return changed
}

// changed reports whether a file must be put into force.
func (f *watchedFile) changed(inForce string, whole bool) bool {
	switch {
	case f.found == inForce, f.found == f.settled && !whole:
		f.settle()
		return false
	case whole:
		f.settled = "" // so that the file is tried again if the store is not available now
		return true
	}
	return f.found == f.seen && f.found != f.refused
}

// settle records that the file is in force, or stale.
func (f *watchedFile) settle() {
	f.settled, f.refused = f.found, ""
	f.failure.Store(nil)
}

// take puts the policy file, the lock file, or both into force. The function refuses a file that can't be used. err
// says why the change was not stored.
func (ps *policies) take(ctx context.Context, own catalog.Content, take [2]bool, why string) (changed bool, err error) {
	for i, f := range ps.files() {
		if take[i] && f.fault != nil {
			ps.refuse(f, f.fault)
			take[i] = false
		}
	}
	for take[0] || take[1] {
		c, name, before := ps.used.content.Content, inForceName, ps.used.file.Policy.File()
		if take[0] {
			c.Policy, name = own.Policy, ps.name
		}
		if take[1] {
			c.Pins = own.Pins
		}
		refused, err := ps.put(ctx, c, name, why)
		if err != nil {
			return false, err
		}
		if refused == nil {
			if take[0] {
				ps.policy.settle()
				ps.log.Info("the policy changed and is in force", "file", ps.reader.Path, "old", before, "new", ps.used.file.Policy.Hash, "change", ps.row.Version)
			}
			if take[1] {
				ps.pins.settle()
				ps.log.Info("the lock file changed, and its pins are in force", "file", pins.Beside(ps.reader.Path), "change", ps.row.Version)
			}
			return true, nil
		}
		if lock := new(catalog.LockError); take[1] && (!take[0] || errors.As(refused, &lock)) {
			ps.refuse(&ps.pins, refused)
			take[1] = false
		} else {
			ps.refuse(&ps.policy, refused)
			take[0] = false
		}
	}
	return false, nil
}

// refuse keeps the policy in force, and logs the faults of a file.
func (ps *policies) refuse(f *watchedFile, why error) {
	f.refused = f.found
	f.failure.Store(&refusal{at: time.Now(), why: why})
	if f == &ps.pins {
		ps.log.Error("the lock file changed and was refused; the previous pins stay in force", "file", pins.Beside(ps.reader.Path), "error", why)
		return
	}
	ps.log.Error("the policy file changed and was refused; the previous policy stays in force", "file", ps.reader.Path, "in force", ps.tools.Policy().File())
	for _, problem := range cli.Problems(why) {
		ps.log.Error("policy: " + problem.Error())
	}
}

// tell records which files differ from the policy and pins in force. The function logs each difference once.
func (ps *policies) tell() {
	for i, part := range []store.PolicyPart{ps.row.Policy, ps.row.Pins} {
		f := ps.files()[i]
		if f.found == part.Digest || f.found != f.settled {
			f.differs.Store(nil)
			f.told = ""
			continue
		}
		text := fmt.Sprintf("the %s of this process is not the one in force (%s), which is used. Put the same file here, or send SIGHUP to put this one into force", f.name, origin(ps.row, part))
		f.differs.Store(&text)
		if difference := f.found + " " + part.Digest; f.told != difference {
			f.told = difference
			ps.log.Warn(text, "file", f.found, "in force", part.Digest)
		}
	}
}

// become switches to another policy file. If the other file can't be used, the function returns the reason.
func (ps *policies) become(ctx context.Context, path string) error {
	if err := ps.enter(ctx); err != nil {
		return err
	}
	ps.reader.Path, ps.name, ps.builtin = path, path, nil
	ps.leave()
	if _, err := ps.look(ctx, true); err != nil {
		return err
	}
	if failure := ps.policy.failure.Load(); failure != nil {
		return failure.why
	}
	return nil
}

// state reports on /readyz whether the policy file differs from the policy in force. The bot stays ready, because it
// uses the policy in force.
func (ps *policies) state(context.Context) error {
	if failure := ps.policy.failure.Load(); failure != nil {
		problems := cli.Problems(failure.why)
		more := ""
		if n := len(problems) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		return fmt.Errorf("the file was refused at %s, and the previous policy is in force: %w%s", failure.at.UTC().Format(time.RFC3339), problems[0], more)
	}
	return ps.policy.difference()
}

// pinned reports on /readyz whether the lock file differs from the pins in force. It also reports which tools differ
// from their pins. The bot works without these tools.
func (ps *policies) pinned(ctx context.Context) error {
	if failure := ps.pins.failure.Load(); failure != nil {
		return fmt.Errorf("the lock file was refused at %s, and the previous pins stay in force: %w", failure.at.UTC().Format(time.RFC3339), failure.why)
	}
	return cmp.Or(ps.pins.difference(), ps.tools.Pinned(ctx))
}

// difference returns an error if the file is not in force.
func (f *watchedFile) difference() error {
	if text := f.differs.Load(); text != nil {
		return errors.New(*text)
	}
	return nil
}

// inForce is a check for /readyz. The process is not ready if it can't use the policy and pins in force.
func (ps *policies) inForce(context.Context) error {
	if failure := ps.unusable.Load(); failure != nil {
		return fmt.Errorf("since %s: %w", failure.at.UTC().Format(time.RFC3339), failure.why)
	}
	return nil
}
