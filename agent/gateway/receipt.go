package gateway

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/config"
	"countersign/store"
)

// ReceiptKey signs receipts.
type ReceiptKey struct{ private ed25519.PrivateKey }

// NewReceiptKey returns a new random key.
func NewReceiptKey() ReceiptKey {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return ReceiptKey{private}
}

// Public returns the public key.
func (k ReceiptKey) Public() []byte {
	public, _ := k.private.Public().(ed25519.PublicKey) // an Ed25519 key always has this type
	return public
}

// ID returns the key's id, which receipts contain. The id is computed from the public key.
func (k ReceiptKey) ID() string {
	sum := sha256.Sum256(k.Public())
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// ErrKeyFile means that the key file can't be used.
var ErrKeyFile = errors.New("the key file for receipts can't be used")

// keyFilePrefix begins the only line of a key file. The seed of the key follows in base64.
const keyFilePrefix = "countersign-receipt-key:"

// OpenReceiptKey reads the key in a file. If there is no file, OpenReceiptKey creates a key and the file. Only the
// owner of the file may have access to the file.
func OpenReceiptKey(path string) (ReceiptKey, error) {
	k := NewReceiptKey()
	line := keyFilePrefix + base64.StdEncoding.EncodeToString(k.private.Seed()) + "\n"
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		_, err = f.WriteString(line)
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			return k, errors.Join(fmt.Errorf("%w: %s: %w", ErrKeyFile, path, err), os.Remove(path))
		}
		return k, nil
	case !errors.Is(err, fs.ErrExist):
		return k, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return k, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	if config.Exposed(info) {
		return k, fmt.Errorf("%w: %s can be read by others than its owner (chmod 600 corrects that)", ErrKeyFile, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return k, fmt.Errorf("%w: %w", ErrKeyFile, err)
	}
	encoded, ok := strings.CutPrefix(strings.TrimSpace(string(text)), keyFilePrefix)
	seed, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(seed) != ed25519.SeedSize {
		return k, fmt.Errorf("%w: %s does not contain a key. Put a copy in its place, or remove it: then a new key is made, and receipts that are signed with the old one can still be verified", ErrKeyFile, path)
	}
	return ReceiptKey{ed25519.NewKeyFromSeed(seed)}, nil
}

// ReceiptType is the typ in the header of a receipt. The type distinguishes receipts from other JWTs.
const ReceiptType = "countersign-receipt+jwt"

// issuer is the iss of a receipt.
const issuer = "countersign"

// ReceiptClaims has the private claims of a receipt. A receipt also has registered claims: iss is "countersign", aud
// is the client's audience, and sub is the client's name. jti is the execution's id, and exp is the time until which
// the run may begin.
type ReceiptClaims struct {
	Request    string `json:"request"`
	Tool       string `json:"tool"`
	Definition string `json:"definition"`
	ArgsHash   string `json:"args_sha256"`
}

// receipt returns the receipt of an approved call. For the same state and key, the receipt is the same.
func (g *Gateway) receipt(c view.CallerRequest, s state) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: g.Key.private},
		(&jose.SignerOptions{}).WithType(ReceiptType).WithHeader(jose.HeaderKey("kid"), g.Key.ID()))
	if err != nil {
		return "", fmt.Errorf("receipt: %w", err)
	}
	e, name := c.Execution, c.Conversation.Caller.Caller.Name
	audience := name
	if client, ok := c.Policy.Client(name); ok {
		audience = client.Audience
	}
	decided, until := e.CreatedAt, s.RunBefore
	if c.Request != nil {
		decided, until = c.Request.ClosedAt, c.Request.RunBy
	} else if e.State == approvers.ExecutionExecuting {
		until = e.StartedAt // the run began at this time, so no run may begin later
	}
	token, err := jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: issuer, Subject: name, Audience: jwt.Audience{audience}, ID: e.ID, IssuedAt: jwt.NewNumericDate(decided),
		NotBefore: jwt.NewNumericDate(decided), Expiry: jwt.NewNumericDate(until),
	}).Claims(ReceiptClaims{Request: s.ID, Tool: e.Tool, Definition: e.ToolHash, ArgsHash: s.ArgsHash}).Serialize()
	if err != nil {
		return "", fmt.Errorf("receipt: %w", err)
	}
	return token, nil
}

// keys serves the public keys of all replicas as a JWK Set.
func (g *Gateway) keys(w http.ResponseWriter, r *http.Request) error {
	known, err := g.Views.ReceiptKeys(r.Context())
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	// If the stored keys were damaged, the key of this process is added.
	if !slices.ContainsFunc(known, func(k settings.ReceiptKey) bool { return k.ID == g.Key.ID() }) {
		if err := g.Callers.PublishReceiptKey(r.Context(), g.Key.ID(), g.Key.Public()); err != nil {
			return err
		}
		if known, err = g.Views.ReceiptKeys(r.Context()); err != nil {
			return err
		}
	}
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range known {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: ed25519.PublicKey(k.Public), KeyID: k.ID, Algorithm: string(jose.EdDSA), Use: "sig"})
	}
	body, err := json.Marshal(set)
	if err != nil {
		return fmt.Errorf("keys of receipts: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=60")
	_, err = w.Write(body)
	return sent(err)
}
