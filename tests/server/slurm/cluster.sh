#!/bin/bash
# A SLURM cluster of one machine, for tests: `cluster.sh start FOLDER`, `cluster.sh stop FOLDER`.
# Needs root, and Debian's packages slurm-wlm and munge. State, logs and pid files lie in FOLDER;
# /etc/slurm/slurm.conf is written only where there is none, or ours (job steps read no other place).
set -eu
mark="# restudy: a cluster of one machine, for tests"
conf=/etc/slurm/slurm.conf
action=$1 folder=$2

write_conf() {
  if [ -e "$conf" ] && [ "$(head -n 1 "$conf")" != "$mark" ]; then
    echo "cluster.sh: $conf is not ours; left alone" >&2
    exit 3
  fi
  mkdir -p /etc/slurm
  cat >"$conf" <<EOF
$mark
ClusterName=restudy
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,batch_sched_delay=0
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
KillWait=5
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(($(free -m | awk '/Mem:/ {print $2}') - 200)) State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
}

start() {
  mkdir -p "$folder/state" "$folder/spool" /run/munge
  write_conf
  chown munge: /run/munge
  if ! munge -n >/dev/null 2>&1; then
    runuser -u munge -- munged --pid-file=/run/munge/restudy.pid
    touch "$folder/munged.ours"
  fi
  slurmctld
  slurmd
  for _ in $(seq 60); do
    if sinfo --noheader --format=%T 2>/dev/null | grep -q -E 'idle|mixed'; then
      return
    fi
    sleep 0.5
  done
  echo "cluster.sh: no node came up; see $folder" >&2
  tail -n 5 "$folder"/slurm*.log >&2
  exit 4
}

stop() {
  for name in slurmd slurmctld; do
    if [ -s "$folder/$name.pid" ]; then kill "$(cat "$folder/$name.pid")" 2>/dev/null || true; fi
  done
  if [ -e "$folder/munged.ours" ]; then kill "$(cat /run/munge/restudy.pid)" 2>/dev/null || true; fi
  if [ "$(head -n 1 "$conf" 2>/dev/null)" = "$mark" ]; then rm -f "$conf"; fi
}

"$action"
