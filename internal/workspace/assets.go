package workspace

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed page
var assets embed.FS

// pageHandler serves the page. Its policy lets it run only its own scripts: what bots
// and people write can't become code.
func pageHandler() http.Handler {
	root, err := fs.Sub(assets, "page")
	if err != nil {
		panic("workspace: " + err.Error()) // the name is a constant
	}
	files := http.FileServerFS(root)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data: https: http:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		files.ServeHTTP(w, r)
	})
}

// servePermalink leads a message's link to the page.
func (s *Server) servePermalink(w http.ResponseWriter, r *http.Request) {
	p := r.PathValue("p")
	if len(p) < 8 || p[0] != 'p' {
		http.NotFound(w, r)
		return
	}
	query := r.URL.Query()
	target := "/?channel=" + r.PathValue("channel") + "&ts=" + p[1:len(p)-6] + "." + p[len(p)-6:]
	if thread := query.Get("thread_ts"); thread != "" {
		if _, ok := parseTS(thread); ok {
			target += "&thread_ts=" + thread
		}
	}
	http.Redirect(w, r, target, http.StatusFound)
}
