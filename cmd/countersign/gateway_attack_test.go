package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/internal/testkit"
)

// rpc sends an MCP message without a client library.
func (c caller) rpc(version, method, name, params string) gatewayReply {
	c.Helper()
	header := []string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", version}
	if version == "2026-07-28" {
		header = append(header, "Mcp-Method", method, "Mcp-Name", name)
		meta := fmt.Sprintf(`{%q:%q,%q:{"name":"thief","version":"1"},%q:{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`,
			mcp.MetaKeyProtocolVersion, version, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities)
		params = strings.TrimSuffix(params, "}") + `,"_meta":` + meta + "}"
	}
	return c.do(http.MethodPost, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params), header...)
}

// foreign has the ways in which a client can name a request. Each function names the request with the given id.
var foreign = foreignWays()

func foreignWays() map[string]func(c caller, id string) gatewayReply {
	ways := map[string]func(c caller, id string) gatewayReply{
		"read": func(c caller, id string) gatewayReply { return c.do(http.MethodGet, "/v1/requests/"+id, "") },
		"wait": func(c caller, id string) gatewayReply { return c.do(http.MethodGet, "/v1/requests/"+id+"?wait=1", "") },
		"stream": func(c caller, id string) gatewayReply {
			return c.do(http.MethodGet, "/v1/requests/"+id, "", "Accept", "text/event-stream")
		},
		"claim": func(c caller, id string) gatewayReply {
			return c.do(http.MethodPost, "/v1/requests/"+id+"/claim", `{"args_sha256":"`+tokenHash(lowArgs)+`"}`)
		},
		"outcome": func(c caller, id string) gatewayReply {
			return c.do(http.MethodPost, "/v1/requests/"+id+"/outcome", `{"status":"succeeded","text":"done"}`)
		},
		"withdraw": func(c caller, id string) gatewayReply {
			return c.do(http.MethodPost, "/v1/requests/"+id+"/withdraw", `{"reason":"no"}`)
		},
		"answer": func(c caller, id string) gatewayReply {
			return c.do(http.MethodPost, "/v1/requests/"+id+"/answer", `{"question":0,"text":"yes"}`)
		},
	}
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		for tool, more := range map[string]string{"result": "", "withdraw": "", "answer": `,"question":0,"text":"yes"`} {
			ways[version+" countersign."+tool] = func(c caller, id string) gatewayReply {
				return c.rpc(version, "tools/call", "countersign."+tool, fmt.Sprintf(`{"name":"countersign.%s","arguments":{"request":%q%s}}`, tool, id, more))
			}
		}
		for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/result", "tasks/update"} {
			ways[version+" "+method] = func(c caller, id string) gatewayReply {
				return c.rpc(version, method, id, fmt.Sprintf(`{"taskId":%q,"inputResponses":{}}`, id))
			}
		}
	}
	ways["2026-07-28 subscriptions/listen"] = func(c caller, id string) gatewayReply {
		return c.rpc("2026-07-28", "subscriptions/listen", "", fmt.Sprintf(`{"notifications":{"taskIds":[%q]}}`, id))
	}
	return ways
}

const lowArgs = `{"query":"ORD-123"}`

// A client that knows the ids of another client's requests can't read or change these requests, in any state and over any
// way. Each answer is the same as the answer about an id that does not exist, so a client can't find out whether a request
// exists.
func TestGatewayForeignRequests(t *testing.T) {
	t.Parallel()
	_, _, ci := openGateway(t)
	other := ci
	other.token = otherToken
	decide := func(key string) string {
		return ci.wants(ci.ask(key, `{"tool":"search_orders","args":`+lowArgs+`}`), http.StatusOK, "approved").text("id")
	}
	own := map[string]string{
		"pending":          ci.wants(ci.ask("a", refund+`}`), http.StatusAccepted, "pending").text("id"),
		"pending, execute": ci.wants(ci.ask("b", strings.Replace(strings.Replace(refund, "decide", "execute", 1), "49.99", "9.99", 1)+`}`), http.StatusAccepted, "pending").text("id"),
		"approved":         decide("c"),
		"running":          decide("d"),
		"succeeded":        ci.wants(ci.ask("e", `{"mode":"execute","tool":"search_orders","args":`+lowArgs+`,"wait":55}`), http.StatusOK, "succeeded").text("id"),
	}
	ci.wants(foreign["claim"](ci, own["running"]), http.StatusOK, "running")
	before := map[string]string{}
	for name, id := range own {
		before[name] = foreign["read"](ci, id).Original
	}
	ways := append([]string{"read"}, slices.Sorted(maps.Keys(foreign))...) // some ways would wait if the attempt succeeded
	for name, id := range own {
		for _, way := range ways {
			none := id[:len(id)-4] + "0000"
			got, want := foreign[way](other, id), foreign[way](other, none)
			said := strings.ReplaceAll(got.Original, id, none)
			if got.Status != want.Status || said != want.Original || fmt.Sprint(got.Header["Etag"]) != fmt.Sprint(want.Header["Etag"]) {
				t.Fatalf("%s of a request that is %s: %d %s, but for an id that does not exist: %d %s", way, name, got.Status, got.Original, want.Status, want.Original)
			}
			if refused := got.Status >= 400 || strings.Contains(got.Original, `"isError":true`) || strings.Contains(got.Original, `"error":{`) || strings.Contains(got.Original, `"notifications":{}`); !refused {
				t.Fatalf("%s of a request that is %s: %d %s", way, name, got.Status, got.Original)
			}
		}
	}
	for name, id := range own {
		if after := foreign["read"](ci, id).Original; after != before[name] {
			t.Errorf("the request that was %s: %s, and before: %s", name, after, before[name])
		}
	}
	t.Logf("%d attempts, 0 accepted", len(own)*len(foreign))
	// The owner can use these ways. So the attempts fail because of the client, and not because of their form.
	id := own["pending, execute"]
	for _, c := range [][2]string{
		{"2025-11-25 tasks/get", `"status":"working"`}, {"2026-07-28 tasks/get", `"status":"working"`}, {"2026-07-28 tasks/update", `"resultType":"complete"`},
		{"2025-11-25 countersign.answer", "There is no such question"}, {"2026-07-28 countersign.withdraw", "The call is withdrawn"}, {"2025-11-25 tasks/cancel", `"status":"cancelled"`},
		{"2026-07-28 tasks/cancel", `"resultType":"complete"`}, {"2025-06-18 countersign.result", "The call was withdrawn"}, {"2025-11-25 tasks/result", "The call was withdrawn"},
		{"2026-07-28 subscriptions/listen", `"status":"cancelled"`},
	} {
		if r := foreign[c[0]](ci, id); !strings.Contains(r.Original, c[1]) {
			t.Errorf("%s of the owner: %d %s, want %s", c[0], r.Status, r.Original, c[1])
		}
	}
}

// The gateway refuses a body that is too long, at each address that reads a body.
func TestGatewayHugeBodies(t *testing.T) {
	t.Parallel()
	_, _, ci := openGateway(t)
	id := ci.wants(ci.ask("a", refund+`}`), http.StatusAccepted, "pending").text("id")
	long := strings.Repeat("x", 1<<20)
	for path, body := range map[string]string{
		"/v1/requests":                     strings.Replace(refund, "broken", long, 1) + "}",
		"/v1/requests/" + id + "/claim":    `{"args_sha256":"` + long + `"}`,
		"/v1/requests/" + id + "/outcome":  `{"status":"succeeded","text":"` + long + `"}`,
		"/v1/requests/" + id + "/withdraw": `{"reason":"` + long + `"}`,
		"/v1/requests/" + id + "/answer":   `{"question":0,"text":"` + long + `"}`,
		"/mcp":                             `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_orders","arguments":{"query":"` + long + `"}}}`,
	} {
		r := ci.do(http.MethodPost, path, body, "Idempotency-Key", "k", "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-06-18")
		ci.wants(r, http.StatusRequestEntityTooLarge, "too_large")
	}
	ci.wants(foreign["read"](ci, id), http.StatusOK, "pending")
}

// In the oldest version of MCP, a client may make a call twice in one batch. Each of the two gets an answer, although the
// first answer is sent only together with the second one.
func TestMCPBatchRepeatsACall(t *testing.T) {
	t.Parallel()
	_, _, ci := openGateway(t)
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"search_orders","arguments":` + lowArgs + `}}`
	var messages []string
	for i := range 20 {
		messages = append(messages, fmt.Sprintf(call, i))
	}
	r := ci.do(http.MethodPost, "/mcp", "["+strings.Join(messages, ",")+"]", "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-03-26")
	if n := strings.Count(r.Original, "approved-executed"); n != len(messages) {
		t.Errorf("%d calls of the batch were answered: %s", n, r.Original)
	}
}

// A client has as many waiting requests as its cap allows, and sends further calls over 32 connections as fast as it
// gets answers. Each of these calls is refused, and the gateway slows the client. Meanwhile, the calls of another client
// are stored, and get their cards.
func TestGatewayFlood(t *testing.T) {
	t.Parallel()
	const calmToken, calls = "cs_the-token-of-calm", 5
	const burst, rate = 1000, 200 // of package gateway
	refused := testkit.Size(t, "COUNTERSIGN_FLOOD", 2000)
	p, _, ci := openGateway(t, func(policy string) string {
		return policy + fmt.Sprintf("  calm: {token: \"sha256:%s\", agent: support, owner: U0100, tools: [issue_refund]}\n", tokenHash(calmToken))
	})
	teo, calm := p.watcher("teo"), ci
	calm.token = calmToken
	refundOf := func(cents int) string {
		return strings.Replace(refund, "49.99", fmt.Sprintf("%d.%02d", cents/100, cents%100), 1) + "}"
	}
	// takes returns how long the calls of the calm client take, until each one has its card.
	takes := func(from int) (answer, card time.Duration) {
		t.Helper()
		for i := range calls {
			cents, began := from+i, time.Now()
			calm.wants(calm.ask(fmt.Sprint("calm-", cents), refundOf(cents)), http.StatusAccepted, "pending")
			answer = max(answer, time.Since(began))
			teo.sees("countersign", "", fmt.Sprintf("Refund of $%d.%02d ", cents/100, cents%100))
			card = max(card, time.Since(began))
		}
		return answer, card
	}
	alone, aloneCard := takes(100)
	for i := range 6 { // the cap of the client ci
		ci.wants(ci.ask(fmt.Sprint("cap-", i), refundOf(1000+i)), http.StatusAccepted, "pending")
	}
	began := time.Now()
	var flood sync.WaitGroup
	var sent atomic.Int64
	over := make(chan struct{})
	for range 32 {
		flood.Go(func() {
			for {
				n := sent.Add(1)
				if n > int64(refused) {
					select {
					case <-over:
						return
					default: // the flood goes on until the calm client is done
					}
				}
				r, err := ci.send(http.MethodPost, "/v1/requests", refundOf(2000+int(n)), "Idempotency-Key", fmt.Sprint("flood-", n))
				if err != nil || r.Status != http.StatusTooManyRequests || r.problem() != "too_many_pending" {
					t.Errorf("a call of the flood: %d %s (%v)", r.Status, r.Original, err)
					return
				}
			}
		})
	}
	answer, card := takes(200)
	close(over)
	flood.Wait()
	took := time.Since(began)
	t.Logf("%d calls were refused in %s; the slowest of %d calls of another client was answered after %s (without the flood: %s), and had its card after %s (%s)",
		sent.Load()-32, took.Round(time.Millisecond), calls, answer, alone, card, aloneCard)
	if most := burst + int64(rate*took.Seconds()) + 32; sent.Load()-32 > most {
		t.Errorf("the gateway answered %d calls of the flood in %s, want at most %d", sent.Load()-32, took, most)
	}
}
