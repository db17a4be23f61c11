#!/bin/sh
# What a guest's init does, on a machine that is in use: makes the devices, by names of their own, runs the tasks of the
# list that is named, and removes what it has made, also where that fails. It needs a mount namespace of its own.
set -eu
job=$(dirname "$0")
tasks=$1
exec 2>&1
export PATH="$job:$PATH"
# An address for documentation, and so in use nowhere.
export VERBS_DEVICE=cqverify0 WIRED_DEVICE=cqverify1 VERBS_ADDR=198.51.100.1
wire=cqverify0 plain=cqverify1
. "$job/devices.sh"

# That of the network that it was started in.
umount -l /sys
mount -t sysfs sysfs /sys
# libibverbs finds no device of another driver, as in a guest.
mount -t tmpfs tmpfs /etc/libibverbs.d
echo "driver rxe" >/etc/libibverbs.d/rxe.driver

trap 'remove_devices || exit 1' EXIT
# A shell that is ended by a signal does not come to its end.
trap 'exit 1' HUP INT PIPE TERM
# Of a run that was killed.
remove_devices
if [ ! -e /dev/infiniband/rdma_cm ]; then
    echo "there is no /dev/infiniband/rdma_cm: a container needs the host's /dev"
    exit 1
fi
make_devices
. "$job/tasks.sh"
