package doctor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"countersign/agent/egress"
	"countersign/agent/gateway"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/config"
)

// gateway checks the gateway's address, and the token, the issuer and the webhook of each client of the policy.
func (d *Doctor) gateway(ctx context.Context, env config.Env, policy *approvers.Policy) {
	if policy == nil || env.GatewayAddr == "" && len(policy.Clients) == 0 {
		return
	}
	d.begin("Gateway")
	switch {
	case env.GatewayAddr == "":
		d.warn(fmt.Sprintf("the policy names %s, and nothing listens for them", cli.Count(len(policy.Clients), "client")), "set COUNTERSIGN_GATEWAY_ADDR, such as 127.0.0.1:8090")
	case len(policy.Clients) == 0:
		d.warn(env.GatewayAddr+" is open, and the policy names no client, so every request is refused", "countersign client add makes a token, and prints the lines for the policy; or unset COUNTERSIGN_GATEWAY_ADDR")
	case !onThisMachine(env.GatewayAddr):
		d.warn(env.GatewayAddr+" can be reached from other machines without TLS, so tokens can be read on the way", "listen at 127.0.0.1, behind a proxy with TLS")
	default:
		d.ok("%s can ask at %s", cli.Count(len(policy.Clients), "client"), env.GatewayAddr)
	}
	for _, c := range policy.Clients {
		if guessable(c) {
			d.fail(cli.ExitNo, "the token of the client "+c.Name+" can be guessed", "countersign client add "+c.Name+" makes a random one")
		}
		if c.OAuth != nil {
			d.issuer(ctx, env, c)
		}
		if c.Webhook != nil {
			d.webhook(ctx, c)
		}
	}
}

// onThisMachine reports whether a listener's address can be reached only from this machine.
func onThisMachine(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || host == "localhost"
}

// guessable reports whether a client's token is a common word or a name of the client, alone or with a common addition.
// guessable compares hashes, because the policy has only the hash of the token.
func guessable(c approvers.Client) bool {
	words := []string{
		"", "test", "token", "secret", "password", "changeme", "change-me", "admin", "countersign", "example", "123456", "12345678", "letmein", "hunter2",
		c.Name, c.Title, c.Owner,
	}
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.ContainsFunc([]string{word, "cs_" + word, word + "\n", word + "1", word + "-token", word + "-secret"}, func(guess string) bool {
			sum := sha256.Sum256([]byte(guess))
			return hex.EncodeToString(sum[:]) == c.Token
		})
	})
}

// issuer checks whether a client's access tokens can be verified.
func (d *Doctor) issuer(ctx context.Context, env config.Env, c approvers.Client) {
	if env.GatewayURL == "" {
		d.fail(cli.ExitNo, "access tokens of the client "+c.Name+" are refused, because the gateway has no public address", "set COUNTERSIGN_GATEWAY_URL to the address for which the issuer makes tokens")
	}
	if err := gateway.CheckIssuer(ctx, *c.OAuth); err != nil {
		d.fail(cli.ExitNo, fmt.Sprintf("the keys of %s, the issuer of %s, can't be read: %v", c.OAuth.Issuer, c.Name, err), "correct issuer or allow in the policy, or see whether the issuer works")
		return
	}
	d.ok("the keys of %s, the issuer of %s, can be read", c.OAuth.Issuer, c.Name)
}

// reachWithin limits the time for a connection to a webhook's receiver.
const reachWithin = 5 * time.Second

// webhook checks whether a client's webhook can be called. webhook connects to the receiver, but sends no message.
func (d *Doctor) webhook(ctx context.Context, c approvers.Client) {
	name := "the webhook of " + c.Name
	err := gateway.CheckWebhook(*c.Webhook, config.Lookup)
	if err == nil {
		err = reach(ctx, *c.Webhook)
	}
	var refused *egress.Refused
	switch {
	case errors.As(err, &refused):
		d.fail(cli.ExitNo, name+" is refused: "+refused.Error(), "correct its url in the policy, or add to its allow")
	case err != nil:
		d.fail(cli.ExitNo, name+" can't be called: "+err.Error(), "correct the cause; until then, its messages wait for at most three days")
	default:
		d.ok("%s can be reached", name)
	}
}

// reach connects to a webhook's receiver.
func reach(ctx context.Context, hook approvers.Webhook) error {
	guard, err := egress.New(hook.Allow...)
	if err != nil {
		return err
	}
	u, err := url.Parse(hook.URL)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	if err := guard.Reach(ctx, u); err != nil {
		if refused := (*egress.Refused)(nil); errors.As(err, &refused) {
			return refused
		}
		return errors.New(egress.Sentence(err))
	}
	return nil
}
