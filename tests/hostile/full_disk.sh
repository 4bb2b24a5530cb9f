#!/bin/bash
# Usage: full_disk.sh PROJECT ROOM OUT COMMAND...
#
# Copies PROJECT to a disk in memory that has ROOM kB left, runs COMMAND in it, then again with room enough,
# and copies the results to OUT. Needs a mount namespace: unshare --map-root-user --mount.
# Ends with 0 if the second COMMAND does; OUT/first holds what the first one ended with.
set -u
project=$1 room=$2 out=$3
shift 3
disk=$(mktemp -d)
mount -t tmpfs -o size=4g none "$disk" && cp -a "$project/." "$disk" && cd "$disk" || exit 70
used=$(df -k --output=used "$disk" | tail -1)
mount -o "remount,size=$((used + room))k" "$disk" || exit 70
"$@" > "$out/first.log" 2>&1
echo $? > "$out/first"
mount -o remount,size=4g "$disk" || exit 70
"$@" > "$out/second.log" 2>&1
code=$?
cp -a results "$out"
exit $code
