package policyfile

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

	"countersign/agent/catalog"
	"countersign/agent/pins"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/config/check"
	"countersign/store"
)

// Source decides which policy and which pins this process uses. Normally, the process uses the policy and the pins in
// force in the store. A valid file that differs comes into force in three cases: the process starts, the file changes
// while the process runs, or the process gets a SIGHUP. If other processes work on the same store, a start puts only a
// file into force that was never in force before. In any other case, the process uses the policy and pins in force, and
// reports that its file differs. A file that can't be used changes nothing.
type Source struct {
	// These fields are set before Join is called.
	Tools  *catalog.Catalog // holds the policy that this process uses
	Hangup chan os.Signal   // receives a SIGHUP, which says that the files are complete; nil: no signals
	Shared bool             // other processes work on the same store

	log     *slog.Logger
	process string        // names this process in the store, as in the list of replicas
	wake    chan struct{} // makes Watch read the store immediately, because another process changed the policy in force

	unusable atomic.Pointer[refusal] // the reason why this process can't use the policy in force; nil: the process can use it
	number   atomic.Uint64           // number of the stored change that this process uses; 0: no policy is stored

	turn     chan struct{}      // guards the fields below; a channel, because its holder waits for the store
	workflow *workflow.Workflow // stores the policy; nil until the store is open
	name     string             // the policy's name in problems
	reader   catalog.Reader
	builtin  []byte       // the content of a policy that is compiled in; nil: the policy is a file
	row      store.Policy // the policy in force, as last read; before a policy is stored, only the digests are set
	used     usedPolicy
	policy   watchedFile // the policy file, with the OpenAPI files that it names
	pins     watchedFile
}

// usedPolicy is the policy that this process uses.
type usedPolicy struct {
	load    string // id of the stored change that put this policy into force; empty: no policy is stored
	content storedContent
	file    *config.File
	lock    pins.Lock
}

// storedContent is the stored form of the content of the policy in force.
type storedContent struct {
	catalog.Content
	EarlierPolicies []string `json:"earlier_policies,omitempty"` // digests that were in force before
	EarlierPins     []string `json:"earlier_pins,omitempty"`
}

// mostEarlier limits how many earlier digests are kept.
const mostEarlier = 100

// watchedFile is the state of a file, as this process last read it.
type watchedFile struct {
	name    string
	found   string // the digest that was last read, or the reason why the file can't be read
	fault   error  // the reason why the file can't be used; nil: the file can be used
	seen    string // the digest found by the previous check
	settled string // digest of the content that settle recorded; only SIGHUP puts this content into force again
	refused string // the last rejected content, so that it is logged once
	told    string // the difference that was logged last

	failure atomic.Pointer[refusal] // the reason why the file did not come into force
	differs atomic.Pointer[string]  // the message that the file differs from the content in force; nil: it does not differ
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

// The audit records one of these reasons when a policy comes into force.
const (
	whyStart   = "start"
	whyChanged = "changed" // the file changed
	whyAsked   = "asked"   // the process got a SIGHUP
	whyLost    = "lost"    // the store's record of the policy in force was lost
)

// In reported problems, inForceName is the name of the policy in force.
const inForceName = "policy in force"

// Open reads the policy from a file.
func Open(path string, tools *catalog.Catalog, log *slog.Logger) (*Source, error) {
	s := newSource(path, tools, log)
	s.reader.Path = path
	if err := s.begin(); err != nil {
		return nil, cli.Misused("the policy can't be used:\n%w", err)
	}
	return s, nil
}

// New returns a source for a policy without a file. name is the policy's name in reported problems.
func New(name string, data []byte, tools *catalog.Catalog, log *slog.Logger) (*Source, error) {
	s := newSource(name, tools, log)
	s.builtin = data
	return s, s.begin()
}

func newSource(name string, tools *catalog.Catalog, log *slog.Logger) *Source {
	return &Source{
		name: name, Tools: tools, log: log, process: cli.ProcessName(), wake: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		policy: watchedFile{name: "policy file"}, pins: watchedFile{name: "lock file"},
	}
}

// begin makes this process use the first policy. The policy is not stored before Join is called.
func (s *Source) begin() error {
	own := s.read()
	if err := cmp.Or(s.policy.fault, s.pins.fault); err != nil {
		return err
	}
	refused, _ := s.usePolicy(context.Background(), own, s.name, whyStart)
	return refused
}

// enter locks the source for the calling goroutine. If another goroutine uses the source, enter waits.
func (s *Source) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Source) leave() { <-s.turn }

// The method "files" returns the watched files.
func (s *Source) files() [2]*watchedFile { return [2]*watchedFile{&s.policy, &s.pins} }

// read reads the files.
func (s *Source) read() (own catalog.Content) {
	s.policy.seen, s.pins.seen = s.policy.found, s.pins.found
	s.policy.fault = nil
	if s.builtin != nil {
		own.Policy = catalog.Files{File: s.builtin}
	} else {
		own.Policy, s.policy.fault = s.reader.Policy()
	}
	own.Pins, s.pins.fault = s.reader.Pins()
	s.policy.found, s.pins.found = own.Policy.Digest(), own.PinsDigest()
	for _, f := range s.files() {
		if f.fault != nil {
			f.found = f.fault.Error()
		}
	}
	return own
}

// check parses a policy and checks it against the callable tools. check logs the warnings.
func (s *Source) check(c catalog.Content, name string) (*config.File, pins.Lock, error) {
	file, lock, err := c.Parse(name)
	if err != nil {
		return nil, lock, err
	}
	known, err := s.Tools.Known(file, lock, pins.Beside(name))
	if err != nil {
		return nil, lock, err
	}
	problems := check.Run(file, known)
	for _, w := range problems.Warnings() {
		s.log.Warn("policy: " + w.Error())
	}
	if errs := problems.Errors(); len(errs) > 0 {
		return nil, lock, errs
	}
	return file, lock, nil
}

// usePolicy makes this process use a policy. If the process has joined the store, usePolicy also puts the policy into
// force. The result "refused" says why the policy can't be used, and err says why the policy can't be stored. In both
// cases, the process keeps the previous policy.
func (s *Source) usePolicy(ctx context.Context, c catalog.Content, name, why string) (refused, err error) {
	file, lock, err := s.check(c, name)
	if err != nil {
		return err, nil
	}
	before, row := s.used, store.Policy{}
	now := usedPolicy{content: storedContent{Content: c}, file: file, lock: lock}
	if s.workflow != nil {
		// The new id is not in the store yet. Therefore decisions under this policy are refused until the policy is
		// stored.
		now.load = s.workflow.Policies.NewLoad()
	}
	if err := s.Tools.Adopt(file, lock, now.load); err != nil {
		return err, nil
	}
	row.Policy.Digest, row.Pins.Digest = c.Policy.Digest(), c.PinsDigest()
	now.content.EarlierPolicies = earlier(before.content.EarlierPolicies, s.row.Policy.Digest, row.Policy.Digest)
	now.content.EarlierPins = earlier(before.content.EarlierPins, s.row.Pins.Digest, row.Pins.Digest)
	if s.workflow != nil {
		if row, err = s.store(ctx, row, now, why); err != nil {
			return nil, errors.Join(err, s.Tools.Adopt(before.file, before.lock, before.load))
		}
	}
	s.setUsed(row, now)
	return nil, nil
}

func (s *Source) store(ctx context.Context, row store.Policy, p usedPolicy, why string) (store.Policy, error) {
	content, err := json.Marshal(p.content)
	if err != nil {
		return row, err
	}
	return s.workflow.Policies.PutIntoForce(ctx, s.row, workflow.PolicyChange{
		Load: p.load, Policy: row.Policy.Digest, Pins: row.Pins.Digest, Content: content, File: p.file.Policy.File(), By: s.process, Why: why,
	})
}

// setUsed records that this process uses the policy in force.
func (s *Source) setUsed(row store.Policy, p usedPolicy) {
	s.row, s.used = row, p
	s.number.Store(row.Version)
	s.unusable.Store(nil)
}

// The function "earlier" returns the new list of earlier digests, after the digest in force has changed from old to
// now.
func earlier(before []string, old, now string) []string {
	out := slices.DeleteFunc(slices.Clone(before), func(digest string) bool { return digest == old || digest == now })
	if old != "" && old != now {
		out = append(out, old)
	}
	return out[max(0, len(out)-mostEarlier):]
}

// Join compares the files with the policy and pins in force in the store, and puts files into force by the rules of
// Source. From then on, this process uses the policy and pins in force in the store.
func (s *Source) Join(ctx context.Context, wf *workflow.Workflow) (err error) {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	s.workflow = wf
	for range 3 { // other processes may start at the same time
		if err = s.joinOnce(ctx); !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	s.tell()
	return err
}

func (s *Source) joinOnce(ctx context.Context) error {
	own := s.read()
	row, err := s.workflow.Policies.InForce(ctx)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return s.replace(ctx, store.Policy{}, own)
	case err != nil:
		return err
	}
	row, stored, err := s.load(ctx)
	if passing(err) {
		return err
	}
	if err == nil {
		s.used.content.EarlierPolicies, s.used.content.EarlierPins = stored.content.EarlierPolicies, stored.content.EarlierPins
	}
	take := [2]bool{
		s.policy.comesAtStart(row.Policy.Digest, s.Shared, stored.content.EarlierPolicies),
		s.pins.comesAtStart(row.Pins.Digest, s.Shared, stored.content.EarlierPins),
	}
	for i, f := range s.files() {
		if !take[i] {
			f.settled = f.found
		}
	}
	switch used := s.used.content; {
	case used.Policy.Digest() == row.Policy.Digest && used.PinsDigest() == row.Pins.Digest:
		stored.content, stored.file, stored.lock = used, s.used.file, s.used.lock
		s.Tools.Stored(row.Load)
		s.setUsed(row, stored)
	case err != nil && s.Shared:
		return cli.Misused("%w", err)
	case !s.Shared && (take[0] || take[1] || err != nil), take[0] && take[1]:
		return s.replace(ctx, row, own)
	default:
		if err = s.adopt(row, stored); err != nil && take[0] {
			s.log.WarnContext(ctx, "the policy in force can't be used here, and the newer one of this process replaces it", "error", err)
			own.Pins = stored.content.Pins
			return s.replace(ctx, row, own)
		}
		if err != nil {
			return cli.Misused("%w", err)
		}
	}
	if take[0] || take[1] {
		_, err = s.take(ctx, own, take, whyStart)
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
func (s *Source) replace(ctx context.Context, row store.Policy, own catalog.Content) error {
	s.row = row
	if s.policy.fault != nil { // the file could be used at the start, and can't be used now
		own.Policy = s.used.content.Policy
	}
	if s.pins.fault != nil {
		own.Pins = s.used.content.Pins
	}
	refused, err := s.usePolicy(ctx, own, s.name, whyStart)
	if refused != nil {
		return cli.Misused("the policy can't be used:\n%w", refused)
	}
	s.policy.settled, s.pins.settled = s.policy.found, s.pins.found
	return err
}

// The function "passing" reports whether an error is temporary. Such an error says nothing about the policy in force.
func passing(err error) bool {
	return store.Refused(err) || slices.ContainsFunc([]error{store.ErrCommitUnknown, store.ErrClosed, context.Canceled, context.DeadlineExceeded},
		func(target error) bool { return errors.Is(err, target) })
}

// load reads the policy and pins in force. If load can read the row but not the policy in it, load sets row and returns
// an error.
func (s *Source) load(ctx context.Context) (row store.Policy, p usedPolicy, err error) {
	row, content, err := s.workflow.Policies.Content(ctx)
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
func (s *Source) adopt(row store.Policy, p usedPolicy) (err error) {
	if p.file, p.lock, err = s.check(p.content.Content, inForceName); err == nil {
		err = s.Tools.Adopt(p.file, p.lock, p.load)
	}
	if err != nil {
		return unusable(row, err)
	}
	s.setUsed(row, p)
	return nil
}

// The function "unusable" returns the error of a process that can't use the policy in force.
func unusable(p store.Policy, why error) error {
	return fmt.Errorf("the policy in force (%s) can't be used by this process, so it decides and runs nothing: %w. Start the version of the program that loaded it, with the same environment, or load another policy", origin(p, p.Policy), why)
}

// origin describes where a part of the policy in force comes from.
func origin(p store.Policy, part store.PolicyPart) string {
	return fmt.Sprintf("change %d, loaded by %s at %s", p.Version, part.By, part.At.UTC().Format(time.RFC3339))
}

// CatchUp makes this process use the policy and pins in force in the store.
func (s *Source) CatchUp(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.catchUp(ctx)
}

func (s *Source) catchUp(ctx context.Context) error {
	if s.workflow == nil {
		return nil
	}
	row, err := s.workflow.Policies.InForce(ctx)
	switch {
	case errors.Is(err, store.ErrNotFound): // the record was damaged, and set aside
		s.row = store.Policy{}
		refused, err := s.usePolicy(ctx, s.used.content.Content, inForceName, whyLost)
		if errors.Is(err, store.ErrConflict) { // another process was first
			return s.catchUp(ctx)
		}
		return errors.Join(refused, err)
	case err != nil:
		return err
	case row.Load == s.used.load:
		return nil
	}
	if failure := s.unusable.Load(); failure != nil && row.Load == s.row.Load {
		return failure.why
	}
	row, stored, err := s.load(ctx)
	if passing(err) {
		return err
	}
	before := s.Tools.Policy().File()
	if err == nil {
		err = s.adopt(row, stored)
	}
	if err != nil {
		s.row = row
		err = fmt.Errorf("%w: %w", store.ErrPolicyChanged, err)
		s.unusable.Store(&refusal{at: time.Now(), why: err})
		s.log.ErrorContext(ctx, "another policy is in force, and this process can't use it; it decides and runs nothing", "change", row.Version, "by", row.Policy.By, "error", err)
		return err
	}
	s.log.InfoContext(ctx, "another process changed the policy or the pins in force, and this process uses them", "change", row.Version,
		"policy_by", row.Policy.By, "pins_by", row.Pins.By, "old", before, "new", s.Tools.Policy().File())
	s.tell()
	s.Wake()
	return nil
}

// Usable reports whether this process can use the policy in force.
func (s *Source) Usable() bool { return s.unusable.Load() == nil }

// Number returns the number of the stored change that this process uses.
func (s *Source) Number() uint64 { return s.number.Load() }

// Differs reports for each file of this process whether the file differs from the content in force.
func (s *Source) Differs() map[string]bool {
	differs := func(f *watchedFile) bool { return f.failure.Load() != nil || f.differs.Load() != nil }
	return map[string]bool{"policy": differs(&s.policy), "pins": differs(&s.pins)}
}

// Wake makes Watch check the store immediately.
func (s *Source) Wake() {
	select {
	case s.wake <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// Watch applies changes of the files and of the policy in force, until ctx ends. Watch reports tools that differ from
// their pins, and checks the waiting requests against the new state.
func (s *Source) Watch(ctx context.Context, wf *workflow.Workflow) error {
	tick := time.NewTicker(policyPoll)
	defer tick.Stop()
	var others <-chan time.Time
	if s.Shared {
		t := time.NewTicker(storePoll)
		defer t.Stop()
		others = t.C
	}
	for behind := true; ; {
		if behind && s.Usable() {
			err := errors.Join(wf.Outbox.ReviewProblems(ctx), wf.Requests.Reevaluate(ctx))
			if errors.Is(err, store.ErrCommitUnknown) {
				return err
			}
			if err != nil && ctx.Err() == nil {
				level := slog.LevelError
				if errors.Is(err, store.ErrUnavailable) { // the log already has an error about the database
					level = slog.LevelWarn
				}
				s.log.Log(ctx, level, "open requests and problems could not be checked against the policy in force; this is tried again", "error", err)
			}
			behind = err != nil
		}
		s.Tools.ReportDrift()
		var changed bool
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-s.Tools.Changed():
			changed = true
		case <-s.Hangup:
			changed, err = s.readFiles(ctx, true)
		case <-tick.C:
			changed, err = s.readFiles(ctx, false)
		case <-others:
			err = s.CatchUp(ctx)
		case <-s.wake:
			changed, err = true, s.CatchUp(ctx)
		}
		if errors.Is(err, store.ErrCommitUnknown) {
			return err
		}
		behind = behind || changed
	}
}

// readFiles reads the files, and puts changed files into force if they are valid. If the parameter whole is true, the
// files are known to be complete. If whole is false, two checks in a row must find the same content, because the first
// half of a file may also be a valid policy. If the store can't be used, err says why, and Watch soon reads the files
// again.
func (s *Source) readFiles(ctx context.Context, whole bool) (changed bool, err error) {
	if err := s.enter(ctx); err != nil {
		return false, err
	}
	defer s.leave()
	defer s.tell()
	own := s.read()
	why := whyChanged
	if whole {
		why = whyAsked
	}
	for range 3 { // another process may change the policy in force at the same time
		take := [2]bool{s.policyChanged(whole), s.pins.changed(s.row.Pins.Digest, whole)}
		if take[1] && s.policy.found == s.policy.refused && s.policy.fault == nil {
			take[0] = true // the policy may have been refused because it lacked the new pins
		}
		if !take[0] && !take[1] {
			return false, nil
		}
		if changed, err = s.take(ctx, own, take, why); !errors.Is(err, store.ErrConflict) {
			break
		}
		if err = s.catchUp(ctx); err != nil {
			break
		}
	}
	if err != nil && !passing(err) {
		s.log.WarnContext(ctx, "a changed policy or lock file can't be put into force now; this is tried again", "error", err)
	}
	return changed, err
}

// policyChanged reports whether the policy file must be put into force. If the file is already in force, policyChanged
// records that it is in force.
func (s *Source) policyChanged(whole bool) bool {
	failed := s.policy.failure.Load() != nil
	changed := s.policy.changed(s.row.Policy.Digest, whole)
	if !changed && s.policy.found == s.row.Policy.Digest && (failed || whole) {
		s.log.Info("the policy file is the one in force", "file", s.reader.Path, "hash", s.Tools.Policy().File())
	}
	return changed
}

// The method "changed" reports whether a file must be put into force.
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

// settle records that the file is in force, or that the file is stale.
func (f *watchedFile) settle() {
	f.settled, f.refused = f.found, ""
	f.failure.Store(nil)
}

// take puts the policy file, the lock file, or both into force. take refuses a file that can't be used. err says why
// the change was not stored.
func (s *Source) take(ctx context.Context, own catalog.Content, take [2]bool, why string) (changed bool, err error) {
	for i, f := range s.files() {
		if take[i] && f.fault != nil {
			s.refuse(f, f.fault)
			take[i] = false
		}
	}
	for take[0] || take[1] {
		c, name, before := s.used.content.Content, inForceName, s.used.file.Policy.File()
		if take[0] {
			c.Policy, name = own.Policy, s.name
		}
		if take[1] {
			c.Pins = own.Pins
		}
		refused, err := s.usePolicy(ctx, c, name, why)
		if err != nil {
			return false, err
		}
		if refused == nil {
			if take[0] {
				s.policy.settle()
				s.log.InfoContext(ctx, "the policy changed and is in force", "file", s.reader.Path, "old", before, "new", s.used.file.Policy.Hash, "change", s.row.Version)
			}
			if take[1] {
				s.pins.settle()
				s.log.InfoContext(ctx, "the lock file changed, and its pins are in force", "file", pins.Beside(s.reader.Path), "change", s.row.Version)
			}
			return true, nil
		}
		if lock := new(catalog.LockError); take[1] && (!take[0] || errors.As(refused, &lock)) {
			s.refuse(&s.pins, refused)
			take[1] = false
		} else {
			s.refuse(&s.policy, refused)
			take[0] = false
		}
	}
	return false, nil
}

// refuse keeps the policy in force, and logs the faults of a file.
func (s *Source) refuse(f *watchedFile, why error) {
	f.refused = f.found
	f.failure.Store(&refusal{at: time.Now(), why: why})
	if f == &s.pins {
		s.log.Error("the lock file changed and was refused; the previous pins stay in force", "file", pins.Beside(s.reader.Path), "error", why)
		return
	}
	s.log.Error("the policy file changed and was refused; the previous policy stays in force", "file", s.reader.Path, "in_force", s.Tools.Policy().File())
	for _, problem := range cli.Problems(why) {
		s.log.Error("policy: " + problem.Error())
	}
}

// tell records which files differ from the policy and pins in force. tell logs each difference once.
func (s *Source) tell() {
	for i, part := range []store.PolicyPart{s.row.Policy, s.row.Pins} {
		f := s.files()[i]
		if f.found == part.Digest || f.found != f.settled {
			f.differs.Store(nil)
			f.told = ""
			continue
		}
		text := fmt.Sprintf("the %s of this process is not the one in force (%s), which is used. Put the same file here, or send SIGHUP to put this one into force", f.name, origin(s.row, part))
		f.differs.Store(&text)
		if difference := f.found + " " + part.Digest; f.told != difference {
			f.told = difference
			s.log.Warn(text, "file", f.found, "in_force", part.Digest)
		}
	}
}

// Become switches to another policy file. If the other file can't be used, Become returns the reason.
func (s *Source) Become(ctx context.Context, path string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.reader.Path, s.name, s.builtin = path, path, nil
	s.leave()
	if _, err := s.readFiles(ctx, true); err != nil {
		return err
	}
	if failure := s.policy.failure.Load(); failure != nil {
		return failure.why
	}
	return nil
}

// State reports on /readyz whether the policy file differs from the policy in force. The bot stays ready, because it
// uses the policy in force.
func (s *Source) State(context.Context) error {
	if failure := s.policy.failure.Load(); failure != nil {
		problems := cli.Problems(failure.why)
		more := ""
		if n := len(problems) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		return fmt.Errorf("the file was refused at %s, and the previous policy is in force: %w%s", failure.at.UTC().Format(time.RFC3339), problems[0], more)
	}
	return s.policy.difference()
}

// Pinned reports on /readyz whether the lock file differs from the pins in force. It also reports which tools differ
// from their pins. The bot works without these tools.
func (s *Source) Pinned(ctx context.Context) error {
	if failure := s.pins.failure.Load(); failure != nil {
		return fmt.Errorf("the lock file was refused at %s, and the previous pins stay in force: %w", failure.at.UTC().Format(time.RFC3339), failure.why)
	}
	return cmp.Or(s.pins.difference(), s.Tools.Pinned(ctx))
}

func (f *watchedFile) difference() error {
	if text := f.differs.Load(); text != nil {
		return errors.New(*text)
	}
	return nil
}

// InForce is a check for /readyz. The process is not ready if it can't use the policy and pins in force.
func (s *Source) InForce(context.Context) error {
	if failure := s.unusable.Load(); failure != nil {
		return fmt.Errorf("since %s: %w", failure.at.UTC().Format(time.RFC3339), failure.why)
	}
	return nil
}
