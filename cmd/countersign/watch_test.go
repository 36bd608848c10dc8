package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
)

// patience is the time limit for one step of a test. A step takes this time only if it fails.
const patience = testkit.Patience

// watcher is a person at the page who waits for messages.
type watcher struct {
	*testing.T
	workspaceclient.Client
}

func (w watcher) wait(what string, done func(context.Context) (bool, error)) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	if err := w.Await(ctx, what, func() (bool, error) { return done(ctx) }); err != nil {
		w.Fatalf("%s: %v", w.User, err)
	}
}

// The method "says" writes a message and returns its ts.
func (w watcher) says(channel, thread, text string) string {
	w.Helper()
	ts, err := w.Say(w.Context(), channel, thread, text)
	if err != nil {
		w.Fatal(err)
	}
	return ts
}

// The method "sees" waits for a message of the bot that contains all the words.
func (w watcher) sees(channel, thread string, words ...string) workspaceclient.Message {
	w.Helper()
	var found workspaceclient.Message
	w.wait("a message with "+strings.Join(words, " and "), func(ctx context.Context) (bool, error) {
		messages, err := w.Messages(ctx, channel, thread)
		for _, m := range messages {
			if m.BotID != "" && hasAll(m.Text, words) {
				found = m
				return true, nil
			}
		}
		return false, err
	})
	return found
}

func hasAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// The method "clicks" waits for a button on a message with the given words, and clicks it until the click is
// acknowledged.
func (w watcher) clicks(channel, thread, label string, words ...string) {
	w.Helper()
	w.wait(label+" on a message with "+strings.Join(words, " and "), func(ctx context.Context) (bool, error) {
		messages, err := w.Messages(ctx, channel, thread)
		if err != nil {
			return false, err
		}
		for _, m := range messages {
			if e, ok := workspaceclient.Button(m.Blocks, label); ok && hasAll(m.Text, words) {
				err := w.Press(ctx, m, e)
				return err == nil, nil
			}
		}
		return false, nil
	})
}

// The method "fills" waits for the form that a click opens. It fills in one field and sends the form.
func (w watcher) fills(field, value string) {
	w.Helper()
	w.wait("a form with the field "+field, func(ctx context.Context) (bool, error) {
		views, err := w.Views(ctx)
		if err != nil || len(views) == 0 || views[len(views)-1].Submit == nil {
			return false, err
		}
		form := views[len(views)-1]
		input, ok := workspaceclient.Input(form.Blocks, field)
		if !ok {
			return false, fmt.Errorf("the form has no field %s", field)
		}
		return true, w.Submit(ctx, form.ID, map[string]string{input.BlockID: value})
	})
}
