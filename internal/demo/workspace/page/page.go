// Package page is the workspace's web page for people: HTML, CSS and ES modules, served as they are.
//
//   - main.js creates the panes of the page. app.js reads the workspace's state. events.js tells app.js which parts of
//     the state have changed.
//   - panes are the parts of the page: the strip of people, the sidebar, a channel, a thread, a modal.
//   - blockkit draws blocks and their elements. The files mrkdwn.js and markdown.js parse text, without a DOM.
//   - widgets are elements that several panes use. Only widgets/dom.js makes elements. The script never parses HTML.
package page

import (
	"embed"
	"net/http"
)

//go:embed index.html favicon.svg *.js blockkit panes widgets style
var files embed.FS

// Handler serves the page. The page's Content-Security-Policy allows only the page's own scripts, so text from bots and
// people cannot become code.
func Handler() http.Handler {
	server := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data: https: http:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		server.ServeHTTP(w, r)
	})
}
