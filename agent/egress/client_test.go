package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// local returns a client that may connect to this machine.
func local(t *testing.T, o Options) *http.Client {
	t.Helper()
	g, err := New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	c := g.Client(o)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// asked is a request that a server received.
type asked struct {
	method, body string
	header       http.Header
}

// listening starts a server that records its requests and answers with the test's handler.
func listening(t *testing.T, answer http.HandlerFunc) (*httptest.Server, *[]asked) {
	t.Helper()
	var got []asked
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, asked{r.Method, string(body), r.Header})
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s, &got
}

func to(location string, status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(status)
	}
}

func ok(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }

// Headers that may be secret are never sent to another origin. They stay removed even if a later redirect leads back to
// the first origin.
func TestSecretsStayBehind(t *testing.T) {
	var first *httptest.Server
	hops := 0
	last, lastGot := listening(t, func(w http.ResponseWriter, r *http.Request) {
		if hops++; hops == 1 {
			to(first.URL+"/back", http.StatusFound)(w, r)
			return
		}
		ok(w, r)
	})
	var firstGot *[]asked
	first, firstGot = listening(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/within":
			to("/away", http.StatusFound)(w, r)
		case "/away":
			to(last.URL, http.StatusTemporaryRedirect)(w, r)
		default:
			ok(w, r)
		}
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, first.URL+"/within?key=S3cr3t", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Idempotency-Key"} {
		req.Header.Set(name, "S3cr3t")
	}
	req.Header.Set("Accept", "application/json")
	resp, err := local(t, Options{}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(*firstGot) != 3 || len(*lastGot) != 1 {
		t.Fatalf("asked %d and %d times", len(*firstGot), len(*lastGot))
	}
	if h := (*firstGot)[1].header; h.Get("Authorization") != "S3cr3t" || h.Get("X-Api-Key") != "S3cr3t" {
		t.Errorf("a redirect within the origin lost the headers: %v", h)
	}
	for _, a := range []asked{(*lastGot)[0], (*firstGot)[2]} {
		if strings.Contains(fmt.Sprint(a.header), "S3cr3t") {
			t.Errorf("headers were sent to another origin: %v", a.header)
		}
		if a.header.Get("Accept") != "application/json" {
			t.Errorf("a value that is not a secret was removed: %v", a.header)
		}
	}
}

// A redirect never turns a request that writes into a request that reads. The body of a request is sent only to the
// original origin.
func TestRedirectsOfWrites(t *testing.T) {
	other, otherGot := listening(t, ok)
	for _, tt := range []struct {
		status   int
		location string
		want     int    // the returned status
		refused  string // beginning of the error, if the redirect is refused
		asked    int
	}{
		{status: 301, location: "/done", want: 301, asked: 1},
		{status: 302, location: "/done", want: 302, asked: 1},
		{status: 303, location: "/done", want: 303, asked: 1},
		{status: 307, location: "/done", want: 200, asked: 2},
		{status: 308, location: "/done", want: 200, asked: 2},
		{status: 307, location: other.URL, refused: `a redirect was not followed: "127.0.0.1" is another origin`, asked: 1},
		{status: 308, location: "https://public.example/", refused: `a redirect was not followed: "public.example" is another origin`, asked: 1},
		{status: 302, location: other.URL, want: 302, asked: 1},
	} {
		s, got := listening(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/done" {
				ok(w, r)
				return
			}
			to(tt.location, tt.status)(w, r)
		})
		resp, err := local(t, Options{}).Post(s.URL, "text/plain", strings.NewReader("the body"))
		var refused *Refused
		switch {
		case tt.refused != "":
			if !errors.As(err, &refused) || !refused.Redirect || !strings.HasPrefix(Sentence(err), tt.refused) {
				t.Errorf("%d to %s: %v", tt.status, tt.location, err)
			}
		case err != nil || resp.StatusCode != tt.want:
			t.Errorf("%d to %s: %v, %v", tt.status, tt.location, resp, err)
		}
		if len(*got) != tt.asked {
			t.Errorf("%d to %s: asked %d times", tt.status, tt.location, len(*got))
		}
		for _, a := range *got {
			if a.method != http.MethodPost || a.body != "the body" {
				t.Errorf("%d to %s: it became %s %q", tt.status, tt.location, a.method, a.body)
			}
		}
	}
	if len(*otherGot) != 0 {
		t.Errorf("the body went elsewhere: %v", *otherGot)
	}
}

func TestRedirectsHaveAnEnd(t *testing.T) {
	n := 0
	s, got := listening(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		to(fmt.Sprintf("/%d", n), http.StatusFound)(w, r)
	})
	err := get(local(t, Options{}), s.URL)
	var refused *Refused
	if !errors.As(err, &refused) || !refused.Redirect || len(*got) != MaxRedirects+1 {
		t.Errorf("asked %d times: %v", len(*got), err)
	}

	s, got = listening(t, to("file:///etc/passwd", http.StatusFound))
	if err := get(local(t, Options{}), s.URL); !errors.As(err, &refused) || !refused.Redirect || len(*got) != 1 {
		t.Errorf("asked %d times: %v", len(*got), err)
	}

	// A redirect from https to http is not followed, even to the same host.
	plain, plainGot := listening(t, ok)
	secure := httptest.NewTLSServer(to(plain.URL, http.StatusFound))
	defer secure.Close()
	c := local(t, Options{})
	c.Transport.(*transport).next.TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	if err := get(c, secure.URL); !errors.As(err, &refused) || !refused.Redirect || len(*plainGot) != 0 {
		t.Errorf("asked %d times: %v", len(*plainGot), err)
	}
}

func TestBoundedAnswers(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(make([]byte, 8<<20))
	z.Close()
	s, got := listening(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/header":
			w.Header().Set("X-Large", strings.Repeat("x", MaxHeader+1))
		case "/packed":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(packed.Bytes())
		case "/identity":
			w.Header().Set("Content-Encoding", "identity")
			w.Write([]byte("plain"))
		default:
			w.Write(make([]byte, 1000))
		}
	})
	for _, tt := range []struct {
		path string
		o    Options
		n    int
		want error
	}{
		{path: "/", o: Options{MaxBody: 1000}, n: 1000},
		{path: "/", o: Options{MaxBody: 999}, n: 999, want: ErrTooLarge},
		{path: "/", o: Options{MaxBody: 1}, n: 1, want: ErrTooLarge},
		{path: "/", o: Options{MaxBody: -1}, n: 1000},
		{path: "/", n: 1000},
		{path: "/packed", want: ErrPacked},
		{path: "/identity", n: 5},
	} {
		resp, err := local(t, tt.o).Get(s.URL + tt.path)
		var data []byte
		if err == nil {
			data, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if len(data) != tt.n || !errors.Is(err, tt.want) {
			t.Errorf("%s with %+v: %d bytes, %v", tt.path, tt.o, len(data), err)
		}
		if tt.want != nil {
			again, err := 0, error(nil)
			if resp != nil {
				again, err = resp.Body.Read(make([]byte, 1))
			}
			if again != 0 || resp != nil && !errors.Is(err, tt.want) {
				t.Errorf("%s: after its end %d bytes, %v", tt.path, again, err)
			}
		}
	}
	if err := get(local(t, Options{}), s.URL+"/header"); err == nil || Sentence(err) != "the response's header is too large" {
		t.Errorf("%v", err)
	}
	for _, a := range *got {
		if a.header.Get("Accept-Encoding") != "identity" { // without this header, a server may send a packed answer
			t.Errorf("did not ask for a plain answer: %v", a.header)
		}
	}

	// A body that never ends is cut off at the timeout.
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "a")
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(release)
	resp, err := local(t, Options{Timeout: 50 * time.Millisecond}).Get(slow.URL)
	if err == nil { // on a busy machine, even the header may arrive too late
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil || Sentence(err) != "there was no response in time" {
		t.Errorf("%v", err)
	}
}

func TestSentences(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(ok))
	defer secure.Close()
	secure.Config.ErrorLog = nil
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			c.Close()
		}
	}))
	defer broken.Close()
	g, err := New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	var n names
	n.set("inside.example", addrs("10.0.0.1"))
	g.resolver = n.resolver()
	c := g.Client(Options{Timeout: 5 * time.Second})
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, tt := range []struct {
		address, want string
		ctx           context.Context
	}{
		{address: secure.URL, want: "the server's certificate is not trusted"},
		{address: strings.Replace(broken.URL, "http:", "https:", 1), want: "the connection broke"},
		{address: broken.URL, want: "the connection broke"},
		{address: "http://127.0.0.1:1", want: "no connection could be made"},
		{address: "http://none.example", want: `there is no host named "none.example"`},
		{address: "http://inside.example", want: `"inside.example" resolves to 10.0.0.1, a private address, which an entry "10.0.0.1" in allow would permit`},
		{address: "http://10.0.0.1", want: `"10.0.0.1" is a private address, which an entry "10.0.0.1" in allow would permit`},
		{address: "http://user:S3cr3t@inside.example", want: `"inside.example" comes after a user name in the URL; put the credentials into a header`},
		{address: broken.URL, ctx: stopped, want: "it was stopped"},
	} {
		ctx := tt.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, tt.address+"/?key=S3cr3t", strings.NewReader("S3cr3t"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Do(req)
		if got := Sentence(err); got != tt.want {
			t.Errorf("%s: %q, want %q (%v)", tt.address, got, tt.want, err)
		}
	}
	for want, err := range map[string]error{
		"":                                    nil,
		"the connection broke":                io.ErrUnexpectedEOF,
		"the response is too large":           fmt.Errorf("reading: %w", ErrTooLarge),
		"the server does not speak TLS there": &url.Error{Err: tls.RecordHeaderError{Msg: "S3cr3t"}},
		"the response is compressed, which was not requested": &url.Error{Err: ErrPacked},
		`the name "x" could not be resolved`:                  &net.DNSError{Name: "x", Server: "S3cr3t"},
		"there was no response in time":                       context.DeadlineExceeded,
	} {
		if got := Sentence(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// The dialer connects only to TCP addresses with a port.
func TestDialsTCPOnly(t *testing.T) {
	g, err := New("0.0.0.0/0", "::/0")
	if err != nil {
		t.Fatal(err)
	}
	var refused *Refused
	for _, a := range [][2]string{{"unix", "/var/run/docker.sock"}, {"udp", "127.0.0.1:53"}, {"tcp", "nowhere"}} {
		if _, err := g.dial(t.Context(), a[0], a[1]); !errors.As(err, &refused) {
			t.Errorf("%v: %v", a, err)
		}
	}
	for _, a := range [][2]string{{"unix", "/var/run/docker.sock"}, {"tcp4", "nowhere"}, {"udp4", "93.184.215.14:53"}, {"tcp6", "[fe80::1%lo]:80"}} {
		if err := g.control(t.Context(), a[0], a[1], nil); !errors.As(err, &refused) {
			t.Errorf("%v: %v", a, err)
		}
	}
	if err := g.control(t.Context(), "tcp4", "93.184.215.14:443", nil); err != nil {
		t.Error(err)
	}
}
