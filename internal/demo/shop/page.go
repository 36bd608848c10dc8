package shop

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed page
var pageFiles embed.FS

var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"money": func(a Amount, currency string) string { return a.In(currency) },
	"when":  func(t time.Time) string { return t.UTC().Format("2 Jan 15:04") },
	"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"words": func(s string) string { return strings.ReplaceAll(s, "_", " ") },
}).ParseFS(pageFiles, "page/page.html"))

// Handler serves the shop's page at its root, state.json, and the tools for MCP clients at mcp. The page's links are
// relative, so mount the handler with http.StripPrefix under a path that ends with a slash.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.servePage)
	mux.HandleFunc("GET /state.json", s.serveState)
	mux.HandleFunc("GET /page.css", serveFile("page/page.css", "text/css; charset=utf-8"))
	mux.Handle("/mcp", s.mcpHandler())
	mux.HandleFunc("GET /page.js", serveFile("page/page.js", "text/javascript; charset=utf-8"))
	return mux
}

func (s *Shop) servePage(w http.ResponseWriter, r *http.Request) {
	state := s.State()
	tag := `"` + strconv.Itoa(state.Revision) + `"`
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, shelves(state, s.now())); err != nil {
		http.Error(w, "The page could not be drawn.", http.StatusInternalServerError)
		return
	}
	head(w, "text/html; charset=utf-8")
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(page.Bytes()) // an error means that the client has disconnected
}

// serveState serves the state without the stored answers of earlier calls. The stored answers may contain personal data
// that was erased later.
func (s *Shop) serveState(w http.ResponseWriter, _ *http.Request) {
	state := s.State()
	data, err := json.MarshalIndent(struct {
		State
		Runs *struct{} `json:"runs,omitempty"`
	}{State: state}, "", "  ")
	if err != nil {
		http.Error(w, "The state could not be written.", http.StatusInternalServerError)
		return
	}
	head(w, "application/json")
	_, _ = w.Write(append(data, '\n')) // an error means that the client has disconnected
}

func serveFile(name, kind string) http.HandlerFunc {
	data, err := pageFiles.ReadFile(name)
	if err != nil {
		panic("shop: " + err.Error()) // the files are embedded, so this cannot happen
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		head(w, kind)
		_, _ = w.Write(data) // an error means that the client has disconnected
	}
}

func head(w http.ResponseWriter, kind string) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	// The browser must not run any of the page's texts as code, because the texts come from customers or a model.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'")
}

// shelf is the data of the page.
type shelf struct {
	Revision int
	At       time.Time
	Orders   []orderRow
	Accounts []accountRow
	Emails   []Email
	Vouchers []voucherRow
	Ledger   []Entry
	Repeats  int
}

type orderRow struct {
	Order
	Name, Payment, Tone string
}

type accountRow struct {
	Customer
	Orders int
}

type voucherRow struct {
	Discount
	Name string
}

func shelves(state State, now time.Time) shelf {
	page := shelf{Revision: state.Revision, At: now, Emails: state.Emails, Ledger: state.Ledger}
	counts := map[string]int{}
	for _, o := range state.Orders {
		counts[o.Customer]++
		row := orderRow{Order: o, Name: state.customer(o.Customer).Name}
		row.Payment, row.Tone = paymentStatus(o)
		page.Orders = append(page.Orders, row)
	}
	for _, c := range state.Customers {
		page.Accounts = append(page.Accounts, accountRow{Customer: c, Orders: counts[c.ID]})
	}
	for _, d := range state.Discounts {
		if d.Voucher {
			page.Vouchers = append(page.Vouchers, voucherRow{Discount: d, Name: state.customer(d.Customer).Name})
		}
	}
	for _, e := range state.Ledger {
		page.Repeats += e.Repeats
	}
	slices.Reverse(page.Emails)
	slices.Reverse(page.Ledger)
	slices.Reverse(page.Vouchers)
	return page
}

// paymentStatus returns a text about the payment of an order, and the CSS class for this text.
func paymentStatus(o Order) (text, tone string) {
	switch {
	case o.Progress == CalledOff:
		return "nothing due", "quiet"
	case o.Refunded > 0 && o.Refundable() == 0:
		return "refunded", "warn"
	case o.Refunded > 0:
		return o.Refunded.In(o.Currency) + " refunded", "warn"
	case o.Due() > 0:
		return o.Due().In(o.Currency) + " due", "alert"
	}
	return "paid", "good"
}
