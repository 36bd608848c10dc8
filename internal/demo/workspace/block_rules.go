package workspace

import (
	"fmt"
	"strings"
)

func (c *checker) section(at string, b object) {
	text, fields := b["text"], b["fields"]
	if text == nil && fields == nil {
		c.report(at, "missing required field: text")
	}
	if text != nil {
		c.textObject(at+"/text", text, maxSectionText)
	}
	if fields != nil {
		for i, f := range c.list(at+"/fields", fields, 1, maxSectionFields) {
			c.textObject(fmt.Sprintf("%s/fields/%d", at, i), f, maxFieldText)
		}
	}
	if accessory := b["accessory"]; accessory != nil {
		c.element(at+"/accessory", accessory, inSection)
	}
}

func (c *checker) contextBlock(at string, b object) {
	for i, item := range c.list(at+"/elements", b["elements"], 1, maxContextElements) {
		pointer := fmt.Sprintf("%s/elements/%d", at, i)
		element, _ := item.(object)
		switch element["type"] {
		case "image":
			c.image(pointer, element)
		case "plain_text", "mrkdwn":
			c.textObject(pointer, element, maxSectionText)
		default:
			c.report(pointer, "unsupported type: %v", element["type"])
		}
	}
}

func (c *checker) actionsBlock(at string, b object) {
	for i, e := range c.list(at+"/elements", b["elements"], 1, maxActionElements) {
		c.element(fmt.Sprintf("%s/elements/%d", at, i), e, inActions)
	}
}

func (c *checker) inputBlock(at string, b object) {
	c.plain(at+"/label", b["label"], maxLabel, true)
	c.plain(at+"/hint", b["hint"], maxLabel, false)
	c.element(at+"/element", b["element"], inInput)
}

func (c *checker) imageBlock(at string, b object) {
	c.image(at, b)
	c.plain(at+"/title", b["title"], maxAltText, false)
}

// image checks what image blocks and image elements share.
func (c *checker) image(at string, o object) {
	if o["image_url"] == nil && o["slack_file"] == nil {
		c.report(at, "missing required field: image_url")
	}
	c.str(at+"/image_url", o["image_url"], maxURL, false)
	c.str(at+"/alt_text", o["alt_text"], maxAltText, true)
}

// header checks a heading, whose level is that of HTML's h1 to h4.
func (c *checker) header(at string, b object) {
	c.plain(at+"/text", b["text"], maxHeaderText, true)
	if n, ok := wholeNumber(b["level"]); b["level"] != nil && (!ok || n < 1 || n > 4) {
		c.report(at+"/level", "must be from 1 to 4")
	}
}

func (c *checker) video(at string, b object) {
	c.str(at+"/alt_text", b["alt_text"], maxVideoText, true)
	c.plain(at+"/title", b["title"], maxVideoText, true)
	c.plain(at+"/description", b["description"], maxVideoText, false)
	c.str(at+"/author_name", b["author_name"], maxVideoName, false)
	c.str(at+"/provider_name", b["provider_name"], maxVideoName, false)
	for _, name := range []string{"video_url", "thumbnail_url", "title_url", "provider_icon_url"} {
		link := c.str(at+"/"+name, b[name], maxURL, name == "video_url" || name == "thumbnail_url")
		if link != "" && !strings.HasPrefix(link, "https://") && (name == "video_url" || name == "title_url") {
			c.report(at+"/"+name, "must be an HTTPS URL")
		}
	}
}
