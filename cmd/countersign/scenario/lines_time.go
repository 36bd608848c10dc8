package scenario

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// interruptionLines has the lines that stop the bot during a run of a tool.
var interruptionLines = []line{
	{"The bot will stop while TOOL runs · The bot will stop while TOOL runs, after it acted", regexp.MustCompile(`^The bot will stop while ([\w.-]+) runs(, after it acted)?$`), func(m []string) (action, error) {
		return happens(func(_ context.Context, p *player) error {
			p.demo.StopDuring(m[1], m[2] != "")
			return nil
		})
	}},
}

var itIs = regexp.MustCompile(`^It is (.+)$`)

const span = `(\d+) (second|minute|hour|day)s?`

// worldLines has the lines about events that no person causes.
var worldLines = []line{
	{"12 minutes pass", regexp.MustCompile(`^` + span + ` pass(?:es)?$`), func(m []string) (action, error) {
		return happens(func(ctx context.Context, p *player) error { return p.pass(ctx, p.demo.Now().Add(lasting(m[1], m[2]))) })
	}},
	{"It is Monday 2026-12-21 09:00 Europe/Berlin", itIs, func(m []string) (action, error) {
		t, err := readTime(m[1])
		if err != nil {
			return action{}, err
		}
		return happens(func(ctx context.Context, p *player) error {
			if now := p.demo.Now(); t.Before(now) {
				return fmt.Errorf("time does not go back: it is %s already", now.In(t.Location()).Format(timeForm))
			}
			return p.pass(ctx, t)
		})
	}},
	{"The bot restarts", regexp.MustCompile(`^The bot restarts$`), func([]string) (action, error) {
		return happens(func(ctx context.Context, p *player) error { return p.demo.Restart(ctx, 0) })
	}},
	{"The bot is down for 2 hours", regexp.MustCompile(`^The bot is down for ` + span + `$`), func(m []string) (action, error) {
		return happens(func(ctx context.Context, p *player) error { return p.demo.Restart(ctx, lasting(m[1], m[2])) })
	}},
	{"NAME pauses notifications for 2 hours", regexp.MustCompile(`^(\w+) pauses notifications for ` + span + `$`), func(m []string) (action, error) {
		return happens(func(ctx context.Context, p *player) error {
			return p.as(m[1]).Snooze(ctx, p.demo.Now().Add(lasting(m[2], m[3])))
		})
	}},
	{"The policy becomes FILE", regexp.MustCompile(`^The policy becomes (\S+)$`), func(m []string) (action, error) {
		return happens(func(ctx context.Context, p *player) error { return p.reload(ctx, m[1]) })
	}},
}

func happens(play func(context.Context, *player) error) (action, error) {
	return action{where: nowhere, play: play}, nil
}

func lasting(n, unit string) time.Duration {
	count, _ := strconv.Atoi(n) // n has only digits
	return time.Duration(count) * map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}[unit]
}

// timeForm is the format of a time in a scenario. The name of the time zone follows the time.
const timeForm = "Monday 2006-01-02 15:04"

// readTime reads a time such as "Friday 2026-12-25 09:00 Europe/Berlin".
func readTime(text string) (time.Time, error) {
	wrong := fmt.Errorf("%q is not a time such as %q", text, "Friday 2026-12-25 09:00 Europe/Berlin")
	cut := strings.LastIndexByte(text, ' ')
	if cut < 0 {
		return time.Time{}, wrong
	}
	zone, err := time.LoadLocation(text[cut+1:])
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", wrong, err)
	}
	t, err := time.ParseInLocation(timeForm, text[:cut], zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", wrong, err)
	}
	if day := t.Weekday().String(); !strings.HasPrefix(text, day) {
		return time.Time{}, fmt.Errorf("that day is a %s", day)
	}
	return t, nil
}

// maxSteps limits how many timers may become due one after the other while time passes.
const maxSteps = 1000

// pass lets time pass. Timers that fall due in this time are handled at their due time.
func (p *player) pass(ctx context.Context, until time.Time) error {
	for range maxSteps {
		if err := p.settle(ctx); err != nil {
			return err
		}
		due, err := p.demo.NextDue(ctx)
		if err != nil {
			return err
		}
		if due.IsZero() || due.After(until) {
			p.demo.Advance(until)
			return nil
		}
		p.demo.Advance(due)
	}
	return fmt.Errorf("more than %d things fell due meanwhile", maxSteps)
}

// reload puts another policy file into force. If the file is refused, the transcript has the reasons.
func (p *player) reload(ctx context.Context, file string) error {
	problems, err := p.demo.Reload(ctx, p.script.pathOf(file))
	for _, problem := range problems {
		p.aside("the policy is refused: " + strings.TrimPrefix(problem.Error(), p.script.pathOf("")+"/"))
	}
	return err
}
