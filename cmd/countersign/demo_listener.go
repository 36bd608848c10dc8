package main

import (
	"net"

	"countersign/cmd/countersign/cli"
	"countersign/internal/demo/workspace/delivery"
)

// demoListener is the demo bot's address for the workspace's HTTP requests. A restarted bot uses the same address.
type demoListener struct {
	addr  string
	first net.Listener // until it is first used
}

func openDemoListener() (*demoListener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, cli.CouldNot("the demo's bot can't listen for the workspace's requests: %w", err)
	}
	return &demoListener{addr: l.Addr().String(), first: l}, nil
}

func (d *demoListener) listen() (net.Listener, error) {
	if l := d.first; l != nil {
		d.first = nil
		return l, nil
	}
	return net.Listen("tcp", d.addr)
}

func (d *demoListener) close() {
	if d != nil && d.first != nil {
		d.first.Close()
	}
}

// urls returns the bot's URLs for the workspace.
func (d *demoListener) urls() delivery.RequestURLs {
	return delivery.URLsAt("http://" + d.addr + "/slack/")
}
