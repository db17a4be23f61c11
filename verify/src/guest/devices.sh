# The RDMA devices that tasks find, and what they connect over: VERBS_DEVICE is on lo, WIRED_DEVICE on the interface $wire,
# whose address VERBS_ADDR connecting by rdma_cm needs. No device is on $plain, so that 192.0.2.0/24 leads to none on any
# machine: a route to everywhere may lead to an adapter.

make_devices() {
    if [ ! -e "/sys/class/net/$wire" ]; then ip link add "$wire" type dummy; fi
    ip link add "$plain" type dummy
    ip addr add "$VERBS_ADDR/24" dev "$wire"
    ip addr add 192.0.2.254/24 dev "$plain"
    for interface in lo "$wire" "$plain"; do ip link set "$interface" up; done
    rdma link add "$VERBS_DEVICE" type rxe netdev lo
    rdma link add "$WIRED_DEVICE" type rxe netdev "$wire"
    for device in "$VERBS_DEVICE" "$WIRED_DEVICE"; do
        looks=0
        until grep -q ACTIVE "/sys/class/infiniband/$device/ports/1/state"; do
            looks=$((looks + 1))
            if [ "$looks" = 300 ]; then echo "$device does not become active"; return 1; fi
            sleep 0.1
        done
    done
}

# Removes what is there of them; fails where something stays.
remove_devices() {
    removed=0
    for device in "$VERBS_DEVICE" "$WIRED_DEVICE"; do
        if [ -e "/sys/class/infiniband/$device" ]; then rdma link delete "$device" || removed=1; fi
    done
    for interface in "$wire" "$plain"; do
        if [ -e "/sys/class/net/$interface" ]; then ip link delete "$interface" || removed=1; fi
    done
    return "$removed"
}
