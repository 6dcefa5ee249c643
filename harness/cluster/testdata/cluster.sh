#!/bin/bash
# Starts a Slurm under DIR, runs COMMAND with SLURM_CONF set, and stops it. Its node is this machine, or the hosts
# that SLURM_NODES names (node.sh).
# usage: cluster.sh DIR COMMAND...   as root; packages slurm-wlm and munge
# Jobs in partition "low" give way to those in "high" and are queued again.
set -eu
root=$1; shift
here=$(dirname "$(realpath "$0")")
me=$(hostname -s)
nodes=${SLURM_NODES:-$me}
mkdir -p "$root/ctl" "$root/disk" "$root/auth"
for n in $nodes; do mkdir -p "$root/node-$n"; done
chmod 755 "$root"; chmod 700 "$root/auth"
random_port() { echo $((21000 + (RANDOM * 32768 + RANDOM) % 30000)); }
export SLURM_CONF=$root/slurm.conf
{
	echo "ClusterName=test"
	echo "SlurmctldHost=$me(127.0.0.1)"
	echo "SlurmctldPort=$(random_port)"
	echo "SlurmUser=root"
	echo "SlurmdUser=root"
	echo "AuthType=auth/munge"
	echo "AuthInfo=socket=$root/auth/socket,cred_expire=5"   # a job queued again starts soon
	echo "StateSaveLocation=$root/ctl"
	echo "SlurmdSpoolDir=$root/node-%n"
	echo "SlurmctldPidFile=$root/ctl.pid"
	echo "SlurmdPidFile=$root/node-%n.pid"
	echo "SlurmctldLogFile=$root/ctl.log"
	echo "SlurmdLogFile=$root/node-%n.log"
	echo "TmpFS=$root/disk"
	echo "ProctrackType=proctrack/linuxproc"
	echo "TaskPlugin=task/none"
	echo "JobAcctGatherType=jobacct_gather/none"
	echo "MpiDefault=none"
	echo "ReturnToService=2"
	echo "SlurmdTimeout=${SLURMD_TIMEOUT:-300}"                # without an answer the node is down
	echo "SelectType=select/cons_tres"
	echo "SelectTypeParameters=CR_CPU"
	echo "SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1"
	echo "PreemptType=preempt/partition_prio"
	echo "PreemptMode=REQUEUE"
	echo "SlurmctldParameters=preempt_send_user_signal"
	echo "KillWait=2"
	echo "MinJobAge=600"
	for n in $nodes; do echo "NodeName=$n NodeAddr=127.0.0.1 Port=$(random_port) CPUs=2 State=UNKNOWN"; done
	echo "PartitionName=low Nodes=${nodes// /,} Default=YES PriorityTier=1 GraceTime=20 MaxTime=INFINITE State=UP"
	echo "PartitionName=high Nodes=${nodes// /,} PriorityTier=9 MaxTime=INFINITE State=UP"
} >"$SLURM_CONF"
pids=
finish() {
	scancel --user=root --quiet 2>/dev/null || true
	for p in $pids; do kill "$p" 2>/dev/null || true; done
	for p in $pids; do wait "$p" 2>/dev/null || true; done
}
trap finish EXIT
head -c 128 /dev/urandom >"$root/auth/key"; chmod 600 "$root/auth/key"
munged --foreground --force --key-file="$root/auth/key" --socket="$root/auth/socket" --pid-file="$root/auth/pid" \
	--seed-file="$root/auth/seed" --log-file="$root/auth/log" >"$root/munged.out" 2>&1 & pids="$!"
for i in $(seq 200); do if [ -S "$root/auth/socket" ]; then break; fi; sleep 0.02; done
slurmctld -D -c -f "$SLURM_CONF" >"$root/ctl.out" 2>&1 & pids="$! $pids"
for n in $nodes; do
	if [ "$n" = "$me" ]; then daemon=(slurmd -D -c -f "$SLURM_CONF"); else daemon=("$here/node.sh" "$root" "$n"); fi
	"${daemon[@]}" >"$root/node-$n.out" 2>&1 & pids="$! $pids"
done
for i in $(seq 200); do
	if [ "$(sinfo -h -p low -o %T 2>/dev/null)" = idle ]; then ready=1; break; fi
	sleep 0.05
done
if [ -z "${ready:-}" ]; then tail -n 20 "$root"/*.log "$root"/*.out >&2; exit 70; fi
code=0
"$@" || code=$?
exit "$code"
