#!/bin/sh
# Makes the virtual environment that the Makefile's targets run in, and prints its path.
#
#   bootstrap.sh demo|test|bench   install requirements/<profile>.txt and the project
#   bootstrap.sh lock              install only what `make lock` needs
#   bootstrap.sh clean             remove the environment
#
# PYTHON names the interpreter, FORKLAKE_VENV the folder (default: .venv in the repository).
# When nothing has changed since the last run, it does nothing and needs no network.
set -eu

# Only the path goes to standard output.
exec 3>&1 1>&2

say() { printf 'forklake: %s\n' "$*"; }
die() {
    say "$*"
    exit 1
}

find_python() {
    new_enough='import sys; sys.exit(sys.version_info < (3, 11))'
    if [ -n "${PYTHON:-}" ]; then
        "$PYTHON" -c "$new_enough" 2>/dev/null || die "PYTHON=$PYTHON is not Python 3.11 or newer."
        python=$PYTHON
        return
    fi
    for python in python3 python3.13 python3.12 python3.11; do
        if "$python" -c "$new_enough" 2>/dev/null; then return; fi
    done
    die "Python 3.11 or newer is needed: install it, or name one with make PYTHON=/path/to/python."
}

use_venv() {
    venv=$1
    state=$venv/.forklake
}

choose_venv() {
    case ${FORKLAKE_VENV:-} in
        '') use_venv "$root/.venv" ;;
        /*) use_venv "$FORKLAKE_VENV" ;;
        *) use_venv "$PWD/$FORKLAKE_VENV" ;;
    esac
    if [ -z "${FORKLAKE_VENV:-}" ] && ! is_writable && ! is_ready; then
        cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}/forklake
        mkdir -p "$cache" 2>/dev/null || die "neither $root nor $cache is writable: set FORKLAKE_VENV to a folder that is."
        use_venv "$cache/venv-$(printf %s "$root" | cksum | cut -d ' ' -f 1)"
        [ -n "$locked" ] || say "$root is not writable, so the environment is $venv"
    fi
    if [ -e "$venv" ] && [ ! -d "$state" ] && [ -n "$(ls -A "$venv")" ]; then
        die "$venv was not made by make: move it away, or set FORKLAKE_VENV to another folder."
    fi
}

is_writable() {
    if [ -e "$venv" ]; then [ -w "$venv" ]; else [ -w "$root" ]; fi
}

# All that the installed packages of a profile depend on, as one line.
key() {
    "$python" - "$root" "$venv" "$1" <<'EOF'
import hashlib, os, pathlib, sys, sysconfig

root, venv, profile = sys.argv[1:]
digest = hashlib.sha256(os.fsencode(f"{sys.version}\n{sysconfig.get_platform()}\n{root}\n{venv}\n"))
for name in ("pyproject.toml", "requirements/lock.txt", f"requirements/{profile}.txt"):
    digest.update(pathlib.Path(root, name).read_bytes())
print(digest.hexdigest())
EOF
}

is_ready() {
    [ -x "$venv/bin/python" ] && [ -r "$state/$profile" ] && [ ! -e "$state/unfinished" ] || return 1
    [ "$(cat "$state/$profile")" = "$(key "$profile")" ]
}

stamp() {
    key "$1" >"$state/$1.new"
    mv "$state/$1.new" "$state/$1"
}

# An environment that was cut short, moved, or made by another Python has to be made again.
is_usable() {
    identity='import sys, sysconfig; print(sys.version, sysconfig.get_platform())'
    [ ! -e "$state/unfinished" ] && [ "$(cat "$state/home" 2>/dev/null)" = "$venv" ] || return 1
    [ "$("$venv/bin/python" -c "$identity" 2>/dev/null)" = "$("$python" -c "$identity")" ]
}

create_venv() {
    # Everything goes but the file that holds the lock.
    find "$venv" -mindepth 1 -maxdepth 1 ! -name .forklake -exec rm -rf {} +
    rm -f "$state/home" "$state/demo" "$state/test" "$state/bench" "$state/lock"
    if "$python" -c 'import ensurepip, venv; ensurepip.version()' 2>/dev/null; then
        "$python" -m venv "$venv"
    elif "$python" -c 'import venv' 2>/dev/null && "$python" -m pip --python "$(command -v "$python")" --version >/dev/null 2>&1; then
        "$python" -m venv --without-pip "$venv"
    else
        die "$python cannot make a virtual environment: install python3-venv, or name another with make PYTHON=."
    fi
    printf '%s\n' "$venv" >"$state/home"
}

pip() {
    if "$venv/bin/python" -c 'import pip' 2>/dev/null; then
        "$venv/bin/python" -m pip --disable-pip-version-check "$@"
    else
        "$python" -m pip --disable-pip-version-check --python "$venv/bin/python" "$@"
    fi
}

install() {
    if [ -x "$venv/bin/uv" ]; then
        "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" "$@" && return
        say "uv could not do it, trying pip."
    fi
    pip install --quiet "$@" || die "the installation failed (see above): a first run needs a Python package index."
}

install_profile() {
    # uv is much faster than pip; without it nothing is lost but time.
    pip install --quiet --require-hashes -r "$root/requirements/lock.txt" || say "uv is not to be had, pip does its work."
    # uv reads none of pip's settings, so it is told about a mirror.
    index=${PIP_INDEX_URL:-$(pip config get global.index-url 2>/dev/null || true)}
    if [ -n "$index" ]; then export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"; fi
    export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}"

    if [ "$profile" != lock ]; then
        install --require-hashes -r "$root/requirements/$profile.txt"
        install --no-deps --no-build-isolation --editable "$root"
    fi
}

# Runs this script again under a lock, which the kernel frees however the script ends.
rerun_locked() {
    mkdir -p "$state"
    exec "$python" -c '
import fcntl, os, sys

lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("forklake: waiting for another set-up to end.", file=sys.stderr)
    fcntl.flock(lock, fcntl.LOCK_EX)
os.set_inheritable(lock, True)
os.execvp("sh", ["sh", *sys.argv[2:]])
' "$state/held" "$0" "$profile" locked >&3
}

profile=${1:-}
locked=${2:-}
case $profile in
    demo | test | bench | lock | clean) ;;
    *) die "usage: bootstrap.sh demo|test|bench|lock|clean" ;;
esac

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
export PIP_USER=0
find_python
choose_venv

if [ "$profile" = clean ] && [ ! -d "$state" ]; then exit 0; fi
if ! is_ready; then
    [ -n "$locked" ] || rerun_locked
    if [ "$profile" = clean ]; then
        rm -rf "$venv"
        exit 0
    fi

    say "setting up $venv for '$profile'; the first time this takes a minute or so."
    mkdir -p "$state"
    if ! is_usable; then
        touch "$state/unfinished"
        create_venv
    fi
    touch "$state/unfinished"
    install_profile
    stamp "$profile"
    # What is larger has all of the smaller.
    case $profile in
        bench) stamp test && stamp demo ;;
        test) stamp demo ;;
    esac
    rm -f "$state/unfinished"
fi
printf '%s\n' "$venv" >&3
