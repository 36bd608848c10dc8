package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/config"
	"countersign/config/check"
	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/shop"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspace/delivery"
	"countersign/store"
	"countersign/store/postgres"
)

// demoEnv holds the demo's services around the bot: the workspace, the model and the shop, at one address.
type demoEnv struct {
	base     string
	now      func() time.Time
	ws       *workspace.Server
	shop     *shop.Shop
	store    openstore.Store
	at       config.Store // address of the store; the names of its other files begin with at.Path
	seal     sealing
	l        net.Listener
	model    agent.Model
	listener *demoListener // nil: Socket Mode
	// gatewayAddr is the address at which the gateway accepts requests of other agents. If it is empty, the gateway
	// uses a free port.
	gatewayAddr string
}

// openDemoEnv opens the services around the bot. openDemoEnv does not serve yet.
func openDemoEnv(ctx context.Context, dir string, o demoOptions, env config.Env, now func() time.Time, log *slog.Logger) (st demoEnv, err error) {
	if st.l, err = listen("the demo", "--addr", o.addr); err != nil {
		return st, err
	}
	defer func() {
		if err != nil {
			st.l.Close()
			st.listener.close()
		}
	}()
	st.now = now
	local, base := addressesOf(st.l)
	st.base = local
	if st.at, err = demoStoreAt(dir, o.store); err != nil {
		return st, err
	}
	beside := config.AuditBeside(st.at.Path)
	if st.store, err = openDemoStore(ctx, st.at, o.store != "", beside.Heads); err != nil {
		return st, err
	}
	older, err := audit.FindOlder(ctx, openstore.Name(st.at), beside.Heads, st.store)
	if err == nil && older != nil {
		err = cli.CouldNot("%w", older)
	}
	if err != nil {
		return st, errors.Join(err, st.store.Close())
	}
	// For a database without a data directory, the key would be in a temporary directory, and a later demo could not
	// continue the history.
	if st.at.Backend != config.Postgres || o.data != "" {
		if st.seal, err = openSealing(ctx, beside, st.store, log); err != nil {
			return st, errors.Join(err, st.store.Close())
		}
	}
	if st.shop, err = shop.Open(filepath.Join(dir, "shop.json"), now); err != nil {
		return st, errors.Join(cli.CouldNot("the sample shop can't be opened: %w", err), st.store.Close())
	}
	seed := workspace.DemoSeed()
	if o.transport == string(config.HTTPMode) {
		if st.listener, err = openDemoListener(); err != nil {
			return st, errors.Join(err, st.store.Close())
		}
		seed.App.RequestURLs = st.listener.urls()
	}
	st.ws, err = workspace.New(workspace.Config{
		Seed: seed, DataFile: filepath.Join(dir, "workspace.json"), BaseURL: base, Now: now, Log: log,
		AckTimeout: o.patience, TriggerTTL: o.patience,
	})
	if err != nil {
		return st, errors.Join(cli.CouldNot("the workspace can't be opened: %w", err), st.store.Close())
	}
	st.model = agent.Model{BaseURL: env.ModelURL, Key: env.ModelKey.Reveal(), Name: env.Model}
	if !env.HasModel() {
		st.model = agent.Model{BaseURL: st.base + "/v1", Key: "demo", Name: scriptedmodel.DefaultModel}
	}
	return st, nil
}

// demoStoreAt returns the location of the demo's store: the given address, or else a file in the data directory.
func demoStoreAt(dir, address string) (config.Store, error) {
	if address == "" {
		return config.Store{Backend: config.Bolt, Path: filepath.Join(dir, "countersign.db")}, nil
	}
	at, _, err := config.ReadStore("--store", address)
	if err != nil {
		return at, cli.Misused("the demo's store can't be used:\n%w", err)
	}
	if at.Backend == config.Postgres {
		at.Path = filepath.Join(dir, at.Path)
	}
	return at, nil
}

// openDemoStore opens the demo's store, or creates the store if it does not exist. If the user chose the store, the
// store must be empty or belong to a demo. openDemoStore then marks the store as a demo's store. Later demos and the
// command serve check this mark.
func openDemoStore(ctx context.Context, at config.Store, chosen bool, heads string) (openstore.Store, error) {
	var db openstore.Store
	var err error
	if at.Backend == config.Postgres {
		db, err = openDemoDatabase(ctx, at)
	} else if err = audit.MayCreate(at.Path, heads); err == nil {
		db, err = openstore.Opened(openstore.File(at.Path))
	}
	if err != nil || !chosen {
		return db, err
	}
	err = mayBeDemo(ctx, at, db)
	if err == nil {
		err = db.Update(ctx, func(tx store.Tx) error {
			if _, err := tx.Setting(store.SettingDemo); !errors.Is(err, store.ErrNotFound) {
				return err
			}
			return tx.PutSetting(store.Setting{Key: store.SettingDemo, Value: []byte("true")})
		})
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// openDemoDatabase opens a database and takes its exclusive lock. If the database belongs to a bot, openDemoDatabase
// returns an error before it takes the lock, so that it does not disturb the bot.
func openDemoDatabase(ctx context.Context, at config.Store) (openstore.Store, error) {
	db, err := postgres.Open(ctx, at.URL.Reveal(), postgres.Options{Create: true})
	if err != nil {
		return nil, openstore.DatabaseError(err)
	}
	if err := mayBeDemo(ctx, at, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := db.Hold(ctx, false); err != nil {
		return nil, errors.Join(openstore.DatabaseError(err), db.Close())
	}
	return db, nil
}

// mayBeDemo returns an error if a store has rows, and no demo has marked the store as its own.
func mayBeDemo(ctx context.Context, at config.Store, db store.Store) error {
	if is, err := isDemo(ctx, db); err != nil || is {
		return err
	}
	errUsed := errors.New("the store has rows")
	err := db.(store.Contents).EachRow(ctx, func(store.Row) error { return errUsed })
	if errors.Is(err, errUsed) {
		return cli.Misused("%s is in use, and not by a demo with --store, so the demo does not write into it: name an empty database, another schema with search_path in the address, or a new file", at)
	}
	return err
}

// isDemo reports whether a demo has marked a store as its own.
func isDemo(ctx context.Context, db store.Store) (is bool, err error) {
	err = db.View(ctx, func(r store.Reader) error {
		_, err := r.Setting(store.SettingDemo)
		is = err == nil
		return store.IgnoreNotFound(err)
	})
	return is, err
}

// shopServer is the name of the sample shop as an MCP server.
const shopServer = "shop"

// shopPath is the path of the shop's tools at the demo's address.
const shopPath = "/shop/mcp"

// shopCatalog configures a catalog with the tools of the sample shop. The catalog reaches these tools like the tools of
// any MCP server.
func shopCatalog(s *shop.Shop, url string) catalog.Config {
	server := config.Server{
		Name: shopServer, URL: url, Bare: true, Allow: []string{"127.0.0.0/8", "::1/128"}, Timeout: 30 * time.Second, MaxResult: 1 << 20,
		Effects: map[string]approvers.Effect{},
	}
	var known []check.Tool
	for _, t := range s.Tools() {
		server.Effects[t.Name] = effects[t.Effect]
		known = append(known, check.Tool{Name: t.Name, Schema: t.Schema, Source: shopServer})
	}
	return catalog.Config{Own: []config.Server{server}, OwnTools: known, Version: version()}
}

// effects maps the effects in the sample shop's code to the effects in package approvers.
var effects = map[string]approvers.Effect{
	shop.EffectRead:        approvers.ReadOnly,
	shop.EffectIdempotent:  approvers.Idempotent,
	shop.EffectUnprotected: approvers.Unprotected,
}

func (st demoEnv) close() error {
	st.l.Close()
	st.listener.close()
	return errors.Join(st.ws.Close(), st.store.Close())
}

// serveAround serves the demo's services while fn runs.
func (st demoEnv) serveAround(ctx context.Context, fn func(context.Context) error) error {
	mux := http.NewServeMux()
	mux.Handle("/v1/", scriptedmodel.New(scriptedmodel.Config{Now: st.now}))
	mux.Handle("/shop/", http.StripPrefix("/shop", st.shop.Handler()))
	mux.Handle("/", st.ws.Handler())
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { return serveHTTP(serving, st.l, mux) })
	err := fn(ctx)
	err = errors.Join(err, st.ws.Close())
	stop()
	return errors.Join(err, g.Wait())
}

// demoListener holds the address at which the demo's bot receives the workspace's HTTP requests. A restarted bot uses
// the same address.
type demoListener struct {
	addr  string
	first net.Listener // nil after its first use
}

func openDemoListener() (*demoListener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, cli.CouldNot("the demo's bot can't listen for the workspace's requests: %w", err)
	}
	return &demoListener{addr: l.Addr().String(), first: l}, nil
}

func (d *demoListener) listen() (net.Listener, error) {
	if l := d.first; l != nil {
		d.first = nil
		return l, nil
	}
	return net.Listen("tcp", d.addr)
}

func (d *demoListener) close() {
	if d != nil && d.first != nil {
		d.first.Close()
	}
}

// The method "urls" returns the bot's URLs for the workspace.
func (d *demoListener) urls() delivery.RequestURLs {
	return delivery.URLsAt("http://" + d.addr + "/slack/")
}
