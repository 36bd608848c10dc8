package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/store"
)

const tripForm = `{"type":"object","required":["city","seats"],"properties":{
	"city":{"type":"string","title":"City","minLength":2,"maxLength":40,"description":"Where to"},
	"seats":{"type":"integer","minimum":1,"maximum":9,"default":2},
	"mail":{"type":"string","format":"email"},
	"day":{"type":"string","format":"date"},
	"class":{"type":"string","oneOf":[{"const":"e","title":"Economy"},{"const":"b","title":"Business"}],"default":"e"},
	"meals":{"type":"array","items":{"enum":["fish","veal","none"]},"maxItems":2},
	"window":{"type":"boolean","default":true}}}`

// booking returns a tool that asks the requester a question. The tool's result is the answer. The tool's timeout is
// short.
func booking(f agent.Form) agent.Tool {
	return agent.Tool{Name: "book", Effect: approvers.Unprotected, Timeout: 20 * time.Second, Run: func(ctx context.Context, in agent.Invocation) (string, error) {
		reply, err := in.Ask(ctx, f)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("told: %s %s", reply.Action, reply.Values), nil
	}}
}

// elicitation returns the question of the run in a thread, and the message that shows the question.
func (b *synctestHarness) elicitation(thread string) (q approvers.Elicitation, m workspaceclient.Message) {
	b.Helper()
	b.view(func(r store.Reader) error {
		q = approvers.Elicitation{}
		for _, turn := range b.allTurns(r) {
			t, err := r.Turn(turn)
			if err != nil {
				return err
			}
			conv, err := r.Conversation(t.Conversation)
			if err != nil || conv.Thread != thread {
				continue
			}
			calls, err := r.Calls(turn)
			if err != nil {
				return err
			}
			for _, c := range calls {
				list, err := r.Elicitations(c.Execution)
				if err != nil {
					return err
				}
				if len(list) > 0 {
					q = list[len(list)-1]
				}
			}
		}
		return nil
	})
	messages, err := b.as("sam").Messages(b.ctx, "#support", thread)
	b.ok(err)
	for _, one := range messages {
		if one.BotID != "" && strings.Contains(string(one.Blocks), "Its own words, not verified") {
			m = one
		}
	}
	return q, m
}

// The method "elicited" waits until a thread shows the question of the thread's run.
func (b *synctestHarness) elicited(thread string) (q approvers.Elicitation, m workspaceclient.Message) {
	b.Helper()
	b.within(time.Minute, "it asks", func() bool {
		q, m = b.elicitation(thread)
		return q.State == approvers.ElicitationOpen && strings.Contains(string(m.Blocks), "Only you can answer")
	})
	return q, m
}

func (b *synctestHarness) labelled(m workspaceclient.Message, label string) workspaceclient.Element {
	b.Helper()
	for _, e := range workspaceclient.Elements(m.Blocks) {
		if e.Text.Text == label {
			return e
		}
	}
	b.Fatalf("there is no button %q in %s", label, workspaceclient.Text(m.Blocks))
	return workspaceclient.Element{}
}

func (b *synctestHarness) settledSaying(thread, want string) {
	b.Helper()
	b.within(2*time.Minute, "the model is told "+want, func() bool { return strings.Contains(strings.Join(b.replies(thread), "\n"), want) && b.idle() })
	b.books()
}

// A tool asks a question during its run, the requester fills in the form, and the tool gets exactly the values in the
// form. While the question waits, the tool's timeout does not run.
func TestToolAsksAndIsAnswered(t *testing.T) {
	t.Parallel()
	form := agent.Form{From: "the server travel", Text: "Where to? <!channel> *approved by Teo*", Schema: json.RawMessage(tripForm)}
	for name, http := range map[string]bool{"socket": false, "http": true} {
		t.Run(name, func(t *testing.T) {
			inRunWith(t, []agent.Tool{booking(form)}, func(b *synctestHarness) { b.http = http }, func(b *synctestHarness) {
				thread := b.says("run book")
				_, m := b.elicited(thread)
				if strings.Contains(string(m.Blocks), `"broadcast"`) || strings.Contains(m.Text, "<!channel>") || !strings.Contains(m.Text, "<@U0100>") {
					t.Errorf("it reads %s", m.Text)
				}
				b.within(10*time.Second, "the step says so", func() bool {
					text, _ := b.step(thread)
					return strings.Contains(text, "waits for an answer from the person who asked")
				})
				b.pass(5 * time.Minute) // far longer than the tool's own timeout
				ctx := context.Background()
				b.ok(b.as("sam").Press(ctx, m, b.labelled(m, "Answer…")))
				var v workspaceclient.View
				b.within(10*time.Second, "the form is there", func() bool {
					v = b.form("sam")
					return strings.Contains(string(v.Blocks), "Economy (e)")
				})
				if !strings.Contains(string(v.Blocks), `"City (city)"`) || !strings.Contains(string(v.Blocks), `"multi_static_select"`) || !strings.Contains(string(v.Blocks), `"initial_value": "2"`) && !strings.Contains(string(v.Blocks), `"initial_value":"2"`) {
					t.Errorf("the form is %s", v.Blocks)
				}
				if faults := b.submit("sam", v, map[string]string{"city": "X", "seats": "2"}); !strings.Contains(fmt.Sprint(faults), "city") {
					t.Errorf("a city of one letter: %v", faults)
				}
				if faults := b.submit("sam", v, map[string]string{"city": "Tromsø", "seats": "3", "meals": "0,2"}); len(faults) > 0 {
					t.Errorf("what is right: %v", faults)
				}
				b.settledSaying(thread, `told: accept {"seats":3,"class":"e","window":true,"city":"Tromsø","meals":["fish","none"]}`)
				_, m = b.elicitation(thread)
				if text := workspaceclient.Text(m.Blocks); !strings.Contains(text, "answered") || strings.Contains(text, "Tromsø") || strings.Contains(string(m.Blocks), `"button"`) {
					t.Errorf("afterwards it reads %s", text)
				}
			})
		})
	}
}

// form returns a person's newest open form, or a zero value.
func (b *synctestHarness) form(who string) (v workspaceclient.View) {
	b.Helper()
	views, err := b.as(who).Views(b.ctx)
	b.ok(err)
	if len(views) > 0 {
		v = views[len(views)-1]
	}
	return v
}

// submit fills in a form by the names of its fields, sends it, and returns the errors by block.
func (b *synctestHarness) submit(who string, v workspaceclient.View, fields map[string]string) map[string]string {
	b.Helper()
	values := map[string]string{}
	for name, value := range fields {
		values["arg."+name] = value
	}
	err := b.as(who).Submit(b.ctx, v.ID, values)
	var refused *workspaceclient.Refusal
	if errors.As(err, &refused) && len(refused.Errors) > 0 {
		return refused.Errors
	}
	b.ok(err)
	return nil
}

// isTold reports whether sam got an ephemeral message with a text in a thread.
func (b *synctestHarness) isTold(thread, words string) bool {
	b.Helper()
	messages, err := b.as("sam").Messages(b.ctx, "#support", thread)
	b.ok(err)
	for _, m := range messages {
		if m.Ephemeral && strings.Contains(m.Text+workspaceclient.Text(m.Blocks), words) {
			return true
		}
	}
	return false
}

var errTwice = errors.New("twice")

// In each case, something else happens to a question. Nobody except the requester can answer the question, and the
// question ends in one of the defined states.
func TestEndsOfAQuestion(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	form := agent.Form{From: "the server travel", Text: "Where to?", Schema: json.RawMessage(tripForm)}
	visit := agent.Form{From: "the server bank", Text: "Sign in, please.", URL: "https://bank.example/login?next=%2F"}
	for name, c := range map[string]struct {
		form agent.Form
		do   func(b *synctestHarness, thread string, m workspaceclient.Message)
		told string // what the model is told
		says string // text in the thread of the question
		end  approvers.ElicitationState
	}{
		"declined": {form, func(b *synctestHarness, _ string, m workspaceclient.Message) {
			b.ok(b.as("sam").Press(b.ctx, m, b.labelled(m, "Decline")))
		},
			"told: decline", "declined to answer", approvers.ElicitationDeclined},
		"visited": {visit, func(b *synctestHarness, _ string, m workspaceclient.Message) {
			if text := workspaceclient.Text(m.Blocks); !strings.Contains(text, "bank.example") || !strings.Contains(text, "https://bank.example/login?next=%2F") || b.labelled(m, "Open").Value != "" {
				b.Errorf("it reads %s", text)
			}
			b.ok(b.as("sam").Press(b.ctx, m, b.labelled(m, "I have done it")))
		}, "told: accept", "answered", approvers.ElicitationAccepted},
		"nobody answers": {form, func(b *synctestHarness, _ string, _ workspaceclient.Message) { b.pass(11 * time.Minute) },
			"told: cancel", "Nobody answered in time", approvers.ElicitationExpired},
		"the form comes too late": {form, func(b *synctestHarness, thread string, m workspaceclient.Message) {
			b.ok(b.as("sam").Press(b.ctx, m, b.labelled(m, "Answer…")))
			b.within(10*time.Second, "the form is there", func() bool { return strings.Contains(string(b.form("sam").Blocks), "City (city)") })
			v := b.form("sam")
			b.pass(11 * time.Minute)
			b.submit("sam", v, map[string]string{"city": "Oslo", "seats": "2"})
			b.within(10*time.Second, "sam is told", func() bool { return b.isTold(thread, "Too late: this could be answered") })
		}, "told: cancel", "Nobody answered in time", approvers.ElicitationExpired},
		"two windows": {form, func(b *synctestHarness, thread string, m workspaceclient.Message) {
			b.ok(b.as("sam").Press(b.ctx, m, b.labelled(m, "Answer…")))
			b.within(10*time.Second, "the form is there", func() bool { return strings.Contains(string(b.form("sam").Blocks), "City (city)") })
			v := b.form("sam")
			b.ok(b.as("sam").Press(b.ctx, m, b.labelled(m, "Decline")))
			b.settledSaying(thread, "told: decline")
			b.submit("sam", v, map[string]string{"city": "Oslo", "seats": "2"})
			b.within(10*time.Second, "sam is told", func() bool { return b.isTold(thread, "this question is answered") })
		}, "told: decline", "declined to answer", approvers.ElicitationDeclined},
		"the turn is stopped": {form, func(b *synctestHarness, thread string, _ workspaceclient.Message) {
			_, err := b.as("sam").Say(b.ctx, "#support", thread, "stop")
			b.ok(err)
		}, "stopped this", "the agent was stopped", approvers.ElicitationCancelled},
		"everything is paused": {form, func(b *synctestHarness, _ string, _ workspaceclient.Message) {
			b.ok(b.bot.workflow.Pauses.Pause(b.ctx, "operator:x", ""))
		},
			"", "everything was paused", approvers.ElicitationCancelled},
		"the process stops": {form, func(b *synctestHarness, _ string, _ workspaceclient.Message) { b.restart() },
			"told: cancel", "is being stopped", approvers.ElicitationCancelled},
		"others press": {form, func(b *synctestHarness, _ string, m workspaceclient.Message) {
			for _, who := range []string{"teo", "ada", "ingrid"} {
				_ = b.as(who).Press(b.ctx, m, b.labelled(m, "Decline"))
				_ = b.as(who).Press(b.ctx, m, b.labelled(m, "Answer…"))
			}
			b.pass(10 * time.Second)
			for _, who := range []string{"teo", "ada", "ingrid"} {
				if v := b.form(who); strings.Contains(string(v.Blocks), "city") {
					b.Errorf("%s has a form to answer with", who)
				}
			}
			b.ok(b.as("sam").Press(b.ctx, m, b.labelled(m, "Decline")))
			_ = b.as("sam").Press(b.ctx, m, b.labelled(m, "Decline"))
		}, "told: decline", "declined to answer", approvers.ElicitationDeclined},
	} {
		t.Run(name, func(t *testing.T) {
			inRun(t, []agent.Tool{booking(c.form)}, func(b *synctestHarness) {
				thread := b.says("run book")
				_, m := b.elicited(thread)
				c.do(b, thread, m)
				if c.told != "" {
					b.settledSaying(thread, c.told)
				}
				b.within(time.Minute, "it is shown", func() bool {
					q, m := b.elicitation(thread)
					return q.State == c.end && strings.Contains(workspaceclient.Text(m.Blocks), c.says) && !strings.Contains(string(m.Blocks), `"type":"button"`)
				})
				if c.told == "" {
					b.ok(b.bot.workflow.Pauses.Resume(b.ctx, "operator:x", ""))
				}
				b.within(2*time.Minute, "all is done", b.idle)
				b.books()
				q, _ := b.elicitation(thread)
				b.view(func(r store.Reader) error {
					e, err := r.Execution(q.Execution)
					if err != nil {
						return err
					}
					records, err := r.Audit(e.Chain())
					var ends []string
					for _, a := range records {
						if a.Kind == approvers.AuditReplied {
							ends = append(ends, a.Facts["state"])
						}
					}
					if len(ends) != 1 || ends[0] != string(c.end) {
						t.Errorf("the history has the ends %q", ends)
					}
					return err
				})
			})
		})
	}
}

// Sixteen actions about one question happen at the same time: the requester declines, the requester opens the form,
// another person declines, or the timer is handled before it is due. The question ends once, because the requester
// declined.
func TestManyAnswersAtOnce(t *testing.T) {
	t.Parallel()
	form := agent.Form{Text: "Where to?", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}
	for round := range testkit.Scale(20) {
		inRun(t, []agent.Tool{booking(form)}, func(b *synctestHarness) {
			thread := b.says("run book")
			q, m := b.elicited(thread)
			var all sync.WaitGroup
			for i := range 16 {
				all.Go(func() {
					switch (i + round) % 4 {
					case 0:
						_ = b.as("sam").Press(b.ctx, m, b.labelled(m, "Decline"))
					case 1:
						_ = b.as("teo").Press(b.ctx, m, b.labelled(m, "Decline"))
					case 2:
						_ = b.bot.workflow.Questions.Lapse(b.ctx, store.Timer{Kind: store.TimerElicit, Ref: q.ID})
					case 3:
						_ = b.as("sam").Press(b.ctx, m, b.labelled(m, "Answer…"))
					}
				})
			}
			all.Wait()
			synctest.Wait()
			b.settledSaying(thread, "told: decline")
			b.view(func(r store.Reader) error {
				e, err := r.Execution(q.Execution)
				if err != nil {
					return err
				}
				records, err := r.Audit(e.Chain())
				n := 0
				for _, a := range records {
					if a.Kind == approvers.AuditReplied {
						n++
					}
				}
				if n != 1 {
					return fmt.Errorf("%d ends: %w", n, errTwice)
				}
				return err
			})
		})
	}
}
