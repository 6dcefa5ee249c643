package reports

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"exp/experiments/ident"
	"exp/reports/compare"
)

const (
	manifestName = "manifest.json"
	// manifestKind is the prefix of every manifest's schema, for all versions.
	manifestKind   = "exp.report.manifest/"
	manifestSchema = manifestKind + "1"
)

// Manifest lists a report's inputs and files.
type Manifest struct {
	Schema   string               `json:"schema"`
	Report   string               `json:"report"` // schema of data.json
	Title    string               `json:"title"`
	Inputs   []ManifestRun        `json:"inputs"`
	Suites   []ManifestSuite      `json:"suites"`
	Contests string               `json:"contests,omitempty"` // digest of the contests file
	Vary     []string             `json:"vary"`
	Waivers  []compare.Difference `json:"waivers"`
	Excluded []compare.Excluded   `json:"excluded"`
	Builds   []string             `json:"builds"` // programs that executed the runs
	Files    []ManifestFile       `json:"files"`  // all but the manifest itself, by path
}

// ManifestRun names a run in the report. Digests are hexadecimal.
type ManifestRun struct {
	Arm      string            `json:"arm"`
	Seed     int64             `json:"seed"`
	RID      string            `json:"run"`
	XID      string            `json:"experiment"`
	Numerics string            `json:"numerics"`
	Config   string            `json:"config"`
	Chain    string            `json:"chain"`
	Code     map[string]string `json:"code"` // of each kind of stage
}

// ManifestSuite names a set of problems.
type ManifestSuite struct {
	Name     string `json:"suite"`
	Digest   string `json:"digest"`
	Protocol string `json:"protocol"`
}

// ManifestFile is a file of the report.
type ManifestFile struct {
	Path   string `json:"path"` // relative, with slashes
	Size   int    `json:"size"` // bytes
	Digest string `json:"sha256"`
}

// manifest describes the report and the files of its bundle.
func (r *Report) manifest(b Bundle) Manifest {
	s := r.source
	m := Manifest{Schema: manifestSchema, Report: dataSchema, Title: s.title, Inputs: []ManifestRun{},
		Suites: []ManifestSuite{},
		Vary:   []string{}, Waivers: []compare.Difference{}, Excluded: []compare.Excluded{}, Builds: []string{},
		Files: []ManifestFile{}}
	for a, run := range eachRun(s.arms) {
		in := ManifestRun{Arm: a.Name, Seed: run.Seed, RID: run.RID.String(), XID: run.XID.String(),
			Numerics: run.Numerics,
			Config:   run.Config.String(), Chain: run.Chain.String(), Code: map[string]string{}}
		for _, st := range run.stages {
			in.Code[st.Kind] = st.Code.String()
		}
		m.Inputs = append(m.Inputs, in)
		for _, at := range run.attempts {
			if !slices.Contains(m.Builds, at.Build) {
				m.Builds = append(m.Builds, at.Build)
			}
		}
		for _, e := range run.evals {
			suite := ManifestSuite{e.SuiteName, e.SuiteDigest.String(), e.Protocol.String()}
			if !slices.Contains(m.Suites, suite) {
				m.Suites = append(m.Suites, suite)
			}
		}
	}
	slices.Sort(m.Builds)
	if s.contests != nil {
		m.Contests = s.contests.Digest.String()
	}
	if c := s.result; c != nil {
		m.Vary = append(m.Vary, c.Comparability.Vary...)
		m.Waivers = append(m.Waivers, c.Comparability.Waived()...)
		m.Excluded = append(m.Excluded, c.Comparability.Excluded...)
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		m.Files = append(m.Files, ManifestFile{name, len(b[name]), ident.Sum(b[name]).String()})
	}
	return m
}

// encode returns v as indented JSON, with < and & unescaped to stay readable.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(v)
	return b.Bytes(), err
}
