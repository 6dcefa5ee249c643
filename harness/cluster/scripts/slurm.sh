#!/bin/bash
#SBATCH --job-name={{.Name}}
#SBATCH --output={{.Log}}
#SBATCH --array=0-{{.Last}}{{if .Slurm.MaxParallel}}%{{.Slurm.MaxParallel}}{{end}}
#SBATCH --requeue --open-mode=append --signal=B:USR1@{{.Slurm.SignalBefore}}
#SBATCH --ntasks={{.Tasks}} --cpus-per-task={{.Slurm.CPUs}}
{{- if and .Ranks .Slurm.RanksPerNode}}
#SBATCH --nodes={{.Nodes}} --ntasks-per-node={{.Slurm.RanksPerNode}}
{{- end}}
{{- with .GPU}}
#SBATCH --gpus-per-task={{.}}
{{- end}}
{{- with .Slurm.Partition}}
#SBATCH --partition={{.}}
{{- end}}
{{- with .Slurm.Account}}
#SBATCH --account={{.}}
{{- end}}
{{- with .Slurm.QOS}}
#SBATCH --qos={{.}}
{{- end}}
{{- with .Slurm.Time}}
#SBATCH --time={{.}}
{{- end}}
{{- with .Gres}}
#SBATCH --gres={{.}}
{{- end}}
{{- with .Slurm.Mem}}
#SBATCH --mem={{.}}
{{- end}}
{{- with .Slurm.Exclude}}
#SBATCH --exclude={{.}}
{{- end}}
{{- range .Slurm.Extra}}
#SBATCH {{.}}
{{- end}}
{{range .Slurm.Prolog}}
{{.}}
{{- end}}
export {{.Variable}}=once
{{- if .Ranks}}
export SRUN_CPUS_PER_TASK={{.Slurm.CPUs}}
{{- if eq .Slurm.MPI "mpirun"}}
export {{.Launcher}}=mpirun
{{- else if .Slurm.MPI}}
export SLURM_MPI_TYPE={{quote .Slurm.MPI}}
{{- end}}
{{- end}}
exec {{quote .Program}} job {{quote .List}} "$SLURM_ARRAY_TASK_ID"
