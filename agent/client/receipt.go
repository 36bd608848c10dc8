package client

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Keys has the public keys that verify receipts, by key id.
type Keys map[string]ed25519.PublicKey

// Keys fetches the gateway's public keys.
func (c *Client) Keys(ctx context.Context) (Keys, error) {
	var set json.RawMessage
	if err := c.do(ctx, exchange{method: http.MethodGet, path: "/.well-known/jwks.json", repeatable: true}, &set); err != nil {
		return nil, err
	}
	return ParseKeys(set)
}

// ParseKeys reads a JSON Web Key Set. ParseKeys leaves out keys that can't verify receipts. If no key is left,
// ParseKeys returns an error.
func ParseKeys(set []byte) (Keys, error) {
	var parsed struct {
		Keys []struct{ Kty, Crv, X, Kid, Alg, Use string } `json:"keys"`
	}
	if err := json.Unmarshal(set, &parsed); err != nil {
		return nil, &AnswerError{"the key set is not valid JSON"}
	}
	keys := Keys{}
	for _, k := range parsed.Keys {
		if k.Kty != "OKP" || k.Crv != "Ed25519" || k.Alg != "EdDSA" || k.Use != "sig" || k.Kid == "" {
			continue
		}
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return nil, &AnswerError{fmt.Sprintf("the key %q is not an Ed25519 key", k.Kid)}
		}
		keys[k.Kid] = x
	}
	if len(keys) == 0 {
		return nil, &AnswerError{"the key set has no Ed25519 key"}
	}
	return keys, nil
}

// Receipt has the facts about an approved call, signed by a gateway. A receipt does not say whether the approval was
// already used. Only the answer to a claim says whether the approval was used.
type Receipt struct {
	Issuer     string   `json:"iss"`
	Audience   Audience `json:"aud"`
	Subject    string   `json:"sub"` // the gateway's client that requested the call
	Request    string   `json:"request"`
	Tool       string   `json:"tool"`
	Definition string   `json:"definition"`
	ArgsSHA256 string   `json:"args_sha256"`
	Expires    int64    `json:"exp"` // seconds since 1970
	NotBefore  int64    `json:"nbf"`
	ID         string   `json:"jti"` // id of the run; to act only once, a resource stores the id until Expires
}

// Audience names the intended receivers of a receipt: one name, or a list of names.
type Audience []string

// UnmarshalJSON reads one name or a list of names.
func (a *Audience) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*a = Audience{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(a))
}

// receiptType is the type in the header of a receipt. receiptType ensures that no other signed text of the gateway is
// accepted as a receipt.
const receiptType = "countersign-receipt+jwt"

// receiptLeeway is how far the resource's clock may be behind the gateway's clock.
const receiptLeeway = 30 * time.Second

// ErrReceipt means that a receipt does not allow the call.
var ErrReceipt = errors.New("the receipt is not valid")

// Verify checks a receipt: its signature, its audience and its time. Verify also checks that the receipt is for the
// given tool and exactly the given bytes of arguments.
func (k Keys) Verify(receipt, audience, tool string, args []byte, now time.Time) (Receipt, error) {
	var r Receipt
	invalid := func(why string) (Receipt, error) { return Receipt{}, fmt.Errorf("%w: %s", ErrReceipt, why) }
	parts := strings.Split(receipt, ".")
	if len(parts) != 3 {
		return invalid("it does not have three parts")
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return invalid("a part is not base64")
		}
	}
	var header struct {
		Alg  string   `json:"alg"`
		Kid  string   `json:"kid"`
		Typ  string   `json:"typ"`
		Crit []string `json:"crit"`
	}
	if json.Unmarshal(decoded[0], &header) != nil || header.Alg != "EdDSA" || len(header.Crit) > 0 {
		return invalid("it is not signed with Ed25519")
	}
	if header.Typ != receiptType {
		return invalid("it is not a receipt")
	}
	key, ok := k[header.Kid]
	if !ok {
		return invalid("its key is not known")
	}
	if !ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), decoded[2]) {
		return invalid("the signature is wrong")
	}
	if json.Unmarshal(decoded[1], &r) != nil {
		return invalid("it is not valid JSON")
	}
	switch {
	case !slices.Contains(r.Audience, audience):
		return invalid("it is for another audience")
	case r.Tool != tool:
		return invalid("it is for another tool")
	case r.ArgsSHA256 != Hash(bytes.TrimSpace(args)):
		return invalid("it is for other arguments")
	case r.Expires == 0 || !now.Before(time.Unix(r.Expires, 0)):
		return invalid("it has expired")
	case r.NotBefore != 0 && now.Add(receiptLeeway).Before(time.Unix(r.NotBefore, 0)):
		return invalid("it does not hold yet")
	}
	return r, nil
}
