#!/bin/sh
# Becomes the daemon of node NAME of the Slurm under DIR: a host of that name that shares this machine's
# network, and its disk except DIR/disk.
# usage: node.sh DIR NAME   as root
set -eu
export SLURMD_NODENAME="$2"
exec unshare --uts --mount sh -eu -c '
	hostname "$2"
	mount -t tmpfs "$2" "$1/disk"
	exec slurmd -D -c -f "$1/slurm.conf"' sh "$1" "$2"
