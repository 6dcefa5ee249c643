package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/harness/device"
	"exp/harness/selftest"
)

// doctor executes the command and returns its findings by section/name.
func doctor(t *testing.T, env map[string]string, args ...string) (ended, map[string]finding) {
	t.Helper()
	if env["HOME"] == "" {
		env["HOME"] = t.TempDir()
	}
	e := call{env: env}.run(append([]string{"doctor", "--json"}, args...)...)
	var got struct {
		Schema string
		Data   diagnosis
	}
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || got.Schema != "exp.doctor/1" {
		t.Fatalf("schema %q, %v\n%s\n%s", got.Schema, err, e.stdout, e.stderr)
	}
	found := map[string]finding{}
	for _, f := range got.Data.Findings {
		found[f.Section+"/"+f.Name] = f
	}
	return e, found
}

// A machine that runs these tests is fit, and looking at it makes no store.
func TestDoctor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "below", "store")
	e, found := doctor(t, map[string]string{}, "--store", dir)
	for name, f := range found {
		if f.Health == failing || f.Text == "" || f.Health == warning && f.Help == "" {
			t.Errorf("%s: %s: %q, help %q", name, f.Health, f.Text, f.Help)
		}
	}
	if e.code != 0 {
		t.Errorf("exit code %d\n%s", e.code, e.stderr)
	}
	for name, text := range map[string]string{
		"machine/kernels": " chosen; ", "machine/bf16": "bf16", "build/version": "exp ",
		"store/place": "exp run would create " + dir, "store/writing": "allowed", "GPU/devices": "",
		"configuration/environment": "no EXP_ variables", "determinism/sampler": "bit for bit",
		"determinism/same bits": "portable on 1", "determinism/digest": "cpu/fma",
		"determinism/bf16 digest": "cpu/bf16", "speed/measured": "GFLOP/s",
	} {
		if f, ok := found[name]; !ok || !strings.Contains(f.Text, text) {
			t.Errorf("%s: %q, want %q in it", name, f.Text, text)
		}
	}
	if n := len(found["determinism/same bits"].Value.([]any)); n < 2*len(device.OfThisMachine().Levels) {
		t.Errorf("%d trainings, want every one of %d levels on several threads", n, len(device.OfThisMachine().Levels))
	}
	if _, err := os.Stat(filepath.Dir(dir)); err == nil {
		t.Error("a folder was made")
	}
}

func TestDoctorFinds(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "store")
	smoke(t, whole, "--until", "prepare").succeeds(t)
	before := contents(t, whole)
	_, found := doctor(t, map[string]string{}, "--store", whole, "--quick")
	if found["store/schema"].Health != healthy || len(found) == 0 {
		t.Errorf("a good store: %+v", found["store/schema"])
	}
	if f := integrity(t, whole); f.Health != healthy {
		t.Errorf("a good store: %+v", f)
	}
	if after := contents(t, whole); after != before {
		t.Errorf("the store was changed:\n%s\nto\n%s", before, after)
	}
	user := writeFile(t, "config.yaml", "compute:\n  threads: many\n")
	for _, tt := range []struct {
		name   string
		damage func(dir string)
		env    map[string]string
		code   int
		where  string
		want   string
	}{
		{"not a database", func(dir string) {
			bend(t, filepath.Join(dir, "exp.db"), func([]byte) []byte { return []byte(strings.Repeat("text ", 999)) })
		}, nil, 4, "store/schema", "damaged or not a store"},
		{"newer", func(dir string) { newerStore(t, dir) }, nil, 7, "store/schema", "written by a newer exp"},
		{"EXP_CPU", nil, map[string]string{"EXP_CPU": "avx1024"}, 2, "configuration/EXP_CPU",
			`unknown cpu level "avx1024"`},
		{"EXP_THREADS", nil, map[string]string{"EXP_THREADS": "-1"}, 2, "configuration/EXP_THREADS",
			`"-1" is not a number of threads`},
		{"user file", nil, map[string]string{"EXP_CONFIG": user}, 2, "configuration/user file",
			user + ":2:12: error[E111]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if tt.damage != nil {
				tt.damage(dir)
			}
			if tt.env == nil {
				tt.env = map[string]string{}
			}
			e, found := doctor(t, tt.env, "--store", dir, "--quick")
			f := found[tt.where]
			if e.code != tt.code || f.Health != failing || !strings.Contains(f.Text, tt.want) || f.Help == "" {
				t.Errorf("exit code %d, want %d; %s: %+v", e.code, tt.code, tt.where, f)
			}
			if !strings.Contains(e.stderr, tt.where) {
				t.Errorf("stderr does not name %s:\n%s", tt.where, e.stderr)
			}
		})
	}
}

// A page that opening a store does not read is damage all the same, and all doctors
// but the quick one read it.
func TestDoctorReadsEveryPage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	smoke(t, dir, "--until", "prepare").succeeds(t)
	page := rootPage(t, dir, "artifacts_stage")
	bend(t, filepath.Join(dir, "exp.db"), func(b []byte) []byte {
		copy(b[page:], bytes.Repeat([]byte{0xa5}, 4096))
		return b
	})
	if f := integrity(t, dir); f.Health != failing || f.Code != 4 || !strings.Contains(f.Text, "damaged") ||
		f.Help == "" {
		t.Errorf("%+v", f)
	}
}

// integrity returns the finding of the check that reads a whole store. It runs alone: the
// other checks take seconds.
func integrity(t *testing.T, dir string) finding {
	t.Helper()
	d := &diagnosis{section: "store"}
	list := func(a *app) []*cli.Command {
		return []*cli.Command{{Name: "x", Action: func(c *cli.Context) error {
			a.checkStore(c.Context, d, false)
			return nil
		}}}
	}
	call{list: list}.run("x", "--store", dir).succeeds(t)
	return d.Findings[len(d.Findings)-1]
}

// rootPage returns where the first page of an index lies in a store's database.
func rootPage(t *testing.T, dir, index string) int {
	t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(dir, "exp.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var page, size int
	if err := errors.Join(db.QueryRow("SELECT rootpage FROM sqlite_master WHERE name = ?", index).Scan(&page),
		db.QueryRow("PRAGMA page_size").Scan(&size)); err != nil {
		t.Fatal(err)
	}
	return (page - 1) * size
}

// Doctor shows which kernels EXP_CPU chooses, and that there are better ones.
func TestDoctorShowsTheLevel(t *testing.T) {
	levels := device.OfThisMachine().Levels
	e, found := doctor(t, map[string]string{"EXP_CPU": "portable"}, "--quick", "--store", t.TempDir())
	if f := found["machine/kernels"]; e.code != 0 || !strings.Contains(f.Text, "portable chosen by EXP_CPU") {
		t.Errorf("exit code %d, machine/kernels: %q", e.code, f.Text)
	}
	if f := found["configuration/EXP_CPU"]; len(levels) > 1 && f.Health != warning {
		t.Errorf("configuration/EXP_CPU: %+v, want a warning", f)
	}
}

func TestDoctorJudges(t *testing.T) {
	const good = "bc7a86efa34e3e5b8253260e7c2e8ce29d836f52db7914352379e819ae5f9a1c"
	other := strings.Repeat("0123456789abcdef", 4)
	for _, tt := range []struct {
		name     string
		digests  []string
		numerics string
		want     string // health of the last finding, and a part of its text
	}{
		{"as expected", []string{good, good}, "cpu/fma",
			"ok bc7a86efa34e3e5b, as on every machine of the class cpu/fma"},
		{"agree on other bits", []string{other, other}, "cpu/fma",
			"fail 0123456789abcdef, but every machine of the class cpu/fma gives bc7a86efa34e3e5b"},
		{"unknown class", []string{other, other}, "cpu/fma/gofma-arm64",
			"warning 0123456789abcdef; none is known for the class cpu/fma/gofma-arm64"},
		{"disagree", []string{good, other, good}, "cpu/fma",
			"fail the same training gave different bits: bc7a86ef by avx2 on 1, avx2 on 3; 01234567 by avx2 on 2"},
	} {
		d := &diagnosis{}
		var list []selftest.Trial
		for i, digest := range tt.digests {
			list = append(list, selftest.Trial{Level: "avx2", Threads: i + 1, Digest: digest})
		}
		d.judge("", selftest.Trials{List: list, Numerics: tt.numerics})
		last := d.Findings[len(d.Findings)-1]
		if got := fmt.Sprintf("%s %s", last.Health, last.Text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if bad := d.conclude(); (len(bad) > 0) != strings.HasPrefix(tt.want, "fail") ||
			len(bad) > 0 && gravest(bad) != cli.ExitDivergence {
			t.Errorf("%s: failures %+v", tt.name, bad)
		}
	}
}

func TestDoctorJudgesGPUs(t *testing.T) {
	files := []string{"/dev/nvidia0"}
	for _, tt := range []struct {
		name  string
		files []string
		gpus  *device.GPUs
		err   error
		want  string
	}{
		{"CPU build, no GPU", nil, nil, device.ErrNotBuilt,
			"ok devices: none, and none needed: this program was built without CUDA and computes on the CPU\n"},
		{"CPU build, GPU", files, nil, device.ErrNotBuilt,
			"warning devices: /dev/nvidia0 found, but this program was built without CUDA\n"},
		{"no driver, no GPU", nil, nil, &device.Error{Err: device.ErrNoDriver},
			"ok devices: none, and none needed: no CUDA driver is installed, and runs compute on the CPU\n"},
		{"no driver, GPU", files, nil, &device.Error{Err: device.ErrNoDriver},
			"warning devices: no CUDA driver is installed\n"},
		{"driver fails", nil, nil, &device.Error{Err: errors.New("cuda: open the driver: it differs (code 803)")},
			"warning devices: cuda: open the driver: it differs (code 803)\n"},
		{"devices", files, &device.GPUs{CUDA: "12.4", List: []device.GPU{
			{Name: "NVIDIA H100", Memory: 80 << 30, Capability: "9.0", Classes: []string{"cpu/fma", "cpu/bf16"}},
			{Name: "Tesla T4", Memory: 15 << 30, Capability: "7.5"},
		}}, nil, "ok driver: CUDA 12.4\n" +
			"ok cuda:0: NVIDIA H100, 80.0 GiB, compute capability 9.0; can compute the numerics classes cpu/fma, cpu/bf16\n" +
			"warning cuda:1: Tesla T4, 15.0 GiB, compute capability 7.5\n" +
			"ok devices: 2 found; compute.device cuda, cuda:N or auto computes on them\n"},
	} {
		d := &diagnosis{}
		d.judgeGPUs(tt.files, tt.gpus, tt.err)
		var got strings.Builder
		for _, f := range d.Findings {
			fmt.Fprintf(&got, "%s %s: %s\n", f.Health, f.Name, f.Text)
		}
		if got.String() != tt.want {
			t.Errorf("%s:\n%swant:\n%s", tt.name, got.String(), tt.want)
		}
	}
}

// Doctor says how a GPU computes products, and warns of one that could be faster.
func TestDoctorProducts(t *testing.T) {
	for _, tt := range []struct {
		capability, products string
		err                  error
		want                 health
	}{
		{"9.0", "wgmma, with the bits of mma.sync", nil, healthy},
		{"9.0", "mma.sync, not wgmma: element 1 of a MatMul is 1, by mma.sync 2", nil, warning},
		{"10.0", "mma.sync, not wgmma: compute capability 10.0 has none", nil, healthy},
		{"9.0", "", errors.New("cuda:0: a kernel failed"), failing},
	} {
		d := &diagnosis{}
		d.judgeProducts(&device.GPU{Capability: tt.capability}, tt.products, tt.err)
		f := d.Findings[0]
		if f.Name != "cuda:0 products" || f.Health != tt.want || !strings.Contains(f.Text, tt.products) {
			t.Errorf("%s, %q, %v: %+v, want %s", tt.capability, tt.products, tt.err, f, tt.want)
		}
		if (f.Help != "") != (tt.want == warning) && tt.err == nil {
			t.Errorf("help %q", f.Help)
		}
	}
}

func TestGravest(t *testing.T) {
	for _, tt := range []struct {
		codes []cli.ExitCode
		want  cli.ExitCode
	}{
		{[]cli.ExitCode{cli.ExitResource, cli.ExitIntegrity}, cli.ExitIntegrity},
		{[]cli.ExitCode{cli.ExitIntegrity, cli.ExitDivergence, cli.ExitUsage}, cli.ExitDivergence},
		{[]cli.ExitCode{cli.ExitUsage, cli.ExitResource}, cli.ExitResource},
		{[]cli.ExitCode{cli.ExitUsage}, cli.ExitUsage},
		{[]cli.ExitCode{cli.ExitFailure}, cli.ExitFailure},
	} {
		var bad []finding
		for _, c := range tt.codes {
			bad = append(bad, finding{Code: c})
		}
		if got := gravest(bad); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.codes, got, tt.want)
		}
	}
}

// How it looks on a terminal of 80 columns.
func TestDoctorText(t *testing.T) {
	d := &diagnosis{section: "machine"}
	d.ok("processor", "Intel(R) Xeon(R) Processor, 2 cores")
	d.section = "store"
	d.warn("space", "exp run --dry-run says what a run needs", "512 MiB free")
	d.fail("schema", cli.ExitResource, "use a newer exp, or another store with --store",
		"open store: /home/somebody/projects/with-a-long-name/.exp/exp.db: schema version 99 was written by a newer exp, this one knows up to 1")
	var b bytes.Buffer
	s := term.Stream{TTY: true}.Sized(func() (int, int) { return 80, 24 })
	if err := d.write(&b, s); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if term.Width(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("longer than 80 columns: %q", line)
		}
	}
	golden(t, "doctor", b.String())
}
