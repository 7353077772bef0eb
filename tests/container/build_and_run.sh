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
in_box() { vfs run --isolation chroot --user 10001:10001 "$BOX" -- "$@"; }
clean_up() {
  [ -z "$BOX" ] || vfs rm "$BOX" > /dev/null || true
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
# Docker's format: OCI's has no health command.
vfs bud --format docker --isolation chroot "${volumes[@]}" --build-arg BASE="$BASE" -t "$IMAGE" "$ROOT"
echo "built in $((SECONDS - started)) s"

BOX=$(vfs from "$IMAGE")
mount=$(vfs mount "$BOX")
echo "size: $(du -sm "$mount" | cut -f1) MiB, of them kdrun itself: $(du -sk "$mount/opt/app" | cut -f1) KiB"
vfs umount "$BOX" > /dev/null
if [ "${1:-}" = --build-only ]; then exit 0; fi

in_box id
# Its user can write where it must and nowhere else, so that a read-only root is no loss.
elsewhere=$(in_box find / -xdev -writable ! -type l ! -path '/proc/*' ! -path '/sys/*' ! -path '/dev/*' \
  ! -path '/tmp*' ! -path '/var/tmp*' ! -path '/run/*' ! -path '/scratch*' ! -path '/home/kdrun*' \
  2> /dev/null || true)
[ -z "$elsewhere" ] || { echo "its user can write to: $elsewhere" >&2; exit 1; }
in_box kdrun doctor
started=$SECONDS
in_box kdrun submit --problem vit_block --problem rms_norm --workers 1 --run-id inside
in_box kdrun status inside
echo "two samples in $((SECONDS - started)) s"
# A login shell finds it as well.
in_box bash -lc 'kdrun --version && command -v ray'

# As in a pod: nobody, root neither, can write to the root file system, and only /tmp and /scratch are
# anything else.
root=$(vfs mount "$BOX")
mapfile -t environment < <(
  vfs inspect --format '{{range .OCIv1.Config.Env}}{{println .}}{{end}}' "$BOX" | grep .
)
unshare --mount --propagation private bash -s "$root" "${environment[@]}" << 'INSIDE'
set -euo pipefail
root=$1
shift
mount --bind "$root" "$root"
for place in proc sys dev; do mount --rbind "/$place" "$root/$place"; done
for place in tmp scratch; do mount -t tmpfs -o mode=1777 none "$root/$place"; done
mount -o remount,bind,ro "$root"
said=$(LC_ALL=C chroot "$root" touch /here 2>&1) && { echo "its root is not read-only" >&2; exit 1; }
echo "root: $said"
chroot --userspec=10001:10001 "$root" env -i "$@" HOME=/home/kdrun bash -c '
  cd /scratch && kdrun doctor && kdrun submit --problem rms_norm --workers 1 --run-id sealed'
INSIDE
vfs umount "$BOX" > /dev/null
