#!/bin/busybox sh
# Process 1 of the guest: sets up the RDMA devices, runs the tasks of the list named on the kernel's command
# line, and ends the machine. Where it fails, the kernel panics, and that ends the machine too.
set -eu
/bin/busybox --install -s /bin
export PATH=/job:/bin:/usr/bin HOME=/ RUST_BACKTRACE=1
export VERBS_DEVICE=rxe0 VERBS_ADDR="10.0.0.${host:-1}"
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
ulimit -l unlimited
for module in /modules/*; do insmod "$module"; done

# rxe0 is on lo. rxe1 is on an interface with an address, which connecting by rdma_cm needs: where there is a
# wire to another guest, on that.
wire=dummy0
if [ -e /sys/class/net/eth0 ]; then wire=eth0; fi
ip link set lo up
ip addr add "$VERBS_ADDR/24" dev "$wire"
ip link set "$wire" up
rdma link add rxe0 type rxe netdev lo
rdma link add rxe1 type rxe netdev "$wire"
for device in rxe0 rxe1; do
    until grep -q ACTIVE "/sys/class/infiniband/$device/ports/1/state"; do usleep 10000; done
done

# Not a terminal, and so without progress bars.
exec >/dev/vport0p1 2>&1
while IFS="$(printf '\t')" read -r name seconds command; do
    echo "== begin $name"
    status=0
    timeout -s KILL "$seconds" sh -c "$command" </dev/null || status=$?
    # Nothing that it has left behind is there for the next one.
    kill -9 -1 2>/dev/null || true
    printf '\n== end %s %s\n' "$name" "$status"
done <"/job/$tasks.tasks"
echo "== over"
poweroff -f
