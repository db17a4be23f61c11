# Runs the tasks of the list $tasks beside this script, and says of each when it begins and how it ended.

export RUST_BACKTRACE=1
while IFS="$(printf '\t')" read -r name seconds command; do
    echo "== begin $name"
    status=0
    # A PID namespace ends with its first process: nothing that a task has left behind is there for the next one. That
    # process can't be killed from inside, so that it is not the one whose time is limited.
    unshare --pid --fork --mount-proc sh -c 'timeout -s KILL "$0" sh -c "$1"; exit $?' "$seconds" "$command" \
        </dev/null || status=$?
    printf '\n== end %s %s\n' "$name" "$status"
done <"$job/$tasks.tasks"
echo "== over"
