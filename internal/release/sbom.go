package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// bill writes the software bill of materials in the JSON format of CycloneDX. The function lists every module in the
// programs and the image, with the module's licences and its hash from go.sum.
func (r *release) bill() error {
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuidOf(r.version+" "+r.commit)
	main := cyclonedx.Component{
		BOMRef: "pkg:golang/countersign@" + r.version, Type: cyclonedx.ComponentTypeApplication, Name: "countersign", Version: r.version,
		Properties: &[]cyclonedx.Property{{Name: "git:commit", Value: r.commit}},
	}
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.date.Format(time.RFC3339), Component: &main}
	var components []cyclonedx.Component
	var refs []string
	for _, l := range r.licensed {
		c := cyclonedx.Component{
			BOMRef: "pkg:golang/" + l.path + "@" + l.version, PackageURL: "pkg:golang/" + l.path + "@" + l.version,
			Type: cyclonedx.ComponentTypeLibrary, Name: l.path, Version: l.version, Scope: cyclonedx.ScopeRequired,
		}
		var licences cyclonedx.Licenses
		for _, id := range l.ids {
			licences = append(licences, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
		}
		c.Licenses = &licences
		if l.sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: l.sum}}
		}
		components, refs = append(components, c), append(refs, c.BOMRef)
	}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	f, err := os.Create(r.name("sbom.cdx.json"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return f.Close()
}

// uuidOf derives a UUID from a text, so that a release always has the same UUID.
func uuidOf(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8: custom
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
