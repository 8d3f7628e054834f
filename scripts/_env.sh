# Sourced by the scripts here (bash). Gives $ROOT and $PYTHON (of .venv), and the two steps
# need_package EXTRAS and need_java. Each says plainly what is missing and is quick the second time.

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
PYTHON=$ROOT/.venv/bin/python
cd "$ROOT"

# Python and Java cannot read a path with letters beyond ASCII in this locale.
case ${LC_ALL:-} in C | POSIX) export LC_ALL=C.UTF-8 ;; esac

# Many short processes run here: none shall compile the package anew.
unset PYTHONDONTWRITEBYTECODE

say() { printf 'kafkapy: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# in_own_tmp DIRECTORY COMMAND...: with DIRECTORY as /tmp, where the machine allows that: nobody
# else's files are taken for what the command left there.
has_own_tmp() { unshare --mount true 2>/dev/null; }
in_own_tmp() {
    local directory=$1
    shift
    if has_own_tmp; then
        unshare --mount sh -c 'mount --bind "$0" /tmp && exec "$@"' "$directory" "$@"
    else
        "$@"
    fi
}
can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# apt_install PACKAGE...: tries, quietly; the caller looks whether it helped.
apt_install() {
    say "installing $* with apt-get"
    { apt-get update -q && apt-get install -y -q --no-install-recommends "$@"; } >/dev/null 2>&1
}

# A Python that is new enough and can make environments.
find_python() {
    local name
    for name in python3.11 python3.12 python3.13 python3; do
        if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
            2>/dev/null; then
            printf '%s' "$name"
            return
        fi
    done
    return 1
}

make_venv() {
    local python
    if ! python=$(find_python); then
        can_apt && apt_install python3 python3-venv || true
        python=$(find_python) ||
            die "needs Python 3.11 or newer with venv (Debian: apt-get install python3 python3-venv)"
    fi
    "$python" -m venv .venv || die "could not create .venv with $python"
}

# need_package EXTRAS: the package with EXTRAS ("spark" or "spark,dev") in .venv.
need_package() {
    local extras=$1 want log=.venv/install.log stamp
    [ -x "$PYTHON" ] || make_venv
    want=$(sha256sum <pyproject.toml)
    for stamp in ".venv/.installed-$extras" .venv/.installed-spark,dev; do
        if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then return; fi
    done
    say "installing into .venv (the first time takes a minute or two)"
    "$PYTHON" -m pip install -q -e ".[$extras]" >"$log" 2>&1 || {
        tail -n 5 "$log" >&2
        die "pip could not install the package; the whole story is in $log"
    }
    printf '%s' "$want" >".venv/.installed-$extras"
}

# Whether $1 is a Java of version 17 or newer (what Spark 4 needs).
is_java_17() {
    local version
    version=$("$1" -version 2>&1 | sed -n '1s/.*version "\([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge 17 ]
}

find_java() {
    local candidate
    for candidate in "${JAVA_HOME:-}/bin/java" "$(command -v java)" /usr/lib/jvm/*/bin/java; do
        if [ -x "$candidate" ] && is_java_17 "$candidate"; then
            candidate=$(readlink -f "$candidate")
            export JAVA_HOME=${candidate%/bin/java}
            return
        fi
    done
    return 1
}

# need_java: exports JAVA_HOME of a runtime that Spark 4 takes.
need_java() {
    find_java && return
    if can_apt; then
        apt_install openjdk-17-jre-headless || apt_install default-jre-headless || true
        find_java && return
        die "needs Java 17 or newer, and apt-get could not install it"
    fi
    die "needs Java 17 or newer: set JAVA_HOME, or as root: apt-get install openjdk-17-jre-headless"
}
