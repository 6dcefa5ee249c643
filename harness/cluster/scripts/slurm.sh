#!/bin/bash
#SBATCH --job-name={{.Name}}
#SBATCH --output={{.Log}}
#SBATCH --array=0-{{.Last}}{{if .Slurm.MaxParallel}}%{{.Slurm.MaxParallel}}{{end}}
#SBATCH --requeue --open-mode=append --signal=B:USR1@{{.Slurm.SignalBefore}}
#SBATCH --ntasks=1 --cpus-per-task={{.Slurm.CPUs}}
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
{{- with .Slurm.Gres}}
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
exec {{quote .Program}} job {{quote .List}} "$SLURM_ARRAY_TASK_ID"
