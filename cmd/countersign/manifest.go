package main

import (
	"io"
	"net/url"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/bot"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/config"
)

// manifestOptions are the flags of countersign manifest.
type manifestOptions struct {
	transport, url, name, format, policy string
	tokenRotation                        bool
}

func manifestCommand() *cobra.Command {
	var o manifestOptions
	var file string
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "Prints the app's manifest, to create or update the app in Slack",
		Long: `Prints the Slack app manifest: the permissions that the bot needs and no others, the events that it receives, and
where Slack's requests go. Create an app from it at https://api.slack.com/apps?new_app=1, From a manifest; to
update an existing app, paste it into the app's page App Manifest. docs/install.md describes each step.

With --transport http it needs the public address at which Slack reaches the bot.`,
		Example: `  countersign manifest
  countersign manifest --transport http --url https://bot.example.com --format yaml`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := o.text()
			if err != nil {
				return err
			}
			return task.ToFile(cmd, file, func(w io.Writer) error {
				_, err := w.Write(text)
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.transport, "transport", string(config.SocketMode), "how Slack's events come in: socket or http")
	f.StringVar(&o.url, "url", "", "with --transport http: the bot's public address, such as https://bot.example.com")
	f.StringVar(&o.name, "name", "Countersign", "what the app is called in Slack")
	f.StringVar(&o.policy, "policy", "", "a policy file; people are offered its prompts in direct messages")
	cli.PathFlags(f, "policy")
	f.BoolVar(&o.tokenRotation, "token-rotation", false, "for an app whose tokens expire; Slack does not allow to switch this off again")
	f.StringVar(&o.format, "format", "json", "json or yaml")
	cli.FileFlag(cmd, &file)
	return cmd
}

func (o manifestOptions) text() ([]byte, error) {
	if o.format != "json" && o.format != "yaml" {
		return nil, cli.Misused("--format %s is not known; write json or yaml", o.format)
	}
	switch config.Transport(o.transport) {
	case config.SocketMode:
		if o.url != "" {
			return nil, cli.Misused("--url goes with --transport http: over a socket Slack needs no address of the bot")
		}
	case config.HTTPMode:
		if err := publicAddress(o.url); err != nil {
			return nil, err
		}
	default:
		return nil, cli.Misused("--transport %s is not known; write socket or http", o.transport)
	}
	prompts, err := o.prompts()
	if err != nil {
		return nil, err
	}
	text, err := bot.Manifest(bot.ManifestOptions{Name: o.name, URL: o.url, Prompts: prompts, TokenRotation: o.tokenRotation})
	if err != nil {
		return nil, cli.Misused("%w; write another --name", err)
	}
	if o.format == "yaml" {
		return yaml.JSONToYAML(text)
	}
	return text, nil
}

// The method "prompts" returns the suggested prompts of the agent for direct messages.
func (o manifestOptions) prompts() ([]approvers.Prompt, error) {
	if o.policy == "" {
		return nil, nil
	}
	file, err := config.ReadPolicy(o.policy)
	if err != nil {
		return nil, cli.Misused("%s can't be used; countersign check says more:\n%w", o.policy, err)
	}
	agent, ok := file.Policy.AgentFor(approvers.ChannelRef{DM: true})
	if !ok {
		return nil, nil
	}
	return agent.Prompts, nil
}

// publicAddress returns an error if Slack can't send requests to the address.
func publicAddress(address string) error {
	const hint = "write the address at which Slack reaches the bot, such as --url https://bot.example.com"
	if address == "" {
		return cli.Misused("with --transport http Slack has to know the bot's public address: %s", hint)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return cli.Misused("--url is not an address that paths can be added to: %s", hint)
	}
	if u.Scheme != "https" {
		return cli.Misused("--url does not begin with https://: Slack sends its requests only to such addresses; %s", hint)
	}
	return nil
}
