#!/bin/bash
# Builds the image without a Docker engine or an image registry, and takes two samples apart in it.
#
# The base is made by debootstrap from this machine's own Debian mirror, the image by buildah with
# chroot isolation, which works as root in most containers. Needs about 6 GiB of disk; the base is
# kept for the next time. `--build-only` stops before anything is run.
#
# Exit codes: 0 all of it worked, 77 it cannot be tried here (the last line says why), else it failed.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BASE=localhost/kdrun-base:bookworm
IMAGE=localhost/kdrun:test
MIRROR=${MIRROR:-http://deb.debian.org/debian}
ASIDE=$(mktemp -d)
BOX=

skip() { echo "cannot be tried here: $1" >&2; exit 77; }
vfs() { buildah --storage-driver vfs "$@"; }
# What `docker run --read-only --tmpfs /tmp --user USER -v VOLUME:/scratch IMAGE ARGUMENTS...` does:
# container USER VOLUME ARGUMENTS...
container() {
  local user=$1 volume=$2
  shift 2
  [ $# -gt 0 ] || set -- "${command[@]}"
  unshare --mount --pid --fork --kill-child --propagation private bash -ec '
    root=$1 user=$2 volume=$3
    shift 3
    mount --bind "$root" "$root"
    for place in sys dev; do mount --rbind "/$place" "$root/$place"; done
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=1777,nosuid,nodev,noexec none "$root/tmp"
    mount -t tmpfs -o mode=1777,nosuid,nodev,noexec,size=64m none "$root/dev/shm"
    mount --bind "$volume" "$root/scratch"
    mount -o remount,bind,ro "$root"
    exec chroot --userspec="$user" "$root" env -i --chdir=/scratch "$@"
  ' container "$mount" "$user" "$volume" "${environment[@]}" "${entrypoint[@]}" "$@"
}
configured() { mapfile -t "$2" < <(vfs inspect --format "{{range .OCIv1.Config.$1}}{{println .}}{{end}}" "$BOX" | grep .); }
volume_of() { install -d -o "$1" -g "$1" "$ASIDE/$2" && echo "$ASIDE/$2"; }
clean_up() {
  [ -z "$BOX" ] || { vfs umount "$BOX"; vfs rm "$BOX"; } > /dev/null || true
  rm -rf "$ASIDE"
}
trap clean_up EXIT

[ "$(id -u)" = 0 ] || skip "not root"
for tool in buildah debootstrap; do
  command -v "$tool" > /dev/null || skip "no $tool: apt-get install buildah debootstrap"
done

if ! vfs inspect --type image "$BASE" > /dev/null 2>&1; then
  debootstrap --variant=minbase \
    --include=python3,python3-venv,python3-pip,ca-certificates \
    bookworm "$ASIDE/root" "$MIRROR" > "$ASIDE/log" 2>&1 || skip "$(tail -1 "$ASIDE/log")"
  rm -rf "$ASIDE"/root/var/cache/apt/* "$ASIDE"/root/var/lib/apt/lists/*
  container=$(vfs from scratch)
  vfs add "$container" "$ASIDE/root" / > /dev/null
  vfs commit --rm "$container" "$BASE" > /dev/null 2>&1
  rm -rf "$ASIDE/root"
fi

# What pip is configured with here (certificates, a mirror, a folder of wheels) holds in the build, too.
volumes=(--volume /etc/ssl/certs:/etc/ssl/certs:ro)
python3 -m pip config list | sed -n "s/^[^:]*\.\([a-z-]*\)='\(.*\)'$/\1 = \2/p" \
  | sort -u | sed '1i [global]' > "$ASIDE/pip.conf"
volumes+=(--volume "$ASIDE/pip.conf:/etc/pip.conf:ro")
for folder in $(grep -oE '(file://|= |, | )/[^ ]+' "$ASIDE/pip.conf" | grep -oE '/[^/ ][^ ]*' | sort -u); do
  folder=${folder%/simple}  # the links of such an index lead beside it
  if [ -d "$folder" ]; then volumes+=(--volume "$folder:$folder:ro"); fi
done

started=$SECONDS
vfs bud --isolation chroot "${volumes[@]}" --build-arg BASE="$BASE" -t "$IMAGE" "$ROOT"
echo "built in $((SECONDS - started)) s"

BOX=$(vfs from "$IMAGE")
mount=$(vfs mount "$BOX")
echo "size: $(du -sm "$mount" | cut -f1) MiB, of them kdrun itself: $(du -sk "$mount/opt/app" | cut -f1) KiB"
vfs inspect --format '{{range $name, $text := .OCIv1.Config.Labels}}{{println $name $text}}{{end}}' "$BOX" | grep opencontainers
if [ "${1:-}" = --build-only ]; then exit 0; fi
configured Env environment
configured Entrypoint entrypoint
configured Cmd command

echo "== without arguments"
container 10001:10001 "$(volume_of 10001 help)"

echo "== its own user, in a folder that belongs to it"
volume=$(volume_of 10001 own)
container 10001:10001 "$volume" doctor
started=$SECONDS
container 10001:10001 "$volume" submit --problem vit_block --problem rms_norm --workers 1 --run-id own
echo "two samples in $((SECONDS - started)) s"

echo "== a user that the image does not know, in a folder of theirs"
container 1234:1234 "$(volume_of 1234 theirs)" submit --problem vit_block --workers 1 --run-id theirs
stat --format 'result.json belongs to %u' "$ASIDE/theirs/output/level3/vit_block/result.json"

echo "== told to stop"
volume=$(volume_of 10001 stopped)
container 10001:10001 "$volume" submit --level 3 --workers 1 --run-id stopped &
for _ in $(seq 600); do
  compgen -G "$volume/output/level3/.*stopped*" > /dev/null && break
  sleep 0.1
done
kill -TERM "$(pgrep -P "$(pgrep -P $! unshare || echo $!)")"  # its first process, as Docker does
code=0
wait $! || code=$?
echo "exit code $code, $(grep -o '"state": *"[a-z]*"' "$volume/output/runs/stopped/manifest.json")"

echo "== its first process reaps what others left"
entrypoint=(tini --)
container 10001:10001 "$(volume_of 10001 zombies)" bash -c '
  (sleep 0.1 &)
  sleep 0.5
  echo "zombies: $(cat /proc/[0-9]*/status | grep -c "^State:.Z")"'

echo "== a login shell, as KubeRay starts Ray with"
container 10001:10001 "$volume" bash -lc 'kdrun --version && command -v ray'
