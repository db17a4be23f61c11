#!/bin/busybox sh
# Process 1 of the guest: sets up the RDMA devices, runs the tasks of the list named on the kernel's command
# line, and ends the machine. Where it fails, the kernel panics, and that ends the machine too.
set -eu
/bin/busybox --install -s /bin
job=/job
export PATH=$job:/bin:/usr/bin HOME=/
export VERBS_DEVICE=rxe0 WIRED_DEVICE=rxe1 VERBS_ADDR="10.0.0.${host:-1}"
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
ulimit -l unlimited
for module in /modules/*; do insmod "$module"; done

# A wire to another guest, where there is one.
wire=wire plain=plain
if [ -e /sys/class/net/eth0 ]; then wire=eth0; fi
. "$job/devices.sh"
make_devices

# Not a terminal, and so without progress bars.
exec >/dev/vport0p1 2>&1
. "$job/tasks.sh"
poweroff -f
