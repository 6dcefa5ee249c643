package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/fault"
	"exp/harness/notice"
)

// notify tells whom notify.* names that the run ended. Trouble in telling is a warning. Nothing is
// told of an execution that trained or evaluated nothing, or that only scored a finished run.
func (x *execution) notify(ctx context.Context, cause error) {
	c := &x.p.Config.Run.Notify
	if x.attempt.ID == 0 || x.Options.Joins || x.Options.Rescore || cause == nil &&
		(x.result.Partial || x.result.Executed == 0) {
		return
	}
	s := notice.Sender{Command: c.Command}
	if c.Webhook != config.None {
		s.Webhook = c.Webhook
	}
	if variable, ok := strings.CutPrefix(c.Webhook, "env:"); ok {
		if s.Webhook = x.getenv(variable); s.Webhook == "" {
			x.Watch.Warn(fmt.Sprintf("notify.webhook: the environment variable %s is not set", variable))
		}
	}
	if len(s.Command) == 0 && s.Webhook == "" {
		return
	}
	if err := s.Send(ctx, x.noticeOf(cause)); err != nil {
		x.Watch.Warn(err.Error())
	}
}

// warnDeaf warns at the beginning of a run of what would otherwise be found at its end: a program or an address of
// notify.* that is not there.
func (x *execution) warnDeaf() {
	c := &x.p.Config.Run.Notify
	if x.Options.Joins || x.Options.Rescore {
		return
	}
	if len(c.Command) > 0 {
		if _, err := exec.LookPath(c.Command[0]); err != nil {
			x.Watch.Warn(fmt.Sprintf("notify.command cannot tell when the run ends: %v", err))
		}
	}
	if variable, ok := strings.CutPrefix(c.Webhook, "env:"); ok && x.getenv(variable) == "" {
		x.Watch.Warn(fmt.Sprintf("notify.webhook: the environment variable %s is not set", variable))
	}
}

func (x *execution) getenv(name string) string {
	if x.Getenv == nil {
		return os.Getenv(name)
	}
	return x.Getenv(name)
}

// noticeOf describes the run's end.
func (x *execution) noticeOf(cause error) notice.Notice {
	r := &x.result.Run
	n := notice.Notice{Event: notice.Done, Run: r.RID.String(), Name: r.Name, Task: r.Task, Algo: r.Algo, Seed: r.Seed,
		Steps: r.Steps, Of: r.StepsTotal, WallS: r.WallS, ExitCode: x.exitCode(cause), Host: x.attempt.Host,
		Store: x.DB.Dir(), Time: r.Ended, Results: map[string]float64{}}
	var held *StoppedError
	var interrupted *InterruptedError
	switch {
	case cause == nil:
		for _, h := range r.Headline {
			n.Results[h.Name] = h.Value
		}
		return n
	case errors.As(cause, &held):
		n.Event, n.Reason = notice.Stopped, held.reason()
	case errors.As(cause, &interrupted):
		n.Event, n.Reason = notice.Stopped, fmt.Sprintf("a signal, in %s", interrupted.Stage)
	case fault.Of(cause) == fault.Divergence:
		n.Event, n.Reason = notice.Diverged, cause.Error()
	default:
		n.Event, n.Reason = notice.Failed, cause.Error()
	}
	return n
}

// exitCode is the process's exit code after an error, for the record.
func (x *execution) exitCode(cause error) int {
	switch status := statusAfter(cause); {
	case cause == nil:
		return 0
	case x.Code != nil:
		return x.Code(cause)
	case status == store.Interrupted:
		return 130
	case status == store.Stopped:
		return 9
	}
	return 1
}

// statusAfter is the status of a run whose execution ended with an error, or nil.
func statusAfter(cause error) store.Status {
	var held *StoppedError
	var interrupted *InterruptedError
	switch {
	case cause == nil:
		return store.Done
	case errors.As(cause, &held):
		return store.Stopped
	case errors.As(cause, &interrupted):
		return store.Interrupted
	}
	return store.Failed
}
