package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/harness/config"
	"exp/harness/plan"
)

// planned plans the smoke run with other settings.
func planned(t *testing.T, seed int64, sets ...string) *plan.Run {
	t.Helper()
	r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	sources, err := plan.Sources()
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(r, seed, "cpu/fma", sources)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// described writes a job as "name <- needs".
func described(jobs []Job) (list []string) {
	for _, j := range jobs {
		text := j.Name()
		for _, n := range j.Needs {
			text += fmt.Sprint(" <- ", n)
		}
		list = append(list, text)
	}
	return list
}

func TestList(t *testing.T) {
	ppo := []string{"algo.kind=ppo", "name=ppo"}
	other := []string{"name=other", "sft.steps=10"}
	for _, tt := range []struct {
		name string
		runs []*plan.Run
		want []string
	}{
		{"one run shares nothing", []*plan.Run{planned(t, 0)}, []string{"smoke#0"}},
		{"two arms and two seeds share all that comes before training",
			[]*plan.Run{planned(t, 0), planned(t, 1), planned(t, 0, ppo...), planned(t, 1, ppo...)},
			[]string{"smoke#0 until sft", "smoke#0 <- 0", "smoke#1 <- 0", "ppo#0 <- 0", "ppo#1 <- 0"}},
		{"paths part after init",
			[]*plan.Run{planned(t, 0), planned(t, 1), planned(t, 0, other...), planned(t, 1, other...)},
			[]string{"smoke#0 until init", "smoke#0 until sft <- 0", "other#0 until sft <- 0",
				"smoke#0 <- 1", "smoke#1 <- 1", "other#0 <- 2", "other#1 <- 2"}},
		{"an arm with nothing in common", []*plan.Run{planned(t, 0), planned(t, 0, "data.train.size=65", "name=alone")},
			[]string{"smoke#0", "alone#0"}},
		{"the same run twice", []*plan.Run{planned(t, 0), planned(t, 0)},
			[]string{"smoke#0 until sft", "smoke#0 <- 0", "smoke#0 <- 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			jobs, err := List(context.Background(), nil, tt.runs)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, described(jobs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A process is asked to stop once, and its end says how it ended.
func TestProcess(t *testing.T) {
	stop, cancel := context.WithCancel(context.Background())
	defer cancel()
	var heard []string
	script := `trap 'echo "{\"event\":\"note\",\"text\":\"saving\"}" >&2; exit 130' INT
echo "plain words" >&2; echo '{"event":"step","stage":"train","step":3,"of":4}' >&2
while :; do sleep 0.01; done`
	p := Process{Program: "/bin/sh", Args: []string{"-c", script}, Env: []string{"A=b"}, Heard: func(e Event) {
		heard = append(heard, fmt.Sprint(e.Event, e.Step, e.Text))
		if e.Event == "step" {
			cancel()
		}
	}}
	end := p.Run(stop, context.Background())
	if end.Code != 130 || end.Signal != 0 || end.Said != "plain words" || end.Err != nil {
		t.Errorf("%+v", end)
	}
	if !slices.Equal(heard, []string{"step3", "note0saving"}) {
		t.Errorf("heard %q", heard)
	}

	quiet := func(Event) {}
	killed := (&Process{Program: "/bin/sh", Args: []string{"-c", "kill -9 $$"}, Heard: quiet}).Run(context.Background(), context.Background())
	if killed.Signal != 9 {
		t.Errorf("%+v", killed)
	}
	none := (&Process{Program: "/none", Heard: quiet}).Run(context.Background(), context.Background())
	if none.Err == nil || !strings.Contains(none.Err.Error(), "/none") {
		t.Errorf("%+v", none)
	}
}

// Jobs wait for the jobs that they need. After a failure no job starts, or with KeepGoing
// none that needs the failed one.
func TestLocal(t *testing.T) {
	jobs := []Job{{Until: config.SFT}, {Needs: []int{0}}, {Needs: []int{0}}, {}}
	for _, tt := range []struct {
		name      string
		codes     []int
		keepGoing bool
		want      string // exit codes, x: not started
	}{
		{"all end well", []int{0, 0, 0, 0}, false, "0 0 0 0"},
		{"a shared job fails", []int{4, 0, 0, 0}, true, "4 x x 0"},
		{"a run fails", []int{0, 7, 0, 0}, true, "0 7 0 0"},
		{"a run is stopped by its condition", []int{0, 9, 0, 0}, false, "0 9 0 0"},
		{"a run fails, and no other starts", []int{0, 7, 0, 0}, false, "0 7 x x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now, most, ended := 0, 0, map[int]bool{}
			slots := 2
			if !tt.keepGoing {
				slots = 1
			}
			l := Local{Jobs: jobs, Slots: slots, KeepGoing: tt.keepGoing,
				Failed: func(e End) bool { return e.Code != 9 },
				Executor: func(i, _ int) Executor {
					return &Process{Program: "/bin/sh", Args: []string{"-c", fmt.Sprintf("sleep 0.02; exit %d", tt.codes[i])}, Heard: func(Event) {}}
				},
				Started: func(i int) {
					now++
					most = max(most, now)
					for _, n := range jobs[i].Needs {
						if !ended[n] {
							t.Errorf("job %d started before %d ended", i, n)
						}
					}
				},
				Ended: func(i int, _ End) { now--; ended[i] = true },
			}
			var got []string
			for _, e := range l.Run(context.Background(), context.Background()) {
				text := fmt.Sprint(e.Code)
				if e.Err == ErrNotStarted {
					text = "x"
				}
				got = append(got, text)
			}
			if strings.Join(got, " ") != tt.want || most > slots {
				t.Errorf("ended with %q, %d at once; want %q, at most %d", got, most, tt.want, slots)
			}
		})
	}
}
