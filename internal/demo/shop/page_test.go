package shop

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func get(t *testing.T, s *Shop, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

func TestThePageShowsTheShop(t *testing.T) {
	s := New(clock)
	if page := get(t, s, "/").Body.String(); !strings.Contains(page, "Nothing yet.") || !strings.Contains(page, "ORD-134") {
		t.Errorf("the fresh page lacks its hint or an order:\n%s", page)
	}
	if _, err := refund(t, s, "exec-42", "ORD-123", 4999); err != nil {
		t.Fatal(err)
	}
	if _, err := refund(t, s, "exec-42", "ORD-123", 4999); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SendEmail(t.Context(), "exec-43", EmailArgs{To: "bob@example.com", Subject: "<b>Bold</b>", Body: "<script>alert(1)</script>"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ApplyDiscount(t.Context(), "exec-44", DiscountArgs{OrderID: "ORD-123", Percent: 10, Reason: "sorry"}); err != nil {
		t.Fatal(err)
	}
	w := get(t, s, "/")
	page := w.Body.String()
	for _, want := range []string{"Refunded $49.99 for ORD-123 to Jane Doe", "exec-42", "repeated 1×", `<span class="tag warn">refunded</span>`, "&lt;b&gt;Bold", "10 % off the next order of Jane Doe", `lang="en"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "<script>alert") {
		t.Error("an e-mail's text became markup")
	}
	if again := get(t, s, "/", "If-None-Match", w.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("an unchanged page was sent again: %d", again.Code)
	}
}

func TestStateAsJSONLeavesOutStoredAnswers(t *testing.T) {
	s := New(clock)
	if _, err := s.ExportCustomerData(t.Context(), "k", ExportArgs{UserID: "USR-456"}); err != nil {
		t.Fatal(err)
	}
	w := get(t, s, "/state.json")
	var state State
	if err := json.Unmarshal(w.Body.Bytes(), &state); err != nil {
		t.Fatal(err)
	}
	if len(state.Ledger) != 1 || len(state.Orders) != 12 || state.Runs != nil {
		t.Errorf("ledger %v, %d orders, runs %v", state.Ledger, len(state.Orders), state.Runs)
	}
}

func TestOnlyReadingIsServed(t *testing.T) {
	s := New(clock)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST / is %d, want 405", w.Code)
	}
	for path, kind := range map[string]string{"/page.css": "text/css; charset=utf-8", "/page.js": "text/javascript; charset=utf-8"} {
		if w := get(t, s, path); w.Code != http.StatusOK || w.Header().Get("Content-Type") != kind {
			t.Errorf("%s: %d %s", path, w.Code, w.Header().Get("Content-Type"))
		}
	}
	if w := get(t, s, "/page/page.html"); w.Code != http.StatusNotFound {
		t.Errorf("the template itself is served: %d", w.Code)
	}
}
