package bolt

import (
	"encoding/base64"
	stdjson "encoding/json"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// encoding and decoding are how records become JSON. nil and empty stay apart, because hashes are made over what is read back.
var (
	encoding = json.JoinOptions(
		json.FormatNilSliceAsNull(true),
		json.FormatNilMapAsNull(true),
		jsontext.AllowInvalidUTF8(true),
		json.WithMarshalers(json.JoinMarshalers(
			json.MarshalToFunc(encodeTime),
			json.MarshalToFunc(encodeRaw),
		)),
	)
	decoding = json.JoinOptions(
		jsontext.AllowInvalidUTF8(true),
		json.WithUnmarshalers(json.UnmarshalFromFunc(decodeRaw)),
	)
)

// encode appends a record as JSON.
func encode(b []byte, record any) ([]byte, error) {
	js, err := json.Marshal(record, encoding)
	if err != nil {
		return nil, fmt.Errorf("store: encode %T: %w", record, err)
	}
	return append(b, js...), nil
}

// decode reads a record from JSON. The record shares no memory with b.
func decode(b []byte, record any) error {
	if err := json.Unmarshal(b, record, decoding); err != nil {
		return fmt.Errorf("store: decode %T: %w", record, err)
	}
	return nil
}

// encodeTime writes a time as every backend can store it: in UTC, to the microsecond.
func encodeTime(e *jsontext.Encoder, t time.Time) error {
	t = t.UTC().Truncate(time.Microsecond)
	if y := t.Year(); y < 0 || y > 9999 {
		return fmt.Errorf("the year %d can't be stored", y)
	}
	b := make([]byte, 0, len(time.RFC3339Nano)+2)
	b = append(b, '"')
	b = t.AppendFormat(b, time.RFC3339Nano)
	return e.WriteValue(append(b, '"'))
}

// encodeRaw keeps raw JSON byte for byte: written as JSON it would lose its white space, and with it its digest.
func encodeRaw(e *jsontext.Encoder, raw stdjson.RawMessage) error {
	if raw == nil {
		return e.WriteToken(jsontext.Null)
	}
	return e.WriteToken(jsontext.String(base64.StdEncoding.EncodeToString(raw)))
}

func decodeRaw(d *jsontext.Decoder, raw *stdjson.RawMessage) error {
	tok, err := d.ReadToken()
	if err != nil {
		return err
	}
	if tok.Kind() == 'n' {
		*raw = nil
		return nil
	}
	*raw, err = base64.StdEncoding.DecodeString(tok.String())
	return err
}
