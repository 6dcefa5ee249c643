package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/device"
	harness "exp/harness/run"
)

// checkBF16 says how the kernels of a level multiply bf16.
func (d *diagnosis) checkBF16(best device.BF16, level string) {
	cost, err := device.BF16Cost(level)
	switch {
	case err != nil:
		d.failed("bf16", err)
	case cost > 0 && best == device.NoMatrix:
		d.warn("bf16", "a newer kernel, or a container or virtual machine that passes AMX on, makes it several "+
			"times faster; the results are the same",
			"this processor has a matrix unit (AMX), but the system refuses its registers: a product with "+
				"model.dtype bf16 takes %.1f times as long as with f32", cost)
	case cost > 0:
		d.warn("bf16", "model.dtype: f32 is faster here; bf16 takes less memory and has the bits of a matrix unit",
			"emulated: a product with model.dtype bf16 takes %.1f times as long as with f32", cost)
	case best == device.MatrixUnit:
		d.ok("bf16", "on the matrix unit (AMX): model.dtype bf16 is several times faster than f32")
	default:
		d.ok("bf16", "on products of pairs (AVX512-BF16): model.dtype bf16 is faster than f32")
	}
}

// checkMachine checks processor and memory.
func (a *app) checkMachine(d *diagnosis) {
	m := harness.ThisMachine()
	d.ok("system", "%s/%s", runtime.GOOS, runtime.GOARCH)
	d.ok("processor", "%s, %d cores", cmp.Or(m.CPU, "unknown"), m.Cores)
	k := device.OfThisMachine()
	chosen, used := k.Best+" chosen", k.Best
	if level, err := device.DefaultLevel(a.Getenv); err == nil && a.Getenv(device.LevelVariable) != "" {
		chosen, used = level+" chosen by "+device.LevelVariable, level
	}
	text := "kernels for " + chosen + "; this machine supports " + strings.Join(k.Levels, ", ")
	if k.Best == k.Levels[0] {
		d.warn("kernels", "a processor with AVX2 and FMA is several times faster; the results are the same", "%s",
			text)
	} else {
		d.ok("kernels", "%s", text)
	}
	d.checkBF16(k.BF16, used)
	switch {
	case m.Memory == 0:
		d.warn("memory", "exp run --dry-run says what a run needs", "unknown")
	case m.Memory < 2<<30:
		d.warn("memory", "exp run --dry-run says what a run needs", "%s", quantity.Bytes(m.Memory))
	default:
		d.ok("memory", "%s", quantity.Bytes(m.Memory))
	}
}

// checkBuild reports version and build settings.
func checkBuild(d *diagnosis) {
	b := cli.ReadBuild()
	d.add(finding{Name: "version", Health: healthy, Text: b.String(), Value: b})
	settings := map[string]string{"CGO_ENABLED": "unknown", "-tags": "none", "GOAMD64": ""}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	text := "cgo " + map[string]string{"1": "on", "0": "off"}[settings["CGO_ENABLED"]] + ", tags " + settings["-tags"]
	if settings["CGO_ENABLED"] == "unknown" {
		text = "cgo on, tags unknown" // the kernels are C, so cgo is always on
	}
	if v := settings["GOAMD64"]; v != "" {
		text += ", GOAMD64 " + v
	}
	d.ok("settings", "%s", text)
}

// checkGPU looks for devices without opening them.
func checkGPU(d *diagnosis) {
	files, _ := filepath.Glob("/dev/nvidia[0-9]*") // the pattern is well-formed
	gpus, err := device.FindGPUs()
	d.judgeGPUs(files, gpus, err)
	if err != nil {
		return
	}
	for i := range gpus.List {
		if g := &gpus.List[i]; slices.Contains(g.Classes, config.MatrixNumerics) {
			products, err := g.Products()
			d.judgeProducts(g, products, err)
		}
	}
}

// judgeProducts judges how a GPU computes the products of class matrix/16x25. Compute capability 9.0 has wgmma.
func (d *diagnosis) judgeProducts(g *device.GPU, products string, err error) {
	name := g.ID() + " products"
	switch {
	case err != nil:
		d.failed(name, err)
	case g.Capability == "9.0" && !strings.HasPrefix(products, "wgmma"):
		d.warn(name, "results are right, but large products take about twice the time; report this with "+
			"exp doctor --json unless you set "+device.WgmmaVariable,
			"class %s by %s", config.MatrixNumerics, products)
	default:
		d.ok(name, "class %s by %s", config.MatrixNumerics, products)
	}
}

// judgeGPUs judges what the system shows as files and what the driver says.
func (d *diagnosis) judgeGPUs(files []string, gpus *device.GPUs, err error) {
	var problem *device.Error
	switch {
	case len(files) == 0 && errors.Is(err, device.ErrNotBuilt):
		d.ok("devices", "none, and none needed: this program was built without CUDA and computes on the CPU")
	case errors.Is(err, device.ErrNotBuilt):
		d.warn("devices", "runs compute on the CPU; make build builds a program that uses GPUs",
			"%s found, but %v", strings.Join(files, ", "), device.ErrNotBuilt)
	case len(files) == 0 && errors.Is(err, device.ErrNoDriver):
		d.ok("devices", "none, and none needed: %v, and runs compute on the CPU", device.ErrNoDriver)
	case errors.As(err, &problem):
		d.warn("devices", problem.Hint(), "%v", err)
	default:
		d.ok("driver", "CUDA %s", gpus.CUDA)
		for i, g := range gpus.List {
			name := fmt.Sprintf("cuda:%d", i)
			text := fmt.Sprintf("%s, %s, compute capability %s", g.Name, quantity.Bytes(g.Memory), g.Capability)
			if len(g.Classes) == 0 {
				d.warn(name, "a device of compute capability 8.0 or newer can compute", "%s", text)
				continue
			}
			d.ok(name, "%s; can compute the numerics classes %s", text, strings.Join(g.Classes, ", "))
		}
		d.ok("devices", "%d found; compute.device cuda, cuda:N or auto computes on them", len(gpus.List))
	}
}

// environment lists the variables that the program reads.
func environment() []string {
	return []string{"EXP_STORE", "EXP_CONFIG", "EXP_LOG", "EXP_PROGRESS", "EXP_THREADS", device.LevelVariable,
		mpiVariable, rankTimeoutVariable, device.WgmmaVariable, "EXP_FORCE_TTY"}
}

// probeRecipe is a valid configuration: any error in it comes from the user's own file.
const probeRecipe = "version: 1\nname: probe\ntask: {kind: countdown}\nalgo: {kind: flowrl}\n" +
	"model: {arch: {layers: 1, width: 16, heads: 1, head_size: 16, ffn: 16, max_positions: 4096}}\n" +
	"rollout: {max_new_tokens: 16}\ntrain: {steps: 1, prompts_per_step: 1, prompts_per_update: 1, optim: {lr: 1e-3}}\n"

// checkSettings looks at the user's configuration and the environment.
func (a *app) checkSettings(d *diagnosis) {
	if file := a.userConfig(); file == "" {
		d.ok("user file", "none")
	} else if err := loadUser(file); err != nil {
		d.fail("user file", cli.ExitUsage, "fix the file", "%s", strings.TrimSuffix(err.Error(), "; nothing was run"))
	} else {
		d.ok("user file", "%s", file)
	}
	var set []string
	for _, name := range environment() {
		if v := a.Getenv(name); v != "" {
			set = append(set, name+"="+v)
		}
	}
	if len(set) == 0 {
		set = []string{"no EXP_ variables are set"}
	}
	d.ok("environment", "%s", strings.Join(set, " "))
	if v := a.Getenv("EXP_THREADS"); v != "" {
		if n, err := strconv.Atoi(v); err != nil || n < 0 {
			d.fail("EXP_THREADS", cli.ExitUsage, "a number of threads, 0 for all", "%q is not a number of threads", v)
		}
	}
	switch level, err := device.DefaultLevel(a.Getenv); {
	case err != nil:
		d.failed(device.LevelVariable, err)
	case level != device.OfThisMachine().Best:
		d.warn(device.LevelVariable, "unset it for the best; the results are the same",
			"runs use the kernels for %s, slower than %s", level, device.OfThisMachine().Best)
	}
}

// loadUser checks the user's own configuration.
func loadUser(file string) error {
	_, err := config.Load(config.Input{File: "probe", Data: []byte(probeRecipe), User: file})
	var all config.Errors
	if !errors.As(err, &all) {
		return err
	}
	all = slices.DeleteFunc(all, func(e *config.Error) bool { return e.Source != file })
	if len(all) == 0 {
		return nil
	}
	return all
}

// readTime bounds how long doctor reads a database to check it.
const readTime = time.Second

// checkStore checks the store, or the place where one would be created.
func (a *app) checkStore(ctx context.Context, d *diagnosis, quick bool) {
	dir, found, err := a.FindStore()
	if err != nil {
		d.failed("place", err)
		return
	}
	dir, _ = filepath.Abs(dir) // fails only where FindStore fails
	if found {
		d.ok("place", "%s", dir)
	} else {
		d.ok("place", "none yet; exp run would create %s", dir)
	}
	checkDisk(d, existing(dir))
	if !found {
		return
	}
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		d.failed("schema", err)
		return
	}
	defer db.Close()
	a.Out.Store = dir
	d.ok("schema", "version %d, current", store.Version())
	if quick {
		return
	}
	limited, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	switch err := db.QuickCheck(limited); {
	case errors.Is(err, context.DeadlineExceeded):
		d.warn("integrity", "sqlite3 "+filepath.Join(dir, "exp.db")+" 'PRAGMA integrity_check' reads it all",
			"the database is too large to read within %s", quantity.Duration(readTime))
	case err != nil:
		d.failed("integrity", err)
	default:
		d.ok("integrity", "the database is intact")
	}
}

// existing returns dir or its nearest parent that exists.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// lowSpace is several times what a demo run and its report take.
const lowSpace = 1 << 30

// checkDisk checks the file system of dir, and whether dir is writable.
func checkDisk(d *diagnosis, dir string) {
	disk, err := store.Filesystem(dir)
	switch name := cmp.Or(disk.Name, "a local one"); {
	case err != nil:
		d.failed("file system", err)
		return
	case disk.Network:
		d.fail("file system", cli.ExitResource, "keep the store on a local disk: --store DIR or EXP_STORE",
			"%s is a network file system, where SQLite's locks do not work", name)
	default:
		d.ok("file system", "%s", name)
	}
	switch free := quantity.Bytes(disk.Free); {
	case disk.Free < 0:
		d.warn("space", "exp run --dry-run says what a run needs", "unknown")
	case disk.Free < lowSpace:
		d.warn("space", "exp run --dry-run says what a run needs", "%s free", free)
	default:
		d.ok("space", "%s free", free)
	}
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		d.fail("writing", cli.ExitResource, "give this user permission, or use another store: --store DIR or "+
			"EXP_STORE", "%v", err)
		return
	}
	f.Close()
	if err := os.Remove(f.Name()); err != nil {
		d.failed("writing", err)
		return
	}
	d.ok("writing", "allowed")
}
